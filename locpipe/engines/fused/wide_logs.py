"""Two ways to the logs of a tile's weights, and what they do where rounding would show."""

from __future__ import annotations

from math import sqrt
from typing import Any, Protocol

import numpy as np

from locpipe.engines.fused import wide_compiled as loops
from locpipe.engines.fused.wide_rows import LOG2_E, Numbers, Rows
from locpipe.kernels.compact import Biweight, Cosine, Triangular, Tricube, Triweight, Uniform
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.gaussian import Gaussian
from locpipe.kernels.heavy import Cauchy, Exponential, Logistic, StudentT
from locpipe.kernels.radial import Radial

__all__ = ["HOPELESS", "Linear", "Logs", "Radially"]

HOPELESS = 2**40
"""Count of doubtful pairs of a row whose logs are not even nearly right."""
_MARGIN = 5.0
"""Standard deviations of an error that rtol has room for."""


class Logs(Protocol):
    """How a tile of products or distances is filled."""

    real: Any
    added: Numbers
    constant: Numbers

    def fill(self, tile: Numbers, rows: slice, columns: slice) -> Numbers:
        """Base 2 logs of weights, but for what `added` holds; how many were in doubt, by row."""

    def settle(self, tile: Numbers, sums: Any, rows: slice, columns: slice) -> Numbers:
        """Repair the weights that matter; how many were repaired, by row."""


class Linear:
    """Log weights that are a product plus a number per key and one per query.

    Gaussian: ``-|x - y|^2 / 2 = <x, y> - |y|^2 / 2 - |x|^2 / 2``.

    Notes
    -----
    The rounding errors of a product of centred rows are as good as independent: each of its n
    additions errs by half a unit in the last place of the sum so far, which grows to the product.
    """

    def __init__(self, rows: Rows, real: Any, rtol: float) -> None:
        self.rows, self.real, self.rtol = rows, real, rtol
        core, d, centre = rows.parts.core, rows.q.shape[1], rows.k.mean(axis=0)
        self.is_dot = isinstance(core, DotProduct)
        if isinstance(core, DotProduct):
            self.inverse, self.q = np.ones(d), rows.q * core.factor(d)
            x, y = self.q, rows.k - centre
            self.own, k_own = x @ centre, np.zeros(len(y))
        else:
            self.inverse, self.q = 1 / np.asarray(core.scale(d)), rows.q
            x, y = (rows.q - centre) * self.inverse, (rows.k - centre) * self.inverse
            self.own, k_own = -0.5 * _squares(x), -0.5 * _squares(y)
        self.x, self.y = (x * LOG2_E).astype(real), y.astype(real)
        self.added = (rows.added + LOG2_E * k_own).astype(real)
        self.constant = rows.constant + self.own
        self.x_norm, self.y_norm = np.sqrt(_squares(x)), sqrt(float(_squares(y).max()))
        self.spread = float(np.abs(rows.added).max()) / LOG2_E

    def fill(self, tile: Numbers, rows: slice, columns: slice) -> Numbers:
        """Products alone."""
        np.dot(self.x[rows], self.y[columns].T, out=tile)
        return np.zeros(len(tile), dtype=np.int64)

    def settle(self, tile: Numbers, sums: Any, rows: slice, columns: slice) -> Numbers:
        """Weights that are more of the mass than independent errors of theirs may be."""
        repaired = np.zeros(len(tile), dtype=np.int64)
        if self.is_dot and self.real is np.float64:
            return repaired
        error = self._error(sums.shift, rows)
        share = (self.rtol / (_MARGIN * error)) ** 2
        loops.repair(self.real)(
            tile, sums.best, sums.shift, share, sums.mass, sums.squares, repaired,
            self.q[rows], self.rows.k[columns], self.inverse, self.is_dot,
            self.rows.added[columns], self.own[rows],
        )  # fmt: skip
        repaired[error > 0.05] = HOPELESS
        return repaired

    def _error(self, shift: Numbers, rows: slice) -> Numbers:
        """Standard deviation of the log of a weight near the row's largest."""
        unit = 0.3 * float(np.finfo(self.real).eps)
        n_terms = sqrt(min(self.x.shape[1], 384) / 3) + 2
        x, best = self.x_norm[rows], np.where(np.isfinite(shift), shift, 0) / LOG2_E
        if self.is_dot:
            product = np.minimum(x * self.y_norm, np.abs(best) + self.spread)
            return unit * (n_terms * product + self.spread + 1)
        nearest = np.sqrt(np.maximum(x * x - 2 * best + 2 * self.spread, 0))
        norm = np.minimum(self.y_norm, x + nearest)
        half = 0.5 * norm * norm
        product = np.minimum(x * norm, np.maximum(np.abs(best), best + half) + self.spread)
        error: Numbers = unit * (n_terms * product + half + self.spread + 1)
        return error


def _squares(x: Numbers) -> Numbers:
    squares: Numbers = np.einsum("ij,ij->i", x, x)
    return squares


class Radially:
    """Log profiles of squared distances, from products or from differences."""

    real = np.float64

    def __init__(self, rows: Rows, rtol: float, *, from_products: bool) -> None:
        core, d = rows.parts.core, rows.q.shape[1]
        assert isinstance(core, Radial)
        h = np.asarray(core.scale(d))
        self.rows, self.core, self.from_products = rows, core, from_products
        self.scale = h / h.max()
        self.q_factor = _factor(rows.q_block.bandwidth, len(rows.q)) * h.max()
        self.k_factor = _factor(rows.k_block.bandwidth, len(rows.k))
        self.added, self.constant = rows.added, rows.constant
        if from_products:
            self._make_products_ready(rtol)

    def _make_products_ready(self, rtol: float) -> None:
        centre = self.rows.k.mean(axis=0)
        self.x, self.y = (self.rows.q - centre) / self.scale, (self.rows.k - centre) / self.scale
        self.x2, self.y2 = _squares(self.x), _squares(self.y)
        self.q_precision, self.k_precision = self.q_factor**-2.0, self.k_factor**-2.0
        reach, n_terms = float(self.y2.max()), sqrt(min(self.x.shape[1], 384)) + 2
        error = n_terms * np.sqrt(self.x2 * reach) + self.x2 + reach
        error *= np.finfo(np.float64).eps * self.q_precision * float(self.k_precision.max())
        slope = _MARGIN * error / rtol
        self.near, self.edge = (
            _near(self.core, slope, self.x.shape[1]),
            _edge(self.core, slope, error),
        )

    def fill(self, tile: Numbers, rows: slice, columns: slice) -> Numbers:
        """Squared distances, and the log profile of them."""
        doubtful = np.zeros(len(tile), dtype=np.int64)
        scale = self.scale, self.q_factor[rows], self.k_factor[columns]
        q, k = self.rows.q[rows], self.rows.k[columns]
        if self.from_products:
            np.dot(self.x[rows], self.y[columns].T, out=tile)
            loops.squares_from_products()(
                tile, self.x2[rows], self.y2[columns], self.q_precision[rows],
                self.k_precision[columns], self.near[rows], self.edge[rows], q, k, *scale, doubtful,
            )  # fmt: skip
        else:
            loops.squares_from_differences()(tile, q, np.ascontiguousarray(k.T), *scale)
        np.multiply(self.core.log_profile(tile, q.shape[1]), LOG2_E, out=tile)
        return doubtful

    def settle(self, tile: Numbers, sums: Any, rows: slice, columns: slice) -> Numbers:
        """Distances were settled before."""
        return np.zeros(len(tile), dtype=np.int64)


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
