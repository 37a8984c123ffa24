"""Two ways to the logs of a tile's weights, and what they do where rounding would show."""

from __future__ import annotations

from math import sqrt
from typing import Any, Protocol

import numpy as np

from locpipe.blocks import row_slices
from locpipe.engines.fused import wide_compiled as loops
from locpipe.engines.fused.memory import aligned
from locpipe.engines.fused.panels import KEYS, Panel, panel_of
from locpipe.engines.fused.wide_direct import fold_products
from locpipe.engines.fused.wide_profiles import take_logs
from locpipe.engines.fused.wide_rows import LOG2_E, Numbers, Rows
from locpipe.engines.fused.wide_squares import squares_from_differences, squares_from_products
from locpipe.engines.fused.wide_values import Values, no_values
from locpipe.kernels.compact import Biweight, Cosine, Triangular, Tricube, Triweight, Uniform
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.gaussian import Gaussian
from locpipe.kernels.heavy import Cauchy, Exponential, Logistic, StudentT
from locpipe.kernels.radial import Radial

__all__ = ["Linear", "Logs", "Radially"]

_SHARED = 0.5
"""Of rtol, what rounding of a query may do to all its weights alike."""
_MARGIN = 4.0
"""Standard deviations of an error that rtol has room for."""
_LARGEST_SQUARE = {np.float32: 1e16, np.float64: 1e140}
"""Beyond these squares of rows in bandwidths, squares of theirs may not be numbers."""
_BLOCKED = 384
"""Terms of a product that BLAS sums in one go."""
_TILE_KEYS_OF_MANY_OUTPUTS, _MANY_OUTPUTS = 2048, 256
_MOST_KEYS = 4096
_ADDED_UP = {np.float32: 48, np.float64: _MOST_KEYS}
"""Products that BLAS adds up: rounding grows with their number, and where all are alike, as fast as
it."""


class Logs(Protocol):
    """Where logs of weights come from (`real` numbers); the weights are `small` numbers.

    `coarse` (n_queries,) says which queries rounding alone moves too far.
    """

    real: Any
    small: Any
    unit: float
    coarse: Numbers
    in_range: bool
    added: Numbers
    constant: Numbers

    def keys_at(self, start: int) -> int:
        """How many keys to fold at a time from there on."""

    def fold(self, sums: Any, rows: slice, columns: slice, allowed: Numbers, most: float) -> None:
        """Fold pairs into sums; counts those in doubt, `most` of which are worth it.

        `allowed` says which pairs may be neighbours (n_queries, n_keys); it has no rows where all
        may.
        """

    def hopeless(self, sums: Any, n_seen: int, most: float) -> Numbers:
        """Queries that are better off another way, after that many keys, bool (n_queries,)."""


