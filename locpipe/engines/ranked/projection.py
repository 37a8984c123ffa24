"""Rows in few dimensions: squared distances there bound those in all from below."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp
from typing import Self

import numpy as np

from locpipe.blocks import row_slices
from locpipe.engines.ranked.loops import centre_rows, squared_lengths
from locpipe.engines.ranked.sides import read_only

__all__ = ["Frame", "Shadow"]

_ROUNDOFF = 2.0**-24
_TINY = 1e-34
"""What float32 may lose to underflow in a row of reach 1."""
_FEATURES = 128
"""Features whose products are summed in float32 before float64 takes over."""
_LARGEST, _RANGE = 1e4, 1e12
"""Lengths in units of the frame, and units, in which float32 keeps squares."""
_HUGE = 1e250
"""Coordinates beyond it are far out of range, and left out of sums."""
_BLOCK = 2**22
_ROUNDS, _SPARE = 2, 16
"""Of the search for leading directions: products with the sample, and directions too many."""


@dataclass(frozen=True, eq=False)
class Shadow:
    """Projected rows, each with the length of what is left of it as one more coordinate.

    For exact rows x, y and their shadows a, b: ``|x - y| >= |a - b| - error_x - error_y``, in
    units of the frame.

    Attributes
    ----------
    rows : float32 array (n, m + 1)
    squares : float64 array (n,)
        Squared lengths of `rows`.
    error : float64 array (n,)
        Infinite where numbers leave the range of float32.
    """

    rows: np.ndarray
    squares: np.ndarray
    error: np.ndarray

    def part(self, rows: slice) -> Shadow:
        """Some of the rows, as views."""
        return Shadow(self.rows[rows], self.squares[rows], self.error[rows])


@dataclass(frozen=True, eq=False)
class Frame:
    """Where rows are projected: around a centre, in a unit, onto nearly orthonormal directions.

    Attributes
    ----------
    centre : float64 array (n_features,)
    scale : float
        A power of two.
    basis : float32 array (n_features, m)
        Directions of most variance first.
    products : float64 array (m, m)
        Of the directions with each other, less 1 of each with itself.
    """

    centre: np.ndarray
    scale: float
    basis: np.ndarray
    products: np.ndarray

    @classmethod
    def of(cls, sample: np.ndarray, m: int) -> Self:
        """Leading principal directions of some rows, nearly."""
        sample = np.clip(sample.astype(np.float64), -_HUGE, _HUGE)
        centre = sample.mean(axis=0)
        reach = float(np.abs(sample - centre).max(initial=0.0))
        scale = float(2.0 ** -(frexp(reach)[1] if reach > 0 else 0))
        moved = ((sample - centre) * scale).astype(np.float32)
        basis = _leading_directions(moved, min(m, sample.shape[1]))
        wide = basis.astype(np.float64)
        return cls(centre, scale, basis, wide.T @ wide - np.eye(basis.shape[1]))

    @property
    def in_range(self) -> bool:
        """Whether float32 keeps squares in the unit of the frame, or no row is."""
        return 1 / _RANGE < self.scale < _RANGE

    def shadows(self, data: np.ndarray, widths: tuple[int, ...]) -> tuple[Shadow, ...]:
        """Shadows on the first of the directions, for each of some numbers of them."""
        n, d = data.shape
        widths = tuple(min(m, self.basis.shape[1]) for m in widths)
        made = [
            Shadow(np.empty((n, m + 1), dtype=np.float32), np.empty(n), np.empty(n)) for m in widths
        ]
        step = max(64, _BLOCK // d)
        for rows in row_slices(n, step):
            moved = np.empty(data[rows].shape, dtype=np.float32)
            centre_rows(read_only(data[rows]), self.centre, self.scale, moved)
            squares = squared_lengths(moved)
            far = ~((squares < _LARGEST * _LARGEST) & self.in_range)
            moved[far], squares[far] = 0.0, 0.0
            projected = self._project(moved)
            for m, whole in zip(widths, made, strict=True):
                _fill(projected[:, :m], squares, self._error(m), whole.part(rows))
                whole.error[rows][far] = np.inf
        return tuple(made)

    def places(self, data: np.ndarray, m: int) -> np.ndarray:
        """Rows along the first m directions, roughly: for order, and no bound."""
        with np.errstate(all="ignore"):
            along = data @ self.basis[:, :m].astype(data.dtype)
            place: np.ndarray = np.nan_to_num(along - (self.centre @ self.basis[:, :m]))
        return place

    def _project(self, moved: np.ndarray) -> np.ndarray:
        total = np.zeros((len(moved), self.basis.shape[1]))
        for start in range(0, moved.shape[1], _FEATURES):
            part = slice(start, start + _FEATURES)
            total += moved[:, part] @ self.basis[part]
        return total

    def _error(self, m: int) -> float:
        """Error of a projected row, over its length.

        A product of n terms, in any order of sums, is wrong by at most ``n u |x|.|v|`` (Higham
        2002, eq. 3.5), so m of them by ``n u |x| |V|_F``.  V differs from its polar factor, which
        is orthonormal, by at most ``|V'V - 1|_F``.
        """
        off = float(np.linalg.norm(self.products[:m, :m]))
        terms = min(_FEATURES, len(self.basis)) + 2
        return float(1.1 * (terms * _ROUNDOFF * m**0.5 + off) + 2 * _ROUNDOFF)


def _leading_directions(moved: np.ndarray, m: int) -> np.ndarray:
    """Orthonormal directions (n_features, m) of about the most variance, most first.

    Products with a few random directions, time and again, turn these to the leading ones (Halko,
    Martinsson, Tropp 2011, algorithm 4.4), without the ``d^3`` of all of them.
    """
    d = moved.shape[1]
    found = np.random.default_rng(0).normal(size=(d, min(d, m + _SPARE)))
    for _ in range(_ROUNDS):
        found = np.linalg.qr(_spread(moved, found))[0]
    along = (moved @ found.astype(np.float32)).astype(np.float64)
    turn = np.linalg.eigh(along.T @ along)[1][:, ::-1][:, :m]
    return np.ascontiguousarray(found @ turn, dtype=np.float32)


def _spread(moved: np.ndarray, directions: np.ndarray) -> np.ndarray:
    along = moved @ directions.astype(np.float32)
    return np.asarray(moved.T @ along, dtype=np.float64)


def _fill(projected: np.ndarray, squares: np.ndarray, error: float, out: Shadow) -> None:
    """The shadow of rows whose squared lengths are given, and what it is wrong by."""
    m = projected.shape[1]
    rest = np.sqrt(np.maximum(squares - np.square(projected).sum(axis=1), 0.0))
    out.rows[:, :m], out.rows[:, m] = projected, rest
    out.squares[:] = squared_lengths(out.rows)
    length = np.sqrt(squares) + _TINY
    # |r - s| = |r^2 - s^2| / (r + s), and r^2 - s^2 is wrong as the projection is.
    wrong = (2.5 * error + 1e-12) * length * length
    of_rest = np.minimum(np.sqrt(wrong), wrong / np.maximum(rest, _TINY))
    moved_and_rounded = 4 * _ROUNDOFF * length
    out.error[:] = error * length + of_rest + moved_and_rounded + _TINY
