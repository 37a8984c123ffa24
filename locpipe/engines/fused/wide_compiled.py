"""Compiled loops over one tile of pairs of many features."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.extending import intrinsic

from locpipe.engines.fused.compiled import compiled, in_any_order, prefer_wide_vectors
from locpipe.engines.fused.exponential import FLOOR, two_to_minus

__all__ = [
    "COUNTS",
    "NUMBERS",
    "SUM",
    "accumulate",
    "larger",
    "least_shares",
    "matrix",
    "read_only",
    "ready",
    "sizes_by_column",
    "weigh",
]


def matrix(real: Any) -> Any:
    """Type of a contiguous matrix that is written."""
    return from_dtype(np.dtype(real))[:, ::1]


def read_only(real: Any, n_axes: int) -> Any:
    """Type of a contiguous array that is not written."""
    return types.Array(from_dtype(np.dtype(real)), n_axes, "C", readonly=True)


NUMBERS = read_only(np.float64, 1)
SUM, COUNTS = types.float64[::1], types.int64[::1]


@intrinsic
def larger(context: Any, x: Any, y: Any) -> Any:
    """The larger of two numbers, in a form of which LLVM makes vector code."""
    flags = ("nnan", "nsz")

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        above = builder.fcmp_ordered(">", *arguments, flags=flags)
        return builder.select(above, *arguments, flags=flags)

    return x(x, y), generate


@lru_cache
def ready(source: Any, real: Any) -> Any:
    """Rows centred and scaled in float64, and then rounded.

    ``ready(data, centre, factor, last, out, squares, lost)``: ``out = (data - centre) factor
    last``, `squares` of the rows without `last`, and `lost`, what rounding takes from their
    products with the rows themselves.  Rows stand in panels (n_panels, n_features, any), one
    feature after the other; what `out` has more of is left as it is.
    """

    def make_ready(
        data: Any, centre: Any, factor: Any, last: Any, out: Any, squares: Any, lost: Any
    ) -> None:
        width = out.shape[2]
        for i in range(data.shape[0]):
            total, gone, panel, place = 0.0, 0.0, i // width, i % width
            for f in range(centre.size):
                x = (np.float64(data[i, f]) - centre[f]) * factor[f]
                total += x * x
                rounded = real(x * last)
                gone += (x * last - np.float64(rounded)) * x
                out[panel, f, place] = rounded
            squares[i], lost[i] = total, gone

    numbers = (NUMBERS, NUMBERS, types.float64)
    panels = from_dtype(np.dtype(real))[:, :, ::1]
    signature = types.void(read_only(source, 2), *numbers, panels, SUM, SUM)
    return compiled(f"wide-ready-{source.__name__}-{real.__name__}", signature, make_ready)


def _largest_log(row: Any, added: Any) -> Any:
    top = row[0] + added[0]
    for j in range(1, row.size):
        top = larger(row[j] + added[j], top)
    return top


def _weights_of_row(real: Any, small: Any, with_squares: bool) -> Any:
    """Logs of weights to weights at ``2 ** base``; ``(mass, squares)``.

    The logs are `real` numbers, the weights `small` ones.
    """
    power, least, zero = two_to_minus(small, real), small(FLOOR[small]), small(0)
    # Squares below the least normal number would be slow, and nothing beside that of the largest.
    least_squared, in_place = least / small(2), real is small

    @in_any_order
    def weights(row: Any, out: Any, added: Any, base: Any) -> tuple[Any, Any]:
        prefer_wide_vectors()
        mass, squares = zero, zero
        for j in range(row.size):
            t = base - (row[j] + added[j])
            w = power(t)
            w = w if t < least else zero
            # Two names for one array would keep the loop from using vectors.
            if in_place:
                row[j] = w
            else:
                out[j] = w
            mass += w
            if with_squares:
                w = w if t < least_squared else zero
                squares += w * w
        return mass, squares

    return weights


@lru_cache
def weigh(real: Any, small: Any, with_squares: bool) -> Any:
    """Logs of weights in base 2 to weights, with sums of them.

    ``weigh(tile, out, added, shift, factor, mass, squares)``: `added` belongs to the keys.  Sums
    stand at ``2 ** shift``, more than any weight so far; `factor` is what sums at the old shift are
    multiplied by.  Where logs and weights are of one type, `out` is not touched and `tile` takes
    the weights.
    """
    weights, lift = _weights_of_row(real, small, with_squares), _rise(real)
    in_place = real is small

    def weigh_tile(
        tile: Any, out: Any, added: Any, shift: Any, factor: Any, mass: Any, squares: Any
    ) -> None:
        for i in range(tile.shape[0]):
            row = tile[i]
            to = row if in_place else out[i]
            if lift(row, to, added, shift, factor, i) > -np.inf:
                of_row = weights(row, to, added, real(shift[i]))
                mass[i] = mass[i] * factor[i] + of_row[0]
                squares[i] = squares[i] * factor[i] * factor[i] + of_row[1]

    signature = types.void(matrix(real), matrix(small), read_only(real, 1), *(SUM,) * 4)
    name = f"wide-weigh-{real.__name__}-{small.__name__}-{int(with_squares)}"
    return compiled(name, signature, weigh_tile)


def _rise(real: Any) -> Any:
    """Bring the shift of row i above its logs, whose largest is given; a row of none becomes 0.

    A weight that rounding made up to half as large as it is still has a place below the shift.
    """
    largest_log, one = in_any_order(_largest_log), real(1)

    @in_any_order
    def lift(row: Any, out: Any, added: Any, shift: Any, factor: Any, i: int) -> Any:
        prefer_wide_vectors()
        top = largest_log(row, added)
        factor[i] = 1.0
        if top == -np.inf:
            out[:] = 0
        elif top > shift[i]:
            factor[i] = 2.0 ** (shift[i] - np.float64(top + one))
            shift[i] = top + one
        return top

    return lift


@lru_cache
def sizes_by_column(real: Any) -> Any:
    """``sizes_by_column(values, most, total, squares)``: columns' sizes, beside what is there."""

    def look(values: Any, most: Any, total: Any, squares: Any) -> None:
        for i in range(values.shape[0]):
            for o in range(most.size):
                size = abs(values[i, o])
                most[o] = larger(size, most[o])
                total[o] += size
                squares[o] += np.float64(size) * size

    signature = types.void(read_only(real, 2), from_dtype(np.dtype(real))[::1], SUM, SUM)
    return compiled(f"wide-sizes-{real.__name__}", signature, look)


