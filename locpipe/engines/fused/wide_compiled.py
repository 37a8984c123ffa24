"""Compiled loops over one tile of pairs of many features."""

from __future__ import annotations

from functools import lru_cache
from math import log
from typing import Any

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  # the BLAS of compiled products, loaded in good time
from numba import from_dtype, types
from numba.extending import intrinsic

from locpipe.engines.fused.compiled import compiled, in_any_order, prefer_wide_vectors
from locpipe.engines.fused.exponential import FLOOR, two_to_minus

__all__ = [
    "COUNTS",
    "HOPELESS",
    "NUMBERS",
    "accumulate",
    "fold_products",
    "larger",
    "largest_by_column",
    "matrix",
    "read_only",
    "ready",
    "weigh",
]

HOPELESS = 2**40
"""Count of the doubtful pairs of a row whose logs are not even nearly right."""

_LOG2_E = 1 / log(2)
_CHUNK = 64


def matrix(real: Any) -> Any:
    """Type of a contiguous matrix that is written."""
    return from_dtype(np.dtype(real))[:, ::1]


def read_only(real: Any, n_axes: int) -> Any:
    """Type of a contiguous array that is not written."""
    return types.Array(from_dtype(np.dtype(real)), n_axes, "C", readonly=True)


NUMBERS = read_only(np.float64, 1)
_SUM, COUNTS = types.float64[::1], types.int64[::1]


@intrinsic
def larger(context: Any, x: Any, y: Any) -> Any:
    """The larger of two numbers, in a form of which LLVM makes vector code."""
    flags = ("nnan", "nsz")

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        above = builder.fcmp_ordered(">", *arguments, flags=flags)
        return builder.select(above, *arguments, flags=flags)

    return x(x, y), generate


@intrinsic
def _smaller(context: Any, x: Any, y: Any) -> Any:
    """The smaller of two numbers, likewise."""
    flags = ("nnan", "nsz")

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        below = builder.fcmp_ordered("<", *arguments, flags=flags)
        return builder.select(below, *arguments, flags=flags)

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

    numbers = (NUMBERS, NUMBERS, types.float64)
    signature = types.void(read_only(source, 2), *numbers, matrix(real), _SUM)
    return compiled(f"wide-ready-{source.__name__}-{real.__name__}", signature, make_ready)


def _largest(numbers: Any) -> Any:
    top = numbers[0]
    for j in range(1, numbers.size):
        top = larger(numbers[j], top)
    return top


def _largest_log(row: Any, added: Any) -> Any:
    top = row[0] + added[0]
    for j in range(1, row.size):
        top = larger(row[j] + added[j], top)
    return top


def _weights_of_row(real: Any, small: Any, with_squares: bool, watched: bool) -> Any:
    """Logs of weights to weights at ``2 ** base``; ``(mass, squares, largest doubt)``.

    The doubt of a pair is the product of its weight and of ``v + steep v^3``, v the variance of its
    log.  The logs are `real` numbers, the weights `small` ones.
    """
    power, least, zero = two_to_minus(small), small(FLOOR[small]), small(0)
    # Squares below the least normal number would be slow, and nothing beside that of the largest.
    least_squared = least / small(2)
    none, one, in_place = real(0), real(1), real is small
    # More is hopeless, and its powers would not be numbers.
    cap = real(1e12 if real is np.float32 else 1e40)

    @in_any_order
    def weights(
        row: Any,
        out: Any,
        added: Any,
        base: Any,
        rounding: Any,
        terms: Any,
        steep: Any,
        doubts: Any,
    ) -> tuple[Any, Any, Any]:
        prefer_wide_vectors()
        mass, squares, most = zero, zero, none
        for j in range(row.size):
            log = row[j]
            t = small(base - (log + added[j]))
            w = power(t)
            w = w if t < least else zero
            if watched:
                variance = _smaller(log * log * terms + rounding[j], cap)
                doubt = real(w) * variance * (one + steep * variance * variance)
                doubts[j] = doubt
                most = larger(doubt, most)
            # Two names for one array would keep the loop from using vectors.
            if in_place:
                row[j] = w
            else:
                out[j] = w
            mass += w
            if with_squares:
                w = w if t < least_squared else zero
                squares += w * w
        return mass, squares, most

    return weights