class Linear:
    """Log weights that are a product plus a number per key and one per query.

    Gaussian: ``-|x - y|^2 / 2 = <x, y> - |y|^2 / 2 - |x|^2 / 2``.
    """

    def __init__(self, rows: Rows, real: Any, rtol: float, values: Values | None) -> None:
        self.rows, self.real, self.small, self.rtol = rows, real, real, rtol / _MARGIN
        self.coarse = np.zeros(len(rows.q), dtype=bool)
        core, d, centre = rows.parts.core, rows.q.shape[1], rows.centre
        self.is_dot = isinstance(core, DotProduct)
        panel = panel_of(real)
        if isinstance(core, DotProduct):
            factor, origin = np.full(d, core.factor(d)), np.zeros(d)
            self.x, q2, _ = _ready(rows.q, real, panel.rows, origin, factor, LOG2_E)
            self.y, k2, _ = _ready(rows.k, real, panel.columns, centre, np.ones(d))
            self.own, k_own = rows.q @ (factor * centre), np.zeros(len(k2))
        else:
            factor = 1 / np.asarray(core.scale(d))
            self.x, q2, lost = _ready(rows.q, real, panel.rows, centre, factor, LOG2_E)
            self.y, k2, k_lost = _ready(rows.k, real, panel.columns, centre, factor)
            # What a key lost in rounding it lost beside all that is near, which is where it counts.
            self.own, k_own = -0.5 * q2, LOG2_E * (k_lost - 0.5 * k2)
            self.coarse = np.abs(lost) > _SHARED * rtol * LOG2_E
        self.in_range = self.is_dot or max(q2.max(), k2.max()) < _LARGEST_SQUARE[real]
        if not self.in_range:
            return
        self.added = np.full(len(self.y) * panel.columns, -np.inf, dtype=real)
        self.added[: len(rows.k)] = rows.added + k_own
        self.constant = rows.constant + self.own
        self.values = no_values(real) if values is None else values.packed(real)
        self._watch_rounding(k2)

    def _watch_rounding(self, k2: Numbers) -> None:
        """Variance of a log from rounding, in squares of a unit, that in what rtol has room for.

        A product of n terms errs by ``sqrt(n / 3)`` times half a unit in its last place, since its
        sum so far grows from 0 on; what is added to it is rounded too.  Keys that are alike, which
        their squares tell, err alike: as many as there are count as one.
        """
        added = np.where(np.isfinite(self.added), self.added, 0.0).astype(np.float64)
        self.rounding = (2 * added**2 + 1).astype(self.real)
        self.terms = np.array([(self.x.shape[1] + 16) / 3], dtype=self.real)
        # Products in float64 of a kernel that is a product are all that there is.
        exact = self.is_dot and self.real is np.float64
        alike = float(np.unique(k2, return_counts=True)[1].max())
        unit = sqrt(alike) * 0.25 * float(np.finfo(self.real).eps) / LOG2_E / self.rtol
        self.unit = 0.0 if exact else unit

    def keys_at(self, start: int) -> int:
        """Few at first: the rows may be better off another way."""
        masked = bool(self.rows.parts.masks)
        return KEYS if masked else min(max(start, KEYS), _MOST_KEYS)

    def fold(self, sums: Any, rows: slice, columns: slice, allowed: Numbers, most: float) -> None:
        """A stretch of keys, in panels."""
        values, shares, panel = self.values
        size, masked = panel_of(self.real), len(allowed) > 0
        x = self.x[rows.start // size.rows : -(-rows.stop // size.rows)]
        if masked:
            allowed = _in_whole_panels(allowed, size)
        fold_products(self.real, panel, masked)(
            x, self.y, self.added, self.rounding, columns.start, columns.stop, allowed, values,
            shares, sums.moment, sums.seen, sums.shift, sums.factor, sums.mass, sums.squares,
            sums.errors, self.terms,
        )  # fmt: skip

    def hopeless(self, sums: Any, n_seen: int, most: float) -> Numbers:
        """Those whose errors are too large; they are independent, so that variances add up."""
        errors = self.unit**2 * sums.errors
        return np.asarray(errors * n_seen > sums.mass**2 * len(self.rows.k))


def _in_whole_panels(allowed: Numbers, panel: Panel) -> Numbers:
    n_rows, n_keys = (-(-n // size) * size for n, size in zip(
        allowed.shape, (panel.rows, panel.columns), strict=True))  # fmt: skip
    whole = np.zeros((n_rows, n_keys), dtype=np.bool_)
    whole[: allowed.shape[0], : allowed.shape[1]] = allowed
    return whole


def _ready(
    data: Numbers, real: Any, width: int, centre: Numbers, factor: Numbers, last: float = 1.0
) -> tuple[Numbers, Numbers, Numbers]:
    """Rows centred and scaled, in panels; in float64 their squares and what rounding took of them.

    Neither has the last factor but once.
    """
    n, d = data.shape
    out, squares = aligned((-(-n // width), d, width), real), np.empty(n)
    lost = np.empty(n)
    source: Any = data.dtype.type
    loops.ready(source, real)(data, centre, factor, last, out, squares, lost)
    return out, squares, lost


class Radially:
    """Log profiles of squared distances, from products or from differences."""

    real: Any = np.float64
    unit = 0.0
    in_range = True

    def __init__(
        self, rows: Rows, small: Any, rtol: float, values: Values | None, *, from_products: bool
    ) -> None:
        core, d = rows.parts.core, rows.q.shape[1]
        assert isinstance(core, Radial)
        h = np.asarray(core.scale(d))
        self.rows, self.core, self.from_products = rows, core, from_products
        self.small, self.values = small, None if values is None else values.rows(small)
        self.coarse = np.zeros(len(rows.q), dtype=bool)
        self.scale = h / h.max()
        self.q_factor = _factor(rows.q_block.bandwidth, len(rows.q)) * h.max()
        self.k_factor = _factor(rows.k_block.bandwidth, len(rows.k))
        self.added, self.constant = rows.added, rows.constant
        self.buffers = np.empty(0), np.empty(0)
        if from_products:
            self._make_products_ready(rtol)

    def _make_products_ready(self, rtol: float) -> None:
        centre, inverse = self.rows.centre, 1 / self.scale
        x, self.x2, _ = _ready(self.rows.q, np.float64, 1, centre, inverse)
        y, self.y2, _ = _ready(self.rows.k, np.float64, 1, centre, inverse)
        self.x, self.y = x[:, :, 0], y[:, :, 0]
        self.q_precision, self.k_precision = self.q_factor**-2.0, self.k_factor**-2.0
        reach, n_terms = float(self.y2.max()), sqrt(min(self.x.shape[1], _BLOCKED)) + 2
        error = n_terms * np.sqrt(self.x2 * reach) + self.x2 + reach
        error *= np.finfo(np.float64).eps * self.q_precision * float(self.k_precision.max())
        slope = _MARGIN * error / rtol
        self.near = _near(self.core, slope, self.x.shape[1])
        self.edge = _edge(self.core, slope, error)

    def keys_at(self, start: int) -> int:
        """A tile fills half of the second-level cache of a core.

        Where the sums of its queries are larger than that anyway, more keys for each time that they
        are read are worth more.
        """
        many = self.values is not None and self.values.shape[1] >= _MANY_OUTPUTS
        return _TILE_KEYS_OF_MANY_OUTPUTS if many else KEYS

    def fold(self, sums: Any, rows: slice, columns: slice, allowed: Numbers, most: float) -> None:
        """Squared distances, their logs, weights, sums."""
        logs, weights = self._tiles(rows.stop - rows.start, columns.stop - columns.start)
        self._fill(logs, rows, columns, sums.doubtful)
        take_logs(self.core, logs, self.rows.q.shape[1])
        if len(allowed):
            np.copyto(logs, -np.inf, where=~allowed)
        state = sums.shift, sums.factor, sums.mass, sums.squares
        weigh = loops.weigh(self.real, self.small, sums.no_moment)
        weigh(logs, weights, self.added[columns], *state)
        if self.values is not None:
            self._meet(logs if self.real is self.small else weights, columns, sums)

    def _meet(self, weights: Numbers, columns: slice, sums: Any) -> None:
        """Add products of weights and values to the moments."""
        assert self.values is not None
        values, accumulate = self.values[columns], loops.accumulate(self.small)
        for keys in row_slices(len(values), _ADDED_UP[self.small]):
            accumulate(sums.moment, sums.factor, weights[:, keys] @ values[keys])
            sums.factor[:] = 1

    def hopeless(self, sums: Any, n_seen: int, most: float) -> Numbers:
        """Those of many doubtful pairs."""
        return np.asarray(sums.doubtful > most)

    def _tiles(self, n_rows: int, n_keys: int) -> tuple[Numbers, Numbers]:
        """Two parts of what is kept, lest pages of memory are asked for at each tile."""
        size = n_rows * n_keys
        if len(self.buffers[0]) < size:
            self.buffers = np.empty(size, dtype=self.real), np.empty(size, dtype=self.small)
        logs, weights = (buffer[:size].reshape(n_rows, n_keys) for buffer in self.buffers)
        return logs, weights

    def _fill(self, tile: Numbers, rows: slice, columns: slice, doubtful: Numbers) -> None:
        scale = self.scale, self.q_factor[rows], self.k_factor[columns]
        q, k, source = self.rows.q[rows], self.rows.k[columns], self.rows.source
        if not self.from_products:
            squares_from_differences(source)(tile, q, np.ascontiguousarray(k.T), *scale)
            return
        np.dot(self.x[rows], self.y[columns].T, out=tile)
        squares_from_products(source)(
            tile, self.x2[rows], self.y2[columns], self.q_precision[rows],
            self.k_precision[columns], self.near[rows], self.edge[rows], q, k, *scale, doubtful,
        )  # fmt: skip


def _factor(bandwidth: Any, n_rows: int) -> Numbers:
    return np.ones(n_rows) if bandwidth is None else np.asarray(bandwidth, dtype=np.float64)


def _near(core: Radial, slope: Numbers, d: int) -> Numbers:
    """Squared distances below which the log profile is steeper than ``1 / slope``."""
    kind = type(core)
    if kind is Gaussian:
        return np.where(slope > 2, np.inf, 0.0)
    if kind in (Exponential, Logistic, Triangular):
        return np.square(0.5 * slope)
    if isinstance(core, StudentT):
        return np.asarray(0.5 * (core.nu + d) * slope - core.nu)
    if kind is Cauchy:
        return np.asarray(0.5 * (1 + d) * slope - 1)
    return np.zeros_like(slope)


_STEEPNESS = {Triangular: 2.0, Biweight: 2.0, Triweight: 3.0, Tricube: 4.5, Cosine: 2.0}
"""How fast the log falls near the support's end: at most this over ``1 - u^2``."""


def _edge(core: Radial, slope: Numbers, error: Numbers) -> Numbers:
    """How near to 1 squared distances are in doubt."""
    if core.support > 1:
        return np.full_like(slope, -1.0)
    if type(core) is Uniform:
        return 10 * error
    steepness = _STEEPNESS.get(type(core), 1.0)
    return np.asarray(np.maximum(steepness * slope, 10 * error))
