"""Two ways to the logs of a tile's weights, and what they do where rounding would show."""

from __future__ import annotations

from math import sqrt
from typing import Any, Protocol

import numpy as np

from locpipe.engines.fused import wide_compiled as loops
from locpipe.engines.fused.wide_profiles import take_logs
from locpipe.engines.fused.wide_rows import LOG2_E, Numbers, Rows
from locpipe.kernels.compact import Biweight, Cosine, Triangular, Tricube, Triweight, Uniform
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.gaussian import Gaussian
from locpipe.kernels.heavy import Cauchy, Exponential, Logistic, StudentT
from locpipe.kernels.radial import Radial

__all__ = ["Linear", "Logs", "Radially"]

_MARGIN = 8.0
"""Standard deviations of an error that rtol has room for."""
_STEEP = (2.5 * _MARGIN) ** -4.0
"""Variances count twice where a standard deviation is 2.5 rtol, and soon much more beyond."""
_NEARLY = 0.05
"""Error of a log up to which its weight says whether it matters."""
_LARGEST_SQUARE = {np.float32: 1e16, np.float64: 1e140}
"""Beyond these squares of rows in bandwidths, squares of theirs may not be numbers."""
_BLOCKED = 384
"""Terms of a product that BLAS sums in one go."""


class Logs(Protocol):
    """How a tile is filled with logs of weights (`real` numbers), which become `small` ones."""

    real: Any
    small: Any
    in_range: bool
    added: Numbers
    constant: Numbers

    def fill(self, tile: Numbers, rows: slice, columns: slice, doubtful: Numbers) -> None:
        """Base 2 logs of weights, but for what `added` holds; counts the pairs in doubt."""

    def weigh(
        self, tile: Numbers, out: Numbers, sums: Any, rows: slice, columns: slice, most: float
    ) -> None:
        """Logs become weights, those that matter right ones; counts the pairs in doubt."""


class Linear:
    """Log weights that are a product plus a number per key and one per query.

    Gaussian: ``-|x - y|^2 / 2 = <x, y> - |y|^2 / 2 - |x|^2 / 2``.
    """

    def __init__(self, rows: Rows, real: Any, small: Any, rtol: float) -> None:
        self.rows, self.real, self.small, self.rtol = rows, real, small, rtol / _MARGIN
        core, d, centre = rows.parts.core, rows.q.shape[1], rows.centre
        self.is_dot = isinstance(core, DotProduct)
        if isinstance(core, DotProduct):
            self.factor, origin = np.full(d, core.factor(d)), np.zeros(d)
            self.x, q2 = _ready(rows.q, real, origin, self.factor, LOG2_E)
            self.y, k2 = _ready(rows.k, real, centre, np.ones(d))
            self.own, k_own = rows.q @ (self.factor * centre), np.zeros(len(k2))
        else:
            self.factor = 1 / np.asarray(core.scale(d))
            self.x, q2 = _ready(rows.q, real, centre, self.factor, LOG2_E)
            self.y, k2 = _ready(rows.k, real, centre, self.factor)
            self.own, k_own = -0.5 * q2, -0.5 * LOG2_E * k2
        self.in_range = self.is_dot or max(q2.max(), k2.max()) < _LARGEST_SQUARE[real]
        if not self.in_range:
            return
        self.added = (rows.added + k_own).astype(real)
        self.constant = rows.constant + self.own
        self._watch_rounding()

    def _watch_rounding(self) -> None:
        """Variance of a log from rounding, in units of rtol squared.

        A product of n terms errs by ``sqrt(n / 3)`` times half a unit in its last place, since its
        sum so far grows from 0 on; what is added to it is rounded too.
        """
        unit = 0.25 * float(np.finfo(self.real).eps) / LOG2_E / self.rtol
        n_terms = min(self.x.shape[1], _BLOCKED) + 16
        self.terms = self.real(unit * unit * n_terms / 3)
        self.rounding = (unit * unit * (2 * self.added.astype(np.float64) ** 2 + 1)).astype(
            self.real
        )
        self.watched = not (self.is_dot and self.real is np.float64)

    def fill(self, tile: Numbers, rows: slice, columns: slice, doubtful: Numbers) -> None:
        """Products alone."""
        np.dot(self.x[rows], self.y[columns].T, out=tile)

    def weigh(
        self, tile: Numbers, out: Numbers, sums: Any, rows: slice, columns: slice, most: float
    ) -> None:
        """Weights that are more of the mass than independent errors may be are computed anew."""
        added, r, kinds = self.added[columns], self.rows, (self.real, self.small)
        state = sums.shift, sums.factor, sums.mass, sums.squares
        if not self.watched:
            loops.weigh(*kinds, sums.no_moment)(tile, out, added, *state)
            return
        steep = 0.0 if sums.no_moment else _STEEP
        variance = self.rounding[columns], self.terms, self.real(steep)
        bounds = (_NEARLY / self.rtol) ** 2, most
        pairs = r.q[rows], r.k[columns], self.factor, self.is_dot, r.added[columns], self.own[rows]
        loop = loops.weigh_and_repair(r.source, *kinds, sums.no_moment)
        loop(tile, out, added, *state, sums.doubtful, *variance, *bounds, *pairs)


