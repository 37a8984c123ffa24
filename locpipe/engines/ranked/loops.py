"""Compiled loops over rows: centring, directions, exact distances of all pairs of a tile."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np

from locpipe.engines.fused.compiled import as_written, kept

__all__ = [
    "MANHATTAN",
    "MISSING",
    "SQUARED",
    "Found",
    "at_least",
    "centre_rows",
    "compiled",
    "found_in",
    "measure_in_order",
    "pair_scores",
    "squared_lengths",
    "unit_rows",
]

SQUARED, MANHATTAN, MISSING = range(3)
"""Surrogates that `pair_scores` forms: squared, absolute, squared over shared features."""

LARGEST_SQUARE = 1e305
_WORD = 8


def compiled(function: Any, **options: Any) -> Any:
    """`function` compiled on first use, and cached on disk where a folder can be written to."""
    return kept(numba.njit(nogil=True, **options)(function))


inlined = numba.njit(inline="always")
"""For small helpers: a call counts references to every array that it is given."""


class Found(NamedTuple):
    """Columns of a row that were found.

    Attributes
    ----------
    mask : bool array (n_keys,)
        With room for a few more, to whole words.
    words : uint64 array
        The mask, eight at a time.
    column : int64 array (n_keys,)
    """

    mask: Any
    words: Any
    column: Any


def found_in(n_keys: int) -> Found:
    """Room for rows of so many columns, at most."""
    mask = np.zeros(-(-n_keys // _WORD) * _WORD, dtype=np.bool_)
    return Found(mask, mask.view(np.uint64), np.empty(n_keys + 1, dtype=np.int64))


@as_written
def at_least(near: Any, half: Any, level: Any, found: Any) -> Any:
    """Find columns whose score ``near - half`` is at least the level, of its dtype; how many."""
    words, column, mask = found.words, found.column, found.mask
    _mark(near, half, level, mask)
    n: Any = np.int64(0)
    for word in range(-(-near.shape[0] // _WORD)):
        if words[word] == 0:
            continue
        for j in range(word * _WORD, min((word + 1) * _WORD, near.shape[0])):
            column[n] = j
            n += np.int64(mask[j])
    return n


@as_written
def _mark(near: Any, half: Any, level: Any, mask: Any) -> Any:
    for j in range(near.shape[0]):
        mask[j] = near[j] - half[j] >= level


@as_written
def measure_in_order(x: Any, rows: Any, column: Any, value: Any, n: Any) -> Any:
    """Squared distances of the first n columns, features summed in ascending order.

    Four sums advance together: one alone would wait for each addition.
    """
    for a in range(0, n, 4):
        j0, j1 = column[a], column[min(a + 1, n - 1)]
        j2, j3 = column[min(a + 2, n - 1)], column[min(a + 3, n - 1)]
        s0 = s1 = s2 = s3 = 0.0
        for c in range(x.shape[0]):
            own = np.float64(x[c])
            g0, g1 = own - np.float64(rows[j0, c]), own - np.float64(rows[j1, c])
            g2, g3 = own - np.float64(rows[j2, c]), own - np.float64(rows[j3, c])
            s0 += g0 * g0
            s1 += g1 * g1
            s2 += g2 * g2
            s3 += g3 * g3
        for b, total in enumerate((s0, s1, s2, s3)):
            if a + b < n:
                value[a + b] = total


@compiled
def centre_rows(x: Any, centre: Any, scale: Any, out: Any) -> Any:
    """``(x - centre) scale`` into `out`, rounded once to its dtype."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = (np.float64(x[i, j]) - centre[j]) * scale


@partial(compiled, fastmath={"reassoc", "contract"})
def squared_lengths(x: Any) -> Any:
    """Squared lengths of rows (n,) in float64, summed in any order."""
    squares = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += np.float64(x[i, j]) * np.float64(x[i, j])
        squares[i] = total
    return squares


@compiled
def unit_rows(x: Any, out: Any) -> Any:
    """Rows of length 1 into `out`, and which rows have none (n,).

    The arithmetic of `locpipe.metrics`, to the bit: divided by the largest entry, then by the
    length summed feature after feature.
    """
    n, d = x.shape
    none = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        largest = 0.0
        for j in range(d):
            largest = max(largest, abs(np.float64(x[i, j])))
        none[i] = largest == 0
        if none[i]:
            out[i] = 0.0
            continue
        total = 0.0
        for j in range(d):
            out[i, j] = np.float64(x[i, j]) / largest
            total += out[i, j] * out[i, j]
        length = np.sqrt(total)
        for j in range(d):
            out[i, j] /= length
    return none


@compiled
def pair_scores(q: Any, features: Any, kind: Any, factor: Any, out: Any) -> Any:
    """Minus `factor` times the surrogate of each pair into `out` (n_queries, n_keys).

    Sums run over the features in ascending order, each term rounded as NumPy rounds it.
    `features` holds the keys feature by feature (n_features, n_keys), float64.
    """
    width = 256
    shared = np.empty(width)
    for start in range(0, features.shape[1], width):
        part = features[:, start : start + width]
        for i in range(q.shape[0]):
            sums = out[i, start : start + width]
            sums[:] = 0.0
            if kind == SQUARED:
                _add_squares(q[i], part, sums)
            elif kind == MANHATTAN:
                _add_sizes(q[i], part, sums)
            else:
                _add_shared(q[i], part, sums, shared)
            for c in range(sums.shape[0]):
                sums[c] = -(factor * sums[c])


@as_written
def _add_squares(q: Any, part: Any, sums: Any) -> Any:
    for j in range(part.shape[0]):
        x, y = np.float64(q[j]), part[j]
        for c in range(sums.shape[0]):
            gap = x - y[c]
            sums[c] += gap * gap


@as_written
def _add_sizes(q: Any, part: Any, sums: Any) -> Any:
    for j in range(part.shape[0]):
        x, y = np.float64(q[j]), part[j]
        for c in range(sums.shape[0]):
            sums[c] += abs(x - y[c])


@as_written
def _add_shared(q: Any, part: Any, sums: Any, shared: Any) -> Any:
    """Squares over the features that both rows have, times all over shared; infinite of none."""
    d = part.shape[0]
    shared[:] = 0.0
    for j in range(d):
        x, y = np.float64(q[j]), part[j]
        for c in range(sums.shape[0]):
            gap = x - y[c]
            there = gap == gap
            sums[c] += gap * gap if there else 0.0
            shared[c] += 1.0 if there else 0.0
    for c in range(sums.shape[0]):
        square = sums[c] * (d / max(shared[c], 1.0))
        sums[c] = min(square, LARGEST_SQUARE) if shared[c] > 0 else np.inf