@lru_cache
def weigh(real: Any, small: Any, with_squares: bool) -> Any:
    """Logs of weights in base 2 to weights, with sums of them.

    ``weigh(tile, out, added, shift, factor, mass, squares)``: `added` belongs to the keys.  Sums
    stand at ``2 ** shift``, more than any weight so far; `factor` is what sums at the old shift are
    multiplied by.  Where logs and weights are of one type, `out` is not touched and `tile` takes
    the weights.
    """
    weights, rise = _weights_of_row(real, small, with_squares, False), _rise(real)
    in_place = real is small

    def weigh_tile(
        tile: Any, out: Any, added: Any, shift: Any, factor: Any, mass: Any, squares: Any
    ) -> None:
        for i in range(tile.shape[0]):
            row = tile[i]
            to = row if in_place else out[i]
            if rise(row, to, added, shift, factor, i) > -np.inf:
                base, none = real(shift[i]), real(0)
                of_row = weights(row, to, added, base, added, none, none, added)
                mass[i] = mass[i] * factor[i] + of_row[0]
                squares[i] = squares[i] * factor[i] * factor[i] + of_row[1]

    signature = types.void(matrix(real), matrix(small), read_only(real, 1), *(_SUM,) * 4)
    name = f"wide-weigh-{real.__name__}-{small.__name__}-{int(with_squares)}"
    return compiled(name, signature, weigh_tile)


def _rise(real: Any) -> Any:
    """Bring the shift of row i above its logs, whose largest is given; a row of none becomes 0.

    A weight that rounding made up to half as large as it is still has a place below the shift.
    """
    largest_log, one = in_any_order(_largest_log), real(1)

    @in_any_order
    def rise(row: Any, out: Any, added: Any, shift: Any, factor: Any, i: int) -> Any:
        prefer_wide_vectors()
        top = largest_log(row, added)
        factor[i] = 1.0
        if top == -np.inf:
            out[:] = 0
        elif top > shift[i]:
            factor[i] = 2.0 ** (shift[i] - np.float64(top + one))
            shift[i] = top + one
        return top

    return rise


@lru_cache
def fold_products(source: Any, real: Any, small: Any, with_squares: bool) -> Any:
    """Fold a tile whose logs are products: two products, and what `weigh` does between them.

    Weights that matter are made anew from exact logs where rounding would show.  Errors of pairs
    are independent, so those of weights w with ``w variance <= mass`` (variance of the log in units
    of ``rtol^2``) add up to at most rtol of the mass.  All others are computed anew, until they are
    `most` in a row; `repaired` counts them.  A row whose logs are not nearly right, by the variance
    `hopeless`, gets more than any number.

    A mean may hang on weights that are next to nothing of the mass, where the values of all others
    are 0.  So variances far above rtol count for more than they are, by `steep`.
    """
    plain = _weights_of_row(real, small, with_squares, False)
    watching = _weights_of_row(real, small, with_squares, True)
    rise, repair, most_doubt = _rise(real), _repair(), _most_doubt()
    in_place = real is small

    def fold_tile(
        x: Any, y: Any, added: Any, allowed: Any, tile: Any, out: Any, values: Any, product: Any,
        moment: Any, shift: Any, factor: Any, mass: Any, squares: Any, repaired: Any, rounding: Any,
        variance: Any, hopeless: Any, most: Any, q: Any, k: Any, scale: Any, is_dot: bool,
        of_keys: Any, own: Any,
    ) -> None:  # fmt: skip
        np.dot(x, y.T, tile)
        for i in range(allowed.shape[0]):
            for j in range(allowed.shape[1]):
                tile[i, j] = tile[i, j] if allowed[i, j] else -np.inf
        doubts, none = np.empty(tile.shape[1], dtype=real), real(0)
        terms, steep = real(variance[0]), real(variance[1])
        low, high, rounded = added.min(), added.max(), rounding.max()
        for i in range(tile.shape[0]):
            row = tile[i]
            to = row if in_place else out[i]
            top = rise(row, to, added, shift, factor, i)
            if top == -np.inf:
                continue
            base, before = real(shift[i]), mass[i] * factor[i]
            quiet = most_doubt(top, shift[i], low, high, rounded, terms, steep) <= before
            if quiet:
                of_row = plain(row, to, added, base, added, none, none, added)
            else:
                of_row = watching(row, to, added, base, rounding, terms, steep, doubts)
            mass[i] = before + of_row[0]
            squares[i] = squares[i] * factor[i] * factor[i] + of_row[1]
            if of_row[2] > mass[i] and repaired[i] <= most:
                pairs = (q[i], k, scale, is_dot, of_keys, own[i])
                repair(to, doubts, shift, mass, squares, repaired, hopeless, i, pairs)
        weights = tile if in_place else out
        if values.shape[1] == 1:
            np.dot(weights, values.reshape(-1), product.reshape(-1))
        elif values.shape[1] > 1:
            np.dot(weights, values, product)
        for i in range(moment.shape[0]):
            for o in range(moment.shape[1]):
                moment[i, o] = moment[i, o] * factor[i] + product[i, o]

    keys, sums = read_only(real, 1), (*(_SUM,) * 4, COUNTS)
    tiles = (types.boolean[:, ::1], matrix(real), matrix(small))
    outputs = (read_only(small, 2), matrix(small), matrix(np.float64))
    variances = (keys, NUMBERS, types.float64, types.float64)
    pairs = (read_only(source, 2), read_only(source, 2), NUMBERS, types.boolean, NUMBERS, NUMBERS)
    products = (matrix(real), matrix(real), keys)
    signature = types.void(*products, *tiles, *outputs, *sums, *variances, *pairs)
    name = f"wide-products-{source.__name__}-{real.__name__}-{small.__name__}-{int(with_squares)}"
    return compiled(name, signature, fold_tile)