def _ready(
    data: Numbers, real: Any, centre: Numbers, factor: Numbers, last: float = 1.0
) -> tuple[Numbers, Numbers]:
    """Rows centred and scaled, and their squares in float64, without the last factor."""
    out, squares = np.empty(data.shape, dtype=real), np.empty(len(data))
    source: Any = data.dtype.type
    loops.ready(source, real)(data, centre, factor, last, out, squares)
    return out, squares


class Radially:
    """Log profiles of squared distances, from products or from differences."""

    real: Any = np.float64
    in_range = True

    def __init__(self, rows: Rows, small: Any, rtol: float, *, from_products: bool) -> None:
        core, d = rows.parts.core, rows.q.shape[1]
        assert isinstance(core, Radial)
        h = np.asarray(core.scale(d))
        self.rows, self.core, self.from_products = rows, core, from_products
        self.small = small
        self.scale = h / h.max()
        self.q_factor = _factor(rows.q_block.bandwidth, len(rows.q)) * h.max()
        self.k_factor = _factor(rows.k_block.bandwidth, len(rows.k))
        self.added, self.constant = rows.added, rows.constant
        if from_products:
            self._make_products_ready(rtol)

    def _make_products_ready(self, rtol: float) -> None:
        centre, inverse = self.rows.centre, 1 / self.scale
        self.x, self.x2 = _ready(self.rows.q, np.float64, centre, inverse)
        self.y, self.y2 = _ready(self.rows.k, np.float64, centre, inverse)
        self.q_precision, self.k_precision = self.q_factor**-2.0, self.k_factor**-2.0
        reach, n_terms = float(self.y2.max()), sqrt(min(self.x.shape[1], _BLOCKED)) + 2
        error = n_terms * np.sqrt(self.x2 * reach) + self.x2 + reach
        error *= np.finfo(np.float64).eps * self.q_precision * float(self.k_precision.max())
        slope = _MARGIN * error / rtol
        self.near = _near(self.core, slope, self.x.shape[1])
        self.edge = _edge(self.core, slope, error)

    def fill(self, tile: Numbers, rows: slice, columns: slice, doubtful: Numbers) -> None:
        """Squared distances, and the log profile of them."""
        scale = self.scale, self.q_factor[rows], self.k_factor[columns]
        q, k = self.rows.q[rows], self.rows.k[columns]
        if self.from_products:
            np.dot(self.x[rows], self.y[columns].T, out=tile)
            loops.squares_from_products(self.rows.source)(
                tile, self.x2[rows], self.y2[columns], self.q_precision[rows],
                self.k_precision[columns], self.near[rows], self.edge[rows], q, k, *scale, doubtful,
            )  # fmt: skip
        else:
            keys_by_feature = np.ascontiguousarray(k.T)
            loops.squares_from_differences(self.rows.source)(tile, q, keys_by_feature, *scale)
        take_logs(self.core, tile, q.shape[1])

    def weigh(
        self, tile: Numbers, out: Numbers, sums: Any, rows: slice, columns: slice, most: float
    ) -> None:
        """Distances were settled before."""
        state = sums.shift, sums.factor, sums.mass, sums.squares
        weigh = loops.weigh(self.real, self.small, sums.no_moment)
        weigh(tile, out, self.added[columns], *state)


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
