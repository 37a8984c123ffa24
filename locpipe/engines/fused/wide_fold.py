"""Tiles of wide data folded: logs of weights, weights, sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from locpipe.blocks import KeyBlock, row_slices
from locpipe.engines.fused import wide_compiled as loops
from locpipe.engines.fused.wide import SINGLE_FROM
from locpipe.engines.fused.wide_logs import Linear, Logs, Radially, Tile
from locpipe.engines.fused.wide_masks import allowed_pairs
from locpipe.engines.fused.wide_rows import LOG2_E, Numbers, Rows
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.gaussian import Gaussian
from locpipe.reductions.base import State
from locpipe.reductions.log_mass import LogMassState
from locpipe.reductions.weighted_mean import WeightedMeanState

__all__ = ["fold_rows"]

_TILE_QUERIES = {np.float32: 512, np.float64: 256}
_TILE_KEYS, _TILE_KEYS_OF_MANY_OUTPUTS, _MANY_OUTPUTS = 512, 2048, 256
"""A tile fills half of the second-level cache of a core; where the sums of its queries are larger
than that anyway, more keys for each time that they are read are worth more."""
_SINGLE_RANGE = 1e15
"""Values of up to this size, and down to its inverse, may be kept in float32."""
_FEW, _SHARE, _MANY_ROWS = 32, 0.01, 0.25
_ASKS = frozenset(512 * 2**i for i in range(-1, 20)) | {0}
"""A row with more doubtful pairs than a few and this share is better off another way, and all are
where so many of the rows are."""

Way = Callable[[Rows], Logs]


def fold_rows(state: Any, rows: Rows, rtol: float) -> State:
    """`state` with the keys folded in, each query the fastest way that is right for it."""
    if len(rows.k) == 0:
        unchanged: State = type(state)(*(array.copy() for array in state))
        return unchanged
    return _fold(state, rows, _ways(rows, rtol))


def _ways(rows: Rows, rtol: float) -> list[Way]:
    """Ways to the logs of the weights, fastest first; the last one is always right."""
    core, fits = rows.parts.core, _fits_single(rows, rtol)
    small = np.float32 if fits else np.float64
    singly: Way = lambda r: Linear(r, np.float32, small, rtol)  # noqa: E731
    doubly: Way = lambda r: Linear(r, np.float64, small, rtol)  # noqa: E731
    by_products: Way = lambda r: Radially(r, small, rtol, from_products=True)  # noqa: E731
    by_differences: Way = lambda r: Radially(r, small, rtol, from_products=False)  # noqa: E731
    linear = [singly, doubly] if fits else [doubly]
    if isinstance(core, DotProduct):
        return linear
    if type(core) is Gaussian and not rows.have_bandwidths:
        return [*linear, by_differences]
    return [by_products, by_differences]


def _fits_single(rows: Rows, rtol: float) -> bool:
    if rtol < SINGLE_FROM:
        return False
    if rows.k_block.values is None:
        return True
    real: Any = np.float32 if rows.k_block.values.dtype == np.float32 else np.float64
    sizes: Numbers = np.zeros(rows.k_block.values.shape[1], dtype=real)
    for part in row_slices(len(rows.k), _TILE_KEYS_OF_MANY_OUTPUTS):
        values = np.ascontiguousarray(rows.k_block.values[part], dtype=real)
        loops.largest_by_column(real)(values, sizes)
    in_range = (sizes > 1 / _SINGLE_RANGE) & (sizes < _SINGLE_RANGE)
    return bool(np.all(in_range | (sizes == 0)))


def _fold(state: Any, rows: Rows, ways: list[Way]) -> State:
    logs = ways[0](rows)
    if not logs.in_range:
        return _fold(state, rows, ways[1:])
    values = None if isinstance(state, LogMassState) else np.asarray(rows.k_block.values)
    sums, hopeless = _Sums.of(state, logs), np.zeros(len(rows.q), dtype=bool)
    for part in row_slices(len(rows.q), _TILE_QUERIES[logs.real]):
        tiles = _Tiles(rows, logs, part, values, may_give_up=len(ways) > 1)
        hopeless[part] = tiles.fold(sums.rows(part))
    folded = sums.state(state, logs, rows.k_block)
    if hopeless.any():
        left = type(state)(*(array[hopeless] for array in state))
        again = _fold(left, rows.queries(hopeless), ways[1:])
        for array, new in zip(folded, again, strict=True):
            array[hopeless] = new
    return folded


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums by query at ``2 ** shift``, and what the last tile left.

    Attributes
    ----------
    shift, mass, squares : float64 arrays (n_queries,)
    moment : float64 array (n_queries, n_outputs)
    factor : float64 array (n_queries,)
        What the largest log in the last tile made of earlier sums.
    doubtful : int64 array (n_queries,)
        Pairs so far in which rounding would have shown.
    """

    shift: Numbers
    mass: Numbers
    squares: Numbers
    moment: Numbers
    factor: Numbers
    doubtful: Numbers

    @classmethod
    def of(cls, state: Any, logs: Logs) -> _Sums:
        """The sums of a state, in copies, at shifts that bring the mass near 1."""
        some = state.mass > 0
        old = np.where(some, (state.shift - logs.constant) * LOG2_E, 0.0)
        new = old + np.log2(np.where(some, state.mass, 1.0))
        new = new.astype(logs.real).astype(np.float64)
        factor = np.where(some, np.exp2(old - new), 0.0)
        squares = state.mass_of_squares if isinstance(state, LogMassState) else state.mass
        moment = state.moment if isinstance(state, WeightedMeanState) else np.empty((len(some), 0))
        shift = np.where(some, new, -np.inf)
        mass, doubtful = state.mass * factor, np.zeros(len(some), dtype=np.int64)
        moment = moment * factor[:, None]
        return cls(shift, mass, squares * factor * factor, moment, factor, doubtful)

    @property
    def no_moment(self) -> bool:
        """Whether masses are all that is asked, those of squares too."""
        return bool(self.moment.shape[1] == 0)

    def rows(self, part: slice) -> _Sums:
        """Some of the queries, as views."""
        return _Sums(*(getattr(self, field.name)[part] for field in fields(self)))

    def state(self, before: Any, logs: Logs, k: KeyBlock) -> State:
        """The reduction's own state."""
        shift = self.shift / LOG2_E + logs.constant
        if isinstance(before, LogMassState):
            key_weight = before.key_weight + _key_weight(k)
            return LogMassState(shift, self.mass, self.squares, key_weight)
        return WeightedMeanState(shift, self.mass, self.moment)


