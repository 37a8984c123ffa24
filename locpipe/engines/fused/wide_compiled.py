"""Compiled loops over one tile of pairs of many features."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import from_dtype, njit, types
from numba.extending import intrinsic

from locpipe.engines.fused.compiled import compiled
from locpipe.engines.fused.exponential import FLOOR, two_to_minus

__all__ = ["accumulate", "repair", "squares_from_differences", "squares_from_products", "weigh"]

_FAST = {"reassoc", "contract", "nsz", "arcp"}
_LOG2_E = float(np.log2(np.e))


def _matrix(real: Any) -> Any:
    return from_dtype(np.dtype(real))[:, ::1]


def _read(real: Any, n_axes: int) -> Any:
    return types.Array(from_dtype(np.dtype(real)), n_axes, "C", readonly=True)


_NUMBERS, _ROWS = _read(np.float64, 1), _read(np.float64, 2)
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
def weigh(real: Any) -> Any:
    """Logs of weights in base 2 become weights, in place, at the row's largest so far.

    ``weigh(tile, added, best, shift, factor, mass, squares)``: `added` belongs to the keys, `best`
    is the row's largest log in the tile, `factor` what sums at the old shift are multiplied by.
    """
    power, least, zero = two_to_minus(real), real(FLOOR[real]), real(0)

    def weigh_tile(
        tile: Any, added: Any, best: Any, shift: Any, factor: Any, mass: Any, squares: Any
    ) -> None:
        for i in range(tile.shape[0]):
            row = tile[i]
            top = row[0] + added[0]
            for j in range(1, row.size):
                top = _larger(row[j] + added[j], top)
            best[i] = top
            factor[i] = 1.0
            if top > shift[i]:
                factor[i] = 2.0 ** (shift[i] - np.float64(top))
                shift[i] = top
            if top == -np.inf:
                row[:] = zero
                continue
            base = real(shift[i])
            total, total2 = zero, zero
            for j in range(row.size):
                t = base - (row[j] + added[j])
                w = power(t)
                w = w if t < least else zero
                row[j] = w
                total += w
                total2 += w * w
            mass[i] = mass[i] * factor[i] + total
            squares[i] = squares[i] * factor[i] * factor[i] + total2

    sums = (_SUM,) * 5
    signature = types.void(_matrix(real), _read(real, 1), *sums)
    return compiled(f"wide-weigh-{real.__name__}", signature, weigh_tile)


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
def squares_from_differences() -> Any:
    """Squared distances in bandwidths, by the reference's own order of operations.

    ``squares_from_differences(tile, q, keys_by_feature, scale, q_factor, k_factor)``
    """

    def squares(tile: Any, q: Any, k: Any, scale: Any, q_factor: Any, k_factor: Any) -> None:
        for i in range(tile.shape[0]):
            row = tile[i]
            row[:] = 0.0
            for f in range(k.shape[0]):
                x, h = q[i, f], scale[f]
                for j in range(row.size):
                    gap = (x - k[f, j]) / h
                    row[j] += gap * gap
            for j in range(row.size):
                row[j] = _bounded(row[j], q_factor[i] * k_factor[j])

    signature = types.void(_matrix(np.float64), _ROWS, _ROWS, *(_NUMBERS,) * 3)
    return compiled("wide-squares-from-differences", signature, squares)


@lru_cache
def squares_from_products() -> Any:
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
                        gap = (q[i, f] - k[j, f]) / scale[f]
                        total += gap * gap
                    row[j] = _bounded(total, q_factor[i] * k_factor[j])

    numbers, rows = (_NUMBERS,) * 6, (_ROWS, _ROWS)
    signature = types.void(_matrix(np.float64), *numbers, *rows, *(_NUMBERS,) * 3, _COUNT)
    return compiled("wide-squares-from-products", signature, squares)


@njit(fastmath=_FAST, inline="always")
def _exact_log(q: Any, k: Any, inverse: Any, is_dot: bool) -> Any:
    total = 0.0
    if is_dot:
        for f in range(q.size):
            total += q[f] * k[f]
        return total
    for f in range(q.size):
        gap = (q[f] - k[f]) * inverse[f]
        total += gap * gap
    return -0.5 * total


@lru_cache
def repair(real: Any) -> Any:
    """Weights that matter, anew from exact logs, where products are not right enough.

    A weight matters if it is more than `share` of its row's mass so far; `repaired` counts them.
    """

    def repair_tile(
        tile: Any, best: Any, shift: Any, share: Any, mass: Any, squares: Any, repaired: Any,
        q: Any, k: Any, inverse: Any, is_dot: bool, added: Any, own: Any,
    ) -> None:  # fmt: skip
        for i in range(tile.shape[0]):
            limit = mass[i] * share[i]
            if 2.0 ** (best[i] - shift[i]) <= limit:
                continue
            for j in range(tile.shape[1]):
                w = np.float64(tile[i, j])
                if w > limit:
                    exact = (_exact_log(q[i], k[j], inverse, is_dot) - own[i]) * _LOG2_E
                    right = 2.0 ** (exact + added[j] - shift[i])
                    tile[i, j] = right
                    mass[i] += right - w
                    squares[i] += right * right - w * w
                    repaired[i] += 1

    sums = (*(_SUM,) * 5, _COUNT)
    pairs = (_ROWS, _ROWS, _NUMBERS, types.boolean, _NUMBERS, _NUMBERS)
    signature = types.void(_matrix(real), *sums, *pairs)
    return compiled(f"wide-repair-{real.__name__}", signature, repair_tile)
