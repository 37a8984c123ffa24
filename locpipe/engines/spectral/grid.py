"""The grid of modes: where it lies, how fine it must be, and what it leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import ceil, erfc, isfinite, log, pi, prod, sqrt

import numpy as np

from locpipe.blocks import Array
from locpipe.engines.base import Need

__all__ = ["TOLERANCE", "Grid", "lay_out"]

TOLERANCE = 5e-15
"""Error of the two transforms by the sum of the sizes of the coefficients, at best."""

_LOOSEST = 1e-9
_WIDEST_PADDING = 4.0
"""Bandwidths beyond the box; more would be paid for by every row for the sake of few."""


@dataclass(frozen=True)
class Grid:
    """A periodic box around the keys, and the modes on it.

    Attributes
    ----------
    centre : tuple of n_features floats
        Middle of the box, feature units.
    bandwidth : tuple of n_features floats
        Feature units.
    reach : tuple of n_features floats
        Half the padded box, in bandwidths: queries within it are served.
    period : tuple of n_features floats
        In bandwidths.
    modes : tuple of n_features odd ints
        Modes ``-(m - 1) / 2 .. (m - 1) / 2`` of each feature.
    tolerance : float
        Error of the transforms, by the sum of the sizes of the coefficients.
    tail : float
        Weight of the modes left out and of the periodic images, by that of all keys.
    """

    centre: tuple[float, ...]
    bandwidth: tuple[float, ...]
    reach: tuple[float, ...]
    period: tuple[float, ...]
    modes: tuple[int, ...]
    tolerance: float
    tail: float

    @property
    def eps(self) -> float:
        """What the transforms are asked for; they keep a tenth of it, half of it is relied on."""
        return 2 * self.tolerance

    @property
    def fine(self) -> float:
        """Ratio of the grid that the transforms work on to that of the modes, per feature.

        A smaller one takes wider sums over cells, as far as the library goes.
        """
        return 2.0 if self.eps < 2e-12 else 1.5

    @property
    def cells(self) -> int:
        """Cells of the finer grid that the transform works on."""
        return prod(ceil(self.fine * m) for m in self.modes)

    def angles(self, data: Array) -> tuple[list[Array], Array]:
        """Coordinates as angles, one array per feature, and which rows are in the padded box.

        Rows outside are put in the middle.
        """
        with np.errstate(over="ignore"):
            u = [
                (data[:, j].astype(np.float64) - centre) / h
                for j, (centre, h) in enumerate(zip(self.centre, self.bandwidth, strict=True))
            ]
        inside = np.logical_and.reduce([np.abs(x) <= r for x, r in zip(u, self.reach, strict=True)])
        if not inside.all():
            u = [np.where(inside, x, 0.0) for x in u]
        return [x * (2 * pi / length) for x, length in zip(u, self.period, strict=True)], inside

    def kernel(self, power: int) -> Array:
        """Fourier coefficients of the Gaussian to a power, real, one per mode."""
        factors = []
        for length, m in zip(self.period, self.modes, strict=True):
            frequency = (np.arange(m) - m // 2) * (2 * pi / length)
            factors.append(sqrt(2 * pi / power) / length * np.exp(frequency**2 / (-2 * power)))
        return reduce(np.multiply.outer, factors)


def lay_out(need: Need, bandwidth: tuple[float, ...], power: int) -> Grid | None:
    """The grid that keeps `need.rtol` where it can; None where no float64 grid is fine enough.

    `power` is the highest power of the kernel that is summed.  `need.spread` is not None.
    """
    spread = need.spread
    if spread is None:
        raise ValueError("a grid needs the box of the keys")
    d = len(bandwidth)
    peak = _peak(need, bandwidth)
    tolerance = _tolerance(need, peak)
    tail = max(1e-18, tolerance * peak / 8)
    highest = sqrt(2 * power) * _inverse_erfc(tail / (2 * d))
    apart = sqrt(2 * log(3 * d / tail))
    padding = min(_WIDEST_PADDING, sqrt(2 * log(max(1.0, need.rtol / (tolerance * peak)))))
    half = [
        (high / 2 - low / 2) / h
        for low, high, h in zip(spread.low, spread.high, bandwidth, strict=True)
    ]
    period = [2 * x + padding + apart for x in half]
    modes = [highest * length / pi for length in period]
    if not all(isfinite(m) and m < 2**31 for m in modes):
        return None
    return Grid(
        centre=tuple(low / 2 + high / 2 for low, high in zip(spread.low, spread.high, strict=True)),
        bandwidth=bandwidth,
        reach=tuple((x + padding) * (1 + 1e-12) for x in half),
        period=tuple(period),
        modes=tuple(2 * ceil(m / 2) + 1 for m in modes),
        tolerance=tolerance,
        tail=2 * tail,
    )


def _peak(need: Need, bandwidth: tuple[float, ...]) -> float:
    """Largest mass by the weight of all keys, were they normal; noise and single keys added."""
    if need.spread is None:
        return 1.0
    shares = [h / sqrt(h * h + v) for h, v in zip(bandwidth, need.spread.variance, strict=True)]
    n = max(1, need.n_keys)
    return min(1.0, 2 * prod(shares) + 1 / sqrt(n) + 1 / n)


def _tolerance(need: Need, peak: float) -> float:
    """As fine as float64 allows, which costs nothing while grids are small.

    In three features the grid is what costs; there a lonely key among keys of like weight must
    still be certain of its own mass, 1, and of squares and values a hundredth of that.
    """
    if need.n_features < 3:
        return TOLERANCE
    enough = need.rtol / (800 * peak * max(1, need.n_keys))
    return min(max(TOLERANCE, enough), _LOOSEST)


def _inverse_erfc(tail: float) -> float:
    """Smallest x with ``erfc(x) <= tail``, by bisection, so that SciPy stays unloaded."""
    low, high = 0.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if erfc(middle) > tail else (low, middle)
    return high