@lru_cache
def least_shares(real: Any) -> Any:
    """``least_shares(values, factors, more, shares)``: of each row, but no more than 1.

    A share is ``|value| factor + more``.
    """
    one = real(1)

    @in_any_order
    def least(row: Any, factors: Any, more: Any) -> Any:
        prefer_wide_vectors()
        highest = -one
        for o in range(factors.size):
            highest = larger(-(abs(row[o]) * factors[o] + more[o]), highest)
        return -highest

    def look(values: Any, factors: Any, more: Any, shares: Any) -> None:
        for i in range(values.shape[0]):
            shares[i] = least(values[i], factors, more)

    kinds = read_only(real, 2), *(read_only(real, 1),) * 2, types.float32[::1]
    return compiled(f"wide-shares-{real.__name__}", types.void(*kinds), look)


@lru_cache
def accumulate(real: Any) -> Any:
    """``accumulate(moment, factor, product)``: ``moment = factor moment + product``, by rows."""

    def accumulate_rows(moment: Any, factor: Any, product: Any) -> None:
        for i in range(moment.shape[0]):
            for o in range(moment.shape[1]):
                moment[i, o] = moment[i, o] * factor[i] + product[i, o]

    signature = types.void(matrix(np.float64), SUM, matrix(real))
    return compiled(f"wide-accumulate-{real.__name__}", signature, accumulate_rows)