def _key_weight(k: KeyBlock) -> float:
    if k.log_sample_weight is None:
        return float(k.n_rows)
    return float(np.exp(k.log_sample_weight).sum())


@dataclass(frozen=True, eq=False)
class _Tiles:
    """The tiles of some queries: every key is folded into their sums."""

    rows: Rows
    logs: Logs
    part: slice
    values: Numbers | None
    may_give_up: bool

    def fold(self, sums: _Sums) -> Numbers:
        """Which queries are better off another way, bool (n_queries,)."""
        n_rows, n_outputs = sums.moment.shape
        n_keys = _TILE_KEYS_OF_MANY_OUTPUTS if n_outputs >= _MANY_OUTPUTS else _TILE_KEYS
        logs, size, most = self.logs, n_rows * n_keys, float(_FEW)
        buffers = np.empty(size, dtype=logs.real), np.empty(size, dtype=logs.small)
        product = np.empty((n_rows, n_outputs), dtype=logs.small)
        for columns in row_slices(len(self.rows.k), n_keys):
            most += _SHARE * (columns.stop - columns.start)
            allowed = self._allowed(columns)
            if allowed is not None:
                tile = self._tile(buffers, allowed, product, columns)
                logs.fold(tile, sums, self.part, columns, most)
            if columns.start in _ASKS and self._gives_up(sums.doubtful > most):
                return np.ones(n_rows, dtype=bool)
        return (sums.doubtful > most) & self.may_give_up

    def _gives_up(self, hopeless: Numbers) -> bool:
        return self.may_give_up and bool(np.mean(hopeless) > _MANY_ROWS)

    def _tile(
        self, buffers: tuple[Numbers, ...], allowed: Numbers, product: Numbers, columns: slice
    ) -> Tile:
        n_rows, n_keys = len(product), columns.stop - columns.start
        logs, weights = (b[: n_rows * n_keys].reshape(n_rows, n_keys) for b in buffers)
        values = np.empty((n_keys, 0)) if self.values is None else self.values[columns]
        values = np.ascontiguousarray(values, dtype=self.logs.small)
        return Tile(logs, weights, allowed, values, product)

    def _allowed(self, columns: slice) -> Numbers | None:
        """Pairs that may be neighbours, of no rows where all may; None where none may."""
        masks = self.rows.parts.masks
        if not masks:
            return _ALL
        q, k = self.rows.q_block.rows(self.part), self.rows.k_block.rows(columns)
        allowed = allowed_pairs(masks, q, k)
        if isinstance(allowed, bool):
            return _ALL if allowed else None
        return np.ascontiguousarray(allowed)


_ALL = np.empty((0, 0), dtype=np.bool_)
