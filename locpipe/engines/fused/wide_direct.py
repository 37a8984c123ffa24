"""Pairs whose log weights are a product: weights come straight from registers.

What rounding may have done to each row is added up instead, and a row in which that shows is done
another way.  The level of a row's weights is its largest log in the first keys; it is
raised where later ones are far above.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from locpipe.engines.fused.compiled import compiled, in_any_order, in_order, prefer_wide_vectors
from locpipe.engines.fused.memory import LINE
from locpipe.engines.fused.panels import KEYS, STRIDE, Panel, panel_of, weights_of_panel
from locpipe.engines.fused.wide_compiled import SUM, matrix, read_only
from locpipe.engines.fused.wide_meet import meet

__all__ = ["fold_products"]

_WIDE, _TOGETHER = 256, 4
"""Of so many features and outputs, keys and values are met by some panels of rows at a time, whose
moments stay in a cache meanwhile: they are too many to be read for each."""
_HIGHEST = -40.0
"""Weights of up to ``2 ** 40`` need no new level: their squares are numbers, with values too."""


@lru_cache
def fold_products(real: Any, values_panel: Panel | None, masked: bool) -> Any:
    """Fold keys whose logs are products into the sums of queries.

    Queries come in the panels of `x`, keys in those of `y`, from `begin` to `end`.  `errors` are
    sums of ``w^2 v``, w a weight and v the variance of its log.  Without a panel of values, squares
    of weights are summed.
    """
    panel, add = panel_of(real), meet(real, values_panel)
    weigh = _weigh(weights_of_panel(real, panel, values_panel is None, masked), real, panel)
    raise_level = _raise_level(panel)
    take, n_rows, lanes = _take(panel), panel.rows, panel.lanes
    line = LINE // np.dtype(real).itemsize

    def fold(
        x: Any, y: Any, added: Any, rounding: Any, begin: int, end: int, allowed: Any, values: Any,
        shares: Any, moment: Any, seen: Any, shift: Any, factor: Any, mass: Any, squares: Any,
        errors: Any, terms: Any,
    ) -> None:  # fmt: skip
        wide, n_padded = x.shape[1] + moment.shape[1] >= _WIDE, x.shape[0] * n_rows
        most = min(_TOGETHER * n_rows if wide else n_rows, n_padded)
        room, base = np.empty(most * STRIDE + line, dtype=real), np.zeros(most, dtype=real)
        skipped = (-room.ctypes.data // room.itemsize) % line
        weights = room[skipped : skipped + most * STRIDE].reshape(most, STRIDE)
        sums, totals = np.empty((most, 4, lanes), dtype=real), (mass, squares, errors)
        stretch = max(end - begin, KEYS) if wide else KEYS
        for far in range(begin, end, stretch):
            for first in range(0, n_padded, most):
                n, n_there = min(most, mass.size - first), min(most, n_padded - first)
                for start in range(far, min(far + stretch, end), KEYS):
                    count = min(KEYS, end - start)
                    keys = (y, start, count, added, rounding, terms, allowed, start - begin)
                    for r in range(n):
                        i = first + r
                        base[r] = shift[i] if shift[i] > -np.inf else 0.0
                        factor[i] = 1.0
                    weigh(x, first, 0, n_there, keys, base, weights, sums)
                    for g in range(0, n_there, n_rows):
                        rows = (first, g, min(g + n_rows, n))
                        if raise_level(sums, base, shift, factor, totals, rows):
                            weigh(x, first, g, g + n_rows, keys, base, weights, sums)
                        take(sums, weights, totals, rows)
                    add(weights, start, count, values, shares, moment, seen, factor, first, n)

    keys = (*(read_only(real, 3),) * 2, *(read_only(real, 1),) * 2, types.int64, types.int64)
    values = read_only(real, 3), read_only(real, 1), matrix(np.float64)
    masks = types.boolean[:, ::1]
    signature = types.void(*keys, masks, *values, *(SUM,) * 6, read_only(real, 1))
    form = "squares" if values_panel is None else f"{values_panel.lanes}x{values_panel.vectors}"
    return compiled(f"wide-products-{real.__name__}-{form}-{int(masked)}", signature, fold)


def _weigh(weigh: Any, real: Any, panel: Panel) -> Any:
    """Weights of rows r to `last` after the first over a stretch of keys, and their sums."""
    rows, columns, of_sums = panel.rows, panel.columns, 4 * panel.lanes
    none, most, tiny = real(0), real(np.inf), real(1e-30)

    @in_order
    def weigh_rows(
        x: Any, first: int, r: int, last: int, keys: Any, base: Any, out: Any, sums: Any
    ) -> None:
        prefer_wide_vectors()
        y, start, count, added, rounding, terms, allowed, begin = keys
        n, stride = x.shape[1], allowed.shape[1]
        sums[r:last, :2] = none
        sums[r:last, 2] = most
        sums[r:last, 3] = tiny  # Sums of less are slow: they are no normal numbers.
        for at in range(0, count, columns):
            j = start + at
            for g in range(r, last, rows):
                i = first + g
                mask = i * stride + begin + at
                weigh(
                    n, x, i * n, y, j * n, added, rounding, j, terms, base, g, allowed, mask,
                    stride, out, g * STRIDE + at, sums, g * of_sums,
                )  # fmt: skip

    return weigh_rows


def _raise_level(panel: Panel) -> Any:
    """Bring rows of too large weights to the level of their largest log; whether any was."""
    lanes = panel.lanes

    @in_any_order
    def raise_level(sums: Any, base: Any, shift: Any, factor: Any, totals: Any, rows: Any) -> bool:
        (mass, squares, errors), (first, g, last) = totals, rows
        found = False
        for r in range(g, last):
            i, least = first + r, sums[r, 2, 0]
            for lane in range(1, lanes):
                least = min(least, sums[r, 2, lane])
            if least == np.inf or (least >= _HIGHEST and shift[i] > -np.inf):
                continue
            base[r] -= least
            factor[i] = 2.0 ** (shift[i] - np.float64(base[r]))
            shift[i] = base[r]
            mass[i] *= factor[i]
            errors[i] *= factor[i] * factor[i]
            squares[i] *= factor[i] * factor[i]
            found = True
        return found

    return raise_level


def _take(panel: Panel) -> Any:
    """Add the sums of a panel's rows to those of the queries; rows without neighbours have none."""
    lanes = panel.lanes

    @in_any_order
    def take(sums: Any, weights: Any, totals: Any, rows: Any) -> None:
        (mass, squares, errors), (first, g, last) = totals, rows
        for r in range(g, last):
            i, total, of_squares, of_errors, least = first + r, 0.0, 0.0, 0.0, np.inf
            for lane in range(lanes):
                total += sums[r, 0, lane]
                of_squares += sums[r, 1, lane]
                least = min(least, np.float64(sums[r, 2, lane]))
                of_errors += sums[r, 3, lane]
            if least == np.inf:
                weights[r, :] = 0
                continue
            errors[i] += of_errors
            mass[i] += total
            squares[i] += of_squares

    return take
