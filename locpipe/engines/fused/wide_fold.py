"""Tiles of wide data folded: logs of weights, weights, sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from locpipe.blocks import KeyBlock, row_slices
from locpipe.engines import dense
from locpipe.engines.fused.wide import SINGLE_FROM
from locpipe.engines.fused.wide_logs import Linear, Logs, Radially
from locpipe.engines.fused.wide_masks import allowed_pairs
from locpipe.engines.fused.wide_rows import LOG2_E, Numbers, Rows
from locpipe.engines.fused.wide_values import Values
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.gaussian import Gaussian
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.log_mass import LogMassState
from locpipe.reductions.weighted_mean import WeightedMeanState

__all__ = ["fold_rows"]

_TILE_QUERIES = {np.float32: 504, np.float64: 252}
"""Whole panels of any machine."""
_FEW, _SHARE, _MANY_ROWS = 32, 0.01, 0.25
_ASKS = frozenset(512 * 2**i for i in range(20)) | {0}
"""A row with more doubtful pairs than a few and this share is better off another way, and all are
where so many of the rows are."""
_SCARCE = 2.0**-60
"""Share of the mass below which float32 has no numbers left for far keys."""
_HIGHEST = 900.0
"""A level at which sums are numbers yet."""
_FEW_ROWS = 1 / 32
"""Share of the rows that the reference does as fast as others are compiled."""

_FEW_PAIRS, _FEW_KEYS = 2**16, 4096
"""What it does at a time."""

Way = Callable[[Rows, Values | None], Logs]


def fold_rows(reduction: Reduction, state: Any, rows: Rows, rtol: float) -> State:
    """`state` with the keys folded in, each query the fastest way that is right for it."""
    if len(rows.k) == 0:
        unchanged: State = type(state)(*(array.copy() for array in state))
        return unchanged
    has_values = not isinstance(state, LogMassState) and state.moment.shape[1] > 0
    values = Values(np.asarray(rows.k_block.values)) if has_values else None
    single = rtol >= SINGLE_FROM and (values is None or values.fit_single)
    return _fold(Job(reduction, values, rtol), state, rows, _ways(rows, rtol, single=single))


@dataclass(frozen=True)
class Job:
    """What stays the same for all ways of a fold."""

    reduction: Reduction
    values: Values | None
    rtol: float


def _ways(rows: Rows, rtol: float, *, single: bool) -> list[Way]:
    """Ways to the logs of the weights, fastest first; the last one is always right."""
    core, small = rows.parts.core, np.float32 if single else np.float64
    by_products: Way = lambda r, v: Radially(r, small, rtol, v, from_products=True)  # noqa: E731
    by_differences: Way = lambda r, v: Radially(r, small, rtol, v, from_products=False)  # noqa: E731
    linear = [_linear(real, rtol) for real in dict.fromkeys((small, np.float64))]
    if isinstance(core, DotProduct):
        return linear
    if type(core) is Gaussian and not rows.have_bandwidths:
        return [*linear, by_differences]
    return [by_products, by_differences]


def _linear(real: Any, rtol: float) -> Way:
    return lambda rows, values: Linear(rows, real, rtol, values)


def _fold(job: Job, state: Any, rows: Rows, ways: list[Way]) -> State:
    logs = ways[0](rows, job.values)
    if not logs.in_range:
        return _fold(job, state, rows, ways[1:])
    levels = _Levels.of(state, logs)
    sums, hopeless = _Sums.of(state, levels), logs.coarse | levels.lost
    for part in row_slices(len(rows.q), _TILE_QUERIES[logs.real]):
        tiles = _Tiles(rows, logs, part, may_give_up=len(ways) > 1)
        hopeless[part] |= tiles.fold(sums.rows(part))
    unseen = np.zeros_like(hopeless)
    if job.values is not None and logs.small is np.float32:
        unseen = ~sums.see_values(state, logs, job.values)
    folded = sums.state(state, logs, rows.k_block)
    doubly = _ways(rows, job.rtol, single=False)
    for left, others in ((hopeless & ~unseen, ways[1:]), (unseen, doubly)):
        if left.any():
            again = _again(job, type(state)(*(array[left] for array in state)), rows, left, others)
            for array, new in zip(folded, again, strict=True):
                array[left] = new
    return folded


def _again(job: Job, state: Any, rows: Rows, left: Numbers, ways: list[Way]) -> State:
    """The states of some queries, another way."""
    some = rows.queries(left)
    if np.mean(left) < _FEW_ROWS:
        n_keys = max(_FEW_PAIRS // len(some.q), dense.TILE_KEYS)
        q, k, kernel = some.q_block, some.k_block, rows.parts.kernel
        return dense.fold(job.reduction, state, q, k, kernel, tile_keys=min(n_keys, _FEW_KEYS))
    return _fold(job, state, some, ways)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums by query at ``2 ** shift``, and what the last tile left.

    Attributes
    ----------
    shift, mass, squares : float64 arrays (n_queries,)
    moment : float64 array (n_queries, n_outputs)
    seen : float64 array (n_queries,)
        Weighted sum of the least share that a key's values have in the largest ones.
    factor : float64 array (n_queries,)
        What the largest log in the last tile made of earlier sums.
    doubtful : int64 array (n_queries,)
        Pairs so far in which rounding would have shown.
    errors : float64 array (n_queries,)
        Sum of ``w^2 v``, w a weight and v the variance of its log in squares of `Logs.unit`.
    """

    shift: Numbers
    mass: Numbers
    squares: Numbers
    moment: Numbers
    seen: Numbers
    factor: Numbers
    doubtful: Numbers
    errors: Numbers

    @classmethod
    def of(cls, state: Any, levels: _Levels) -> _Sums:
        """The sums of a state, in copies, at levels that bring the mass near 1."""
        some = state.mass > 0
        old, new = levels.old, levels.new
        factor = np.exp2(old - new, out=np.zeros(len(some)), where=some & ~levels.lost)
        squares = state.mass_of_squares if isinstance(state, LogMassState) else state.mass
        moment = state.moment if isinstance(state, WeightedMeanState) else np.empty((len(some), 0))
        shift = np.where(some, new, -np.inf)
        squares, errors = squares * factor * factor, np.zeros(len(some))
        mass, doubtful = state.mass * factor, np.zeros(len(some), dtype=np.int64)
        moment, seen = moment * factor[:, None], np.zeros(len(some))
        return cls(shift, mass, squares, moment, seen, factor, doubtful, errors)

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

    def see_values(self, before: Any, logs: Logs, values: Values) -> Numbers:
        """Whether float32 is as right for means as for masses, bool (n_queries,).

        It is unless a mean has its values from afar, where logs err most: then all that a row has
        seen of some output is little.
        """
        needed = np.maximum(logs.unit * np.sqrt(self.errors), _SCARCE * self._added(before, logs))
        seen: Numbers = self.seen * values.usual >= needed
        left = np.flatnonzero(~seen)
        sizes = needed[left, None] * values.sizes
        seen[left] = (np.abs(self.moment[left]) >= sizes).all(axis=1)
        return seen

    def _added(self, before: Any, logs: Logs) -> Numbers:
        """The mass of the keys that were folded (n_queries,)."""
        old, some = np.zeros(len(self.mass)), before.mass > 0
        level = (before.shift[some] - logs.constant[some]) * LOG2_E - self.shift[some]
        old[some] = before.mass[some] * np.exp2(np.minimum(level, _HIGHEST))
        return np.maximum(self.mass - old, 0.0)


