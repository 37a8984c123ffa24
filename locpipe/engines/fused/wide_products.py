"""Pairs whose log weights are a product, each watched: where rounding shows, they are made anew.

A panel of rows meets a stretch of keys; its logs stay in the nearest cache until they are weights
and have met the values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from locpipe.engines.fused.compiled import compiled, in_any_order, prefer_wide_vectors
from locpipe.engines.fused.exponential import two_to_minus
from locpipe.engines.fused.panels import (
    KEYS,
    STRIDE,
    Panel,
    logs_of_panel,
    panel_of,
)
from locpipe.engines.fused.wide_compiled import (
    COUNTS,
    LOG2_E,
    NUMBERS,
    SUM,
    largest,
    matrix,
    read_only,
    rise,
    weights_of_row,
)
from locpipe.engines.fused.wide_meet import meet

__all__ = ["HOPELESS", "fold_products"]

HOPELESS = 2**40
"""Count of the doubtful pairs of a row whose logs are not even nearly right."""

_CHUNK = 64


@lru_cache
def fold_products(source: Any, real: Any, small: Any, values_panel: Panel | None) -> Any:
    """Fold keys whose logs are products into the sums of queries.

    Weights that matter are made anew from exact logs where rounding would show.  Errors of pairs
    are independent, so those of weights w with ``w variance <= mass`` (variance of the log in units
    of ``rtol^2``) add up to at most rtol of the mass.  All others are computed anew, until they are
    `most` in a row; `repaired` counts them.  A row whose logs are not nearly right, by the variance
    `hopeless`, gets more than any number.

    A mean may hang on weights that are next to nothing of the mass, where the values of all others
    are 0.  So variances far above rtol count for more than they are, by `steep`.

    Queries come in the panels of `x`, keys in those of `y`, from `begin` to `end`.  Without a panel
    of values, squares of weights are summed.
    """
    panel = panel_of(real)
    careful, add = _careful(real, small, values_panel is None), meet(small, values_panel)
    log, bounds, n_rows = _logs_of_block(real, panel), _bounds(), panel.rows

    def fold(
        x: Any, y: Any, added: Any, rounding: Any, begin: int, end: int, allowed: Any, values: Any,
        shares: Any, moment: Any, seen: Any, shift: Any, factor: Any, mass: Any, squares: Any,
        repaired: Any, variance: Any, hopeless: Any, most: Any, q: Any, k: Any, scale: Any,
        is_dot: bool, of_keys: Any, own: Any,
    ) -> None:  # fmt: skip
        logs = np.empty((n_rows, STRIDE), dtype=real)
        weights, doubts = np.empty((1, n_rows, STRIDE), dtype=small), np.empty(KEYS, dtype=real)
        keys = (k, scale, is_dot, of_keys, own)
        for start in range(begin, end, KEYS):
            count = min(KEYS, end - start)
            limits = bounds(added, rounding, start, count, variance)
            for b in range(x.shape[0]):
                first = b * n_rows
                n = min(n_rows, q.shape[0] - first)
                log(x[b], y, start, count, logs)
                for r in range(n):
                    i, row = first + r, logs[r, :count]
                    for j in range(count if allowed.shape[0] else 0):
                        row[j] = row[j] if allowed[i, start - begin + j] else -np.inf
                    careful(
                        row, weights[0, r, :count], added, rounding, start, limits, doubts, shift,
                        factor, mass, squares, repaired, hopeless, most, i, q, keys,
                    )  # fmt: skip
                add(weights, start, count, values, shares, moment, seen, factor, first, n)

    keys, sums = read_only(real, 1), (*(SUM,) * 5, COUNTS)
    pairs = (read_only(source, 2), read_only(source, 2), NUMBERS, types.boolean, NUMBERS, NUMBERS)
    signature = types.void(
        read_only(real, 3), read_only(real, 3), keys, keys, types.int64, types.int64,
        types.boolean[:, ::1], read_only(small, 3), read_only(small, 1), matrix(np.float64), *sums,
        NUMBERS, types.float64, types.float64, *pairs,
    )  # fmt: skip
    form = "squares" if values_panel is None else f"{values_panel.lanes}x{values_panel.vectors}"
    name = f"wide-products-{source.__name__}-{real.__name__}-{small.__name__}-{form}"
    return compiled(name, signature, fold)


def _logs_of_block(real: Any, panel: Panel) -> Any:
    """Products of a panel's rows with a stretch of keys."""
    logs, columns = logs_of_panel(real, panel), panel.columns

    @in_any_order
    def logs_of_block(x: Any, y: Any, start: int, count: int, out: Any) -> None:
        for at in range(0, count, columns):
            logs(x, y[(start + at) // columns], x.shape[0], out, at)

    return logs_of_block


def _bounds() -> Any:
    """Of a stretch of keys: least and most of what they add to logs, the most that rounds it."""

    @in_any_order
    def bounds(added: Any, rounding: Any, start: int, count: int, variance: Any) -> Any:
        low, high, rounded = np.inf, -np.inf, 0.0
        for j in range(start, start + count):
            low = min(low, added[j])
            high = max(high, added[j])
            rounded = max(rounded, rounding[j])
        return low, high, rounded, variance[0], variance[1]

    return bounds


def _most_doubt() -> Any:
    """A bound of all doubts in a row, from its largest log, base 2.

    A product is at most that log, but for what the key adds.  Where it is more than 9, a weight
    falls faster than its variance grows.
    """
    power = two_to_minus(np.float64)

    @in_any_order
    def most_doubt(top: Any, shift: Any, limits: Any) -> Any:
        low, high, rounded, terms, steep = limits
        product = max(9.0, abs(np.float64(top) - low), abs(np.float64(top) - high))
        variance = product * product * terms + rounded
        return power(shift - top) * variance * (1.0 + steep * variance * variance)

    return most_doubt


def _careful(real: Any, small: Any, with_squares: bool) -> Any:
    """One row of logs to weights, the doubtful ones of them anew."""
    plain = weights_of_row(real, small, with_squares, False)
    watching = weights_of_row(real, small, with_squares, True)
    lift, repair, most_doubt = rise(real), _repair(), _most_doubt()
    in_place, none = real is small, real(0)

    @in_any_order
    def careful(
        row: Any, out: Any, added: Any, rounding: Any, start: int, limits: Any, doubts: Any,
        shift: Any, factor: Any, mass: Any, squares: Any, repaired: Any, hopeless: Any, most: Any,
        i: int, q: Any, keys: Any,
    ) -> None:  # fmt: skip
        stop = start + row.size
        added, rounding = added[start:stop], rounding[start:stop]
        top = lift(row, row if in_place else out, added, shift, factor, i)
        if top > -np.inf:
            base, before = real(shift[i]), mass[i] * factor[i]
            to = row if in_place else out
            if most_doubt(top, shift[i], limits) <= before:
                of_row = plain(row, to, added, base, added, none, none, added)
            else:
                terms, steep = real(limits[3]), real(limits[4])
                of_row = watching(row, to, added, base, rounding, terms, steep, doubts)
            mass[i] = before + of_row[0]
            squares[i] = squares[i] * factor[i] * factor[i] + of_row[1]
            if of_row[2] > mass[i] and repaired[i] <= most:
                repair(to, doubts, shift, mass, squares, repaired, hopeless, i, q, start, keys)
        if in_place:
            out[:] = row

    return careful


def _repair() -> Any:
    """Weights of a row anew, where their doubt is more than the mass."""
    exact_log, power = _exact_log(), two_to_minus(np.float64)
    worst_of = in_any_order(largest)

    @in_any_order
    def repair(
        row: Any, doubts: Any, shift: Any, mass: Any, squares: Any, repaired: Any, hopeless: Any,
        i: int, q: Any, first: int, keys: Any,
    ) -> None:  # fmt: skip
        k, scale, is_dot, of_keys, own = keys
        for start in range(0, row.size, _CHUNK):
            stop = min(start + _CHUNK, row.size)
            worst = worst_of(doubts[start:stop])
            for j in range(start, stop if worst > mass[i] else start):
                if doubts[j] <= mass[i]:
                    continue
                w = np.float64(row[j])
                repaired[i] += 1 if doubts[j] < hopeless * w else HOPELESS
                log = (exact_log(q[i], k[first + j], scale, is_dot) - own[i]) * LOG2_E
                right = power(max(shift[i] - of_keys[first + j] - log, 0.0))
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