def _most_doubt() -> Any:
    """A bound of all doubts in a row, from its largest log, base 2.

    A product is at most that log, but for what the key adds.  Where it is more than 9, a weight
    falls faster than its variance grows.
    """
    power = two_to_minus(np.float64)

    @in_any_order
    def most_doubt(
        top: Any, shift: Any, low: Any, high: Any, rounded: Any, terms: Any, steep: Any
    ) -> Any:
        product = max(9.0, abs(np.float64(top) - low), abs(np.float64(top) - high))
        variance = product * product * terms + rounded
        return power(shift - top) * variance * (1.0 + steep * variance * variance)

    return most_doubt


def _repair() -> Any:
    """Weights of a row anew, where their doubt is more than the mass."""
    exact_log, power = _exact_log(), two_to_minus(np.float64)
    largest = in_any_order(_largest)

    @in_any_order
    def repair(
        row: Any, doubts: Any, shift: Any, mass: Any, squares: Any, repaired: Any, hopeless: Any,
        i: int, pairs: Any,
    ) -> None:  # fmt: skip
        q, k, scale, is_dot, of_keys, own = pairs
        for start in range(0, row.size, _CHUNK):
            stop = min(start + _CHUNK, row.size)
            worst = largest(doubts[start:stop])
            for j in range(start, stop if worst > mass[i] else start):
                if doubts[j] <= mass[i]:
                    continue
                w = np.float64(row[j])
                repaired[i] += 1 if doubts[j] < hopeless * w else HOPELESS
                log = (exact_log(q, k[j], scale, is_dot) - own) * _LOG2_E
                right = power(max(shift[i] - of_keys[j] - log, 0.0))
                row[j] = right
                mass[i] += right - w
                squares[i] += right * right - w * w

    return repair


def _exact_log() -> Any:
    """Log of a weight from a pair's coordinates, in float64."""

    @in_any_order
    def exact(q: Any, k: Any, factor: Any, is_dot: bool) -> Any:
        prefer_wide_vectors()
        total = 0.0
        if is_dot:
            for f in range(q.size):
                total += np.float64(q[f]) * factor[f] * np.float64(k[f])
            return total
        for f in range(q.size):
            gap = (np.float64(q[f]) - np.float64(k[f])) * factor[f]
            total += gap * gap
        return -0.5 * total

    return exact


@lru_cache
def largest_by_column(real: Any) -> Any:
    """``largest_by_column(values, sizes)``: sizes of the columns' largest numbers, into zeros."""

    def look(values: Any, sizes: Any) -> None:
        for i in range(values.shape[0]):
            for o in range(sizes.size):
                sizes[o] = larger(abs(values[i, o]), sizes[o])

    signature = types.void(read_only(real, 2), from_dtype(np.dtype(real))[::1])
    return compiled(f"wide-largest-{real.__name__}", signature, look)


@lru_cache
def accumulate(real: Any) -> Any:
    """``accumulate(moment, factor, product)``: ``moment = factor moment + product``, by rows."""

    def accumulate_rows(moment: Any, factor: Any, product: Any) -> None:
        for i in range(moment.shape[0]):
            for o in range(moment.shape[1]):
                moment[i, o] = moment[i, o] * factor[i] + product[i, o]

    signature = types.void(matrix(np.float64), _SUM, matrix(real))
    return compiled(f"wide-accumulate-{real.__name__}", signature, accumulate_rows)
