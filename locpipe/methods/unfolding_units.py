"""Units in which squares of dissimilarities neither underflow nor overflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from locpipe.blocks import PairSource, Tile

__all__ = ["Units", "in_units"]

Floats = NDArray[np.float64]

SAFE = 200
"""Powers of 2 that a largest dissimilarity or weight may be from 1: w delta^2 and its sums then
stay within 2^-1022 to 2^1023, and common data are used as they are."""

_ROWS = 256


@dataclass(frozen=True)
class Units:
    """Powers of 2, by which to multiply is exact.

    Attributes
    ----------
    length, weight : int
        Exponents of the unit of dissimilarities and of the unit of weights.
    """

    length: int
    weight: int

    def lengths(self, points: Floats) -> Floats:
        """Points in the user's unit."""
        return np.ldexp(points, self.length)

    def stresses(self, stress: Floats) -> Floats:
        """Stress in the user's unit: 0 or infinite where that is out of range."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(stress, 2 * self.length + self.weight)


@dataclass(frozen=True)
class _Scaled:
    """Cells in other units, computed as they are read."""

    pairs: PairSource
    units: Units

    @property
    def shape(self) -> tuple[int, int]:
        return self.pairs.shape

    def tile(self, rows: slice, columns: slice) -> Tile:
        cells = self.pairs.tile(rows, columns)
        exponents = (-self.units.length, -self.units.weight)
        return tuple(
            np.ldexp(np.asarray(cell, np.float64), exponent)
            for cell, exponent in zip(cells, exponents, strict=False)
        )


def in_units(pairs: PairSource) -> tuple[Units, PairSource]:
    """Units for the cells, 1 wherever that will do, and the cells in them."""
    largest = [0.0, 0.0]
    for start in range(0, pairs.shape[0], _ROWS):
        for kind, cells in enumerate(pairs.tile(slice(start, start + _ROWS), slice(None))):
            # fmax passes over the missing ones.
            largest[kind] = float(np.fmax.reduce(cells, axis=None, initial=largest[kind]))
    units = Units(*map(_exponent, largest))
    return units, pairs if units == Units(0, 0) else _Scaled(pairs, units)


def _exponent(largest: float) -> int:
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > SAFE else 0
