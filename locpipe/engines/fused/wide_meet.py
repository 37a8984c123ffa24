"""Weights of a stretch of keys meet the values: what the loop over panels ends with."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from locpipe.engines.fused.compiled import in_any_order, in_order, prefer_wide_vectors
from locpipe.engines.fused.panels import STRIDE, Panel, panel_of, product_of_panel

__all__ = ["meet", "panel_of_values"]

_FEW_COLUMNS = 4
"""Up to so many columns of values are met one by one."""
_ADDED_UP = 48
"""Products that one register adds up: rounding grows with their number, and where all are alike, as
fast as it."""


def panel_of_values(small: Any, n_columns: int) -> Panel:
    """How weights meet that many columns of values; few of them as if in vectors of one."""
    panel = panel_of(small)
    if n_columns <= _FEW_COLUMNS:
        return Panel(panel.rows, 1, 1)
    return Panel(panel.rows, panel.lanes, 1 if n_columns <= panel.lanes else 2)


def meet(small: Any, panel: Panel | None) -> Any:
    """Add products of weights to the moments of n rows, and to what they have seen.

    ``meet(weights, start, count, values, shares, moment, seen, factor, first, n)``: `weights` are
    those of the rows (n, STRIDE), `values` stand in panels of columns; `shares` (n_keys,) is a
    further column of theirs, whose products go to `seen`.
    """
    if panel is None:
        return _meet_nothing
    add = _one_by_one(small) if panel.columns == 1 else _in_panels(small, panel)
    dot = _dot(small)

    @in_any_order
    def meet_values(
        weights: Any, start: int, count: int, values: Any, shares: Any, moment: Any, seen: Any,
        factor: Any, first: int, n: int,
    ) -> None:  # fmt: skip
        add(weights, start, count, values, moment, factor, first, n)
        for r in range(n):
            i, row = first + r, weights[r, :count]
            seen[i] = seen[i] * factor[i] + dot(row, shares[start : start + count])

    return meet_values


@in_any_order
def _meet_nothing(
    weights: Any, start: int, count: int, values: Any, shares: Any, moment: Any, seen: Any,
    factor: Any, first: int, n: int,
) -> None:  # fmt: skip
    pass


def _in_panels(small: Any, panel: Panel) -> Any:
    product, rows, columns = product_of_panel(small, panel), panel.rows, panel.columns

    @in_order
    def add(
        weights: Any, start: int, count: int, values: Any, moment: Any, factor: Any, first: int,
        n: int,
    ) -> None:  # fmt: skip
        prefer_wide_vectors()
        found = np.empty((rows, columns), dtype=small)
        for p in range(values.shape[0]):
            begin, at = p * columns, (p * values.shape[1] + start) * columns
            last = min(columns, moment.shape[1] - begin)
            for g in range(0, n, rows):
                found[:] = 0
                for j in range(0, count, _ADDED_UP):
                    n_keys, here = min(_ADDED_UP, count - j), at + j * columns
                    product(n_keys, weights, g * STRIDE + j, values, here, found)
                for r in range(g, min(g + rows, n)):
                    i, level = first + r, factor[first + r]
                    for o in range(last):
                        moment[i, begin + o] = moment[i, begin + o] * level + found[r - g, o]

    return add


def _one_by_one(small: Any) -> Any:
    dot = _dot(small)

    @in_any_order
    def add(
        weights: Any, start: int, count: int, values: Any, moment: Any, factor: Any, first: int,
        n: int,
    ) -> None:  # fmt: skip
        for r in range(n):
            i, row = first + r, weights[r, :count]
            for o in range(moment.shape[1]):
                column = values[o].reshape(-1)[start : start + count]
                moment[i, o] = moment[i, o] * factor[i] + dot(row, column)

    return add


@lru_cache
def _dot(small: Any) -> Any:
    zero = small(0)

    @in_any_order
    def dot(x: Any, y: Any) -> Any:
        prefer_wide_vectors()
        total = zero
        for j in range(x.size):
            total += x[j] * y[j]
        return total

    return dot
