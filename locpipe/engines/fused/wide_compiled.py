"""Compiled loops over one tile of pairs of many features."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import from_dtype, njit, types
from numba.extending import intrinsic

from locpipe.engines.fused.compiled import compiled
from locpipe.engines.fused.exponential import FLOOR, two_to_minus

__all__ = [
    "HOPELESS",
    "accumulate",
    "ready",
    "repair",
    "squares_from_differences",
    "squares_from_products",
    "weigh",
]

HOPELESS = 2**40
"""Count of the doubtful pairs of a row whose logs are not even nearly right."""
_CHUNK = 64

_FAST = {"reassoc", "contract", "nsz", "arcp"}
_LOG2_E = float(np.log2(np.e))


def _matrix(real: Any) -> Any:
    return from_dtype(np.dtype(real))[:, ::1]


def _read(real: Any, n_axes: int) -> Any:
    return types.Array(from_dtype(np.dtype(real)), n_axes, "C", readonly=True)


_NUMBERS = _read(np.float64, 1)
_SUM, _COUNT = types.float64[::1], types.int64[::1]


@intrinsic
def _larger(context: Any, x: Any, y: Any) -> Any:
    """The larger of two numbers, in a form of which LLVM makes vector code."""
    flags = ("nnan", "nsz")

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        above = builder.fcmp_ordered(">", *arguments, flags=flags)
        return builder.select(above, *arguments, flags=flags)

    return x(x, y), generate


@lru_cache
def ready(source: Any, real: Any) -> Any:
    """Rows centred and scaled in float64, and then rounded.

    ``ready(data, centre, factor, last, out, squares)``: ``out = (data - centre) factor last``, and
    `squares` of the rows without `last`.
    """

    def make_ready(data: Any, centre: Any, factor: Any, last: Any, out: Any, squares: Any) -> None:
        for i in range(data.shape[0]):
            total = 0.0
            for f in range(centre.size):
                x = (np.float64(data[i, f]) - centre[f]) * factor[f]
                total += x * x
                out[i, f] = real(x * last)
            squares[i] = total

    numbers = (_NUMBERS, _NUMBERS, types.float64)
    signature = types.void(_read(source, 2), *numbers, _matrix(real), _SUM)
    return compiled(f"wide-ready-{source.__name__}-{real.__name__}", signature, make_ready)


@lru_cache
def weigh(real: Any, with_squares: bool, watched: bool) -> Any:
    """Logs of weights in base 2 become weights, in place, with sums of them.

    ``weigh(tile, added, rounding, terms, worst, shift, factor, mass, squares)``: `added` belongs to
    the keys.  Sums stand at ``2 ** shift``, more than any weight so far, even if rounding made it
    half as large as it is; `factor` is what sums at the old shift are multiplied by.  `worst` is
    the row's largest product of a weight and the variance of its log, where it is `watched`.
    """
    power, least, zero, one = two_to_minus(real), real(FLOOR[real]), real(0), real(1)
    # Squares below the least normal number would be slow, and nothing beside that of the largest.
    least_squared = least / real(2)
    floor = real(-1e15)

    def weigh_tile(
        tile: Any, added: Any, rounding: Any, terms: Any, worst: Any, shift: Any, factor: Any,
        mass: Any, squares: Any,
    ) -> None:  # fmt: skip
        for i in range(tile.shape[0]):
            row = tile[i]
            top = row[0] + added[0]
            for j in range(1, row.size):
                top = _larger(row[j] + added[j], top)
            factor[i] = 1.0
            if top > shift[i]:
                factor[i] = 2.0 ** (shift[i] - np.float64(top + one))
                shift[i] = top + one
            if top == -np.inf:
                row[:], worst[i] = zero, zero
                continue
            base = real(shift[i])
            total, total2, most = zero, zero, zero
            for j in range(row.size):
                t = base - (row[j] + added[j])
                w = power(t)
                w = w if t < least else zero
                if watched:
                    product = _larger(row[j], floor)
                    most = _larger(w * (product * product * terms + rounding[j]), most)
                row[j] = w
                total += w
                if with_squares:
                    w = w if t < least_squared else zero
                    total2 += w * w
            worst[i] = most
            mass[i] = mass[i] * factor[i] + total
            if with_squares:
                squares[i] = squares[i] * factor[i] * factor[i] + total2

    name = f"wide-weigh-{real.__name__}-{int(with_squares)}{int(watched)}"
    keys = (_read(real, 1), _read(real, 1), from_dtype(np.dtype(real)))
    signature = types.void(_matrix(real), *keys, *(_SUM,) * 5)
    return compiled(name, signature, weigh_tile)


@lru_cache
def accumulate(real: Any) -> Any:
    """``accumulate(moment, factor, product)``: ``moment = factor moment + product``, by rows."""

    def accumulate_rows(moment: Any, factor: Any, product: Any) -> None:
        for i in range(moment.shape[0]):
            for o in range(moment.shape[1]):
                moment[i, o] = moment[i, o] * factor[i] + product[i, o]

    signature = types.void(_matrix(np.float64), _SUM, _matrix(real))
    return compiled(f"wide-accumulate-{real.__name__}", signature, accumulate_rows)


@njit(inline="always")
def _bounded(square: Any, factor: Any) -> Any:
    factor = max(factor, 1e-300)
    return min(square / factor / factor, 1e305)


@lru_cache
def squares_from_differences(source: Any) -> Any:
    """Squared distances in bandwidths, by the reference's own order of operations.

    ``squares_from_differences(tile, q, keys_by_feature, scale, q_factor, k_factor)``
    """

    def squares(tile: Any, q: Any, k: Any, scale: Any, q_factor: Any, k_factor: Any) -> None:
        for i in range(tile.shape[0]):
            row = tile[i]
            row[:] = 0.0
            for f in range(k.shape[0]):
                x, h = np.float64(q[i, f]), scale[f]
                for j in range(row.size):
                    gap = (x - np.float64(k[f, j])) / h
                    row[j] += gap * gap
            for j in range(row.size):
                row[j] = _bounded(row[j], q_factor[i] * k_factor[j])

    rows = (_read(source, 2), _read(source, 2))
    signature = types.void(_matrix(np.float64), *rows, *(_NUMBERS,) * 3)
    return compiled(f"wide-squares-from-differences-{source.__name__}", signature, squares)


@lru_cache
def squares_from_products(source: Any) -> Any:
    """Squared distances in bandwidths in place of products; those in doubt from differences.

    In doubt are those below `near` and those within `edge` of 1; `doubtful` counts them by row.
    """

    def squares(
        tile: Any, q2: Any, k2: Any, q_precision: Any, k_precision: Any, near: Any, edge: Any,
        q: Any, k: Any, scale: Any, q_factor: Any, k_factor: Any, doubtful: Any,
    ) -> None:  # fmt: skip
        for i in range(tile.shape[0]):
            row = tile[i]
            n_doubtful: Any = 0
            for j in range(row.size):
                square = (q2[i] + k2[j] - 2 * row[j]) * (q_precision[i] * k_precision[j])
                square = _larger(square, 0.0)
                n_doubtful += np.int64(square < near[i]) + np.int64(abs(square - 1) < edge[i])
                row[j] = square
            doubtful[i] += n_doubtful
            for j in range(row.size if n_doubtful else 0):
                if row[j] < near[i] or abs(row[j] - 1) < edge[i]:
                    total = 0.0
                    for f in range(scale.size):
                        gap = (np.float64(q[i, f]) - np.float64(k[j, f])) / scale[f]
                        total += gap * gap
                    row[j] = _bounded(total, q_factor[i] * k_factor[j])

    numbers, rows = (_NUMBERS,) * 6, (_read(source, 2), _read(source, 2))
    signature = types.void(_matrix(np.float64), *numbers, *rows, *(_NUMBERS,) * 3, _COUNT)
    return compiled(f"wide-squares-from-products-{source.__name__}", signature, squares)


@njit(fastmath=_FAST, inline="always")
def _exact_log(q: Any, k: Any, factor: Any, is_dot: bool) -> Any:
    total = 0.0
    if is_dot:
        for f in range(q.size):
            total += np.float64(q[f]) * factor[f] * np.float64(k[f])
        return total
    for f in range(q.size):
        gap = (np.float64(q[f]) - np.float64(k[f])) * factor[f]
        total += gap * gap
    return -0.5 * total


@njit(inline="always")
def _least_weight(mass: Any, reach: Any, terms: Any, rounding: Any) -> Any:
    """A weight that no weight below it matters more than: ``w (terms product^2 + rounding)``.

    Steps towards the solution of an equation from above, and half of the last one.
    """
    w = mass / (terms * reach * reach + rounding)
    for _ in range(3):
        product = reach + abs(np.log2(w))
        w = mass / (terms * product * product + rounding)
    return 0.5 * w


@lru_cache
def repair(source: Any, real: Any) -> Any:
    """Weights that matter, anew from exact logs, where products are not right enough.

    Errors of pairs are independent, so those of weights w with ``w variance <= mass`` (variance of
    the log in units of ``rtol^2``) add up to at most rtol of the mass.  All others are computed
    anew, until they are `most` in a row; `repaired` counts them.  A row whose logs are not nearly
    right, by the variance `hopeless`, gets more than any number.
    """
    power = two_to_minus(np.float64)

    def repair_tile(
        tile: Any, worst: Any, shift: Any, mass: Any, squares: Any, repaired: Any, q: Any, k: Any,
        factor: Any, is_dot: bool, added: Any, own: Any, sums: Any, rounding: Any, terms: Any,
        hopeless: Any, most: Any,
    ) -> None:  # fmt: skip
        reach, most_rounding = np.float64(abs(sums[0])), np.float64(rounding[0])
        for j in range(1, sums.size):
            reach = max(reach, abs(sums[j]))
            most_rounding = max(most_rounding, rounding[j])
        for i in range(tile.shape[0]):
            if worst[i] <= mass[i] or repaired[i] > most:
                continue
            row = tile[i]
            low = real(_least_weight(mass[i], abs(shift[i]) + reach, terms, most_rounding))
            for start in range(0, row.size, _CHUNK):
                stop = min(start + _CHUNK, row.size)
                top = row[start]
                for j in range(start + 1, stop):
                    top = _larger(row[j], top)
                for j in range(start, stop if top > low else start):
                    if row[j] <= low:
                        continue
                    w = np.float64(row[j])
                    product = np.log2(w) + shift[i] - sums[j]
                    variance = product * product * terms + rounding[j]
                    if w * variance <= mass[i]:
                        continue
                    repaired[i] += 1 if variance < hopeless else HOPELESS
                    exact = (_exact_log(q[i], k[j], factor, is_dot) - own[i]) * _LOG2_E
                    right = power(max(shift[i] - added[j] - exact, 0.0))
                    row[j] = right
                    mass[i] += right - w
                    squares[i] += right * right - w * w

    pairs = (_read(source, 2), _read(source, 2), _NUMBERS, types.boolean)
    keys = (_NUMBERS, _NUMBERS, _read(real, 1), _read(real, 1))
    sums = (*(_SUM,) * 4, _COUNT)
    signature = types.void(_matrix(real), *sums, *pairs, *keys, *(types.float64,) * 3)
    return compiled(f"wide-repair-{source.__name__}-{real.__name__}", signature, repair_tile)