class _Levels(NamedTuple):
    """Levels of the sums of a state, base 2.

    Attributes
    ----------
    old, new : float64 arrays (n_queries,)
        Theirs, and those that bring masses near 1.
    lost : bool array (n_queries,)
        Where there is no such number: in float32, for logs of millions.
    """

    old: Numbers
    new: Numbers
    lost: Numbers

    @classmethod
    def of(cls, state: Any, logs: Logs) -> _Levels:
        """Those of a state whose logs come from there."""
        some = state.mass > 0
        old = np.where(some, (state.shift - logs.constant) * LOG2_E, 0.0)
        exact = old + np.log2(np.where(some, state.mass, 1.0))
        new = exact.astype(logs.real).astype(np.float64)
        return cls(old, new, np.abs(new - exact) > 1)


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
    may_give_up: bool

    def fold(self, sums: _Sums) -> Numbers:
        """Which queries are better off another way, bool (n_queries,)."""
        most, start, n_keys = float(_FEW), 0, len(self.rows.k)
        while start < n_keys:
            columns = slice(start, min(start + self.logs.keys_at(start), n_keys))
            most += _SHARE * (columns.stop - start)
            allowed = self._allowed(columns)
            if allowed is not None:
                self.logs.fold(sums, self.part, columns, allowed, most)
            if start in _ASKS and self._gives_up(self.logs.hopeless(sums, columns.stop, most)):
                return np.ones(len(sums.mass), dtype=bool)
            start = columns.stop
        return self.logs.hopeless(sums, n_keys, most) & self.may_give_up

    def _gives_up(self, hopeless: Numbers) -> bool:
        return self.may_give_up and bool(np.mean(hopeless) > _MANY_ROWS)

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
