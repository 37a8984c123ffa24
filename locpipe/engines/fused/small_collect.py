"""What is summed of a strip's weights beside the weights themselves, compiled.

All take ``(buffer, count, s, row, queries, strips, values, tables, units, work, moments)``: the
weights of two queries over strip s, everything that they may be multiplied with, and the float64
sums (n_queries, any) that they are added to.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from locpipe.engines.fused.compiled import in_any_order, prefer_wide_vectors

__all__ = ["collector", "skip"]


@lru_cache(maxsize=64)
def collector(kind: str, n_features: int, real: Any) -> Any:
    """The function that sums one kind: "squares", "products" or "monomials" of the features."""
    if kind == "monomials":
        return _monomials(n_features, real)
    return _squares(real) if kind == "squares" else _products(real)


def _squares(real: Any) -> Any:
    """Squares of the weights."""
    zero = real(0)

    @in_any_order
    def squares(
        buffer: Any,
        count: int,
        s: int,
        row: int,
        queries: Any,
        strips: Any,
        values: Any,
        tables: Any,
        units: Any,
        work: Any,
        moments: Any,
    ) -> None:
        prefer_wide_vectors()
        total_0, total_1 = zero, zero
        for i in range(count):
            total_0 += buffer[0, i] * buffer[0, i]
            total_1 += buffer[1, i] * buffer[1, i]
        moments[row, 0] += total_0
        moments[row + 1, 0] += total_1

    return squares


def _products(real: Any) -> Any:
    """Products with every row of values."""
    zero = real(0)

    @in_any_order
    def products(
        buffer: Any,
        count: int,
        s: int,
        row: int,
        queries: Any,
        strips: Any,
        values: Any,
        tables: Any,
        units: Any,
        work: Any,
        moments: Any,
    ) -> None:
        prefer_wide_vectors()
        n_outputs = values.shape[1]
        # Two at a time share the weights that are loaded.
        for o in range(0, n_outputs - 1, 2):
            total_00, total_01, total_10, total_11 = zero, zero, zero, zero
            for i in range(count):
                total_00 += buffer[0, i] * values[s, o, i]
                total_01 += buffer[0, i] * values[s, o + 1, i]
                total_10 += buffer[1, i] * values[s, o, i]
                total_11 += buffer[1, i] * values[s, o + 1, i]
            moments[row, o] += total_00
            moments[row, o + 1] += total_01
            moments[row + 1, o] += total_10
            moments[row + 1, o + 1] += total_11
        if n_outputs % 2:
            o, total_0, total_1 = n_outputs - 1, zero, zero
            for i in range(count):
                total_0 += buffer[0, i] * values[s, o, i]
                total_1 += buffer[1, i] * values[s, o, i]
            moments[row, o] += total_0
            moments[row + 1, o] += total_1

    return products


def _monomials(n_features: int, real: Any) -> Any:
    """Products with monomials of the differences, and of those with the values.

    Row m of `tables` says from which monomial the m-th comes and which feature it is multiplied
    with; as many of the first ones as there is room for in `moments` meet the values too.
    """
    zero, least = real(0), real(1e-30 if real is np.float32 else 1e-280)

    @in_any_order
    def monomials(
        buffer: Any,
        count: int,
        s: int,
        row: int,
        queries: Any,
        strips: Any,
        values: Any,
        tables: Any,
        units: Any,
        work: Any,
        moments: Any,
    ) -> None:
        prefer_wide_vectors()
        n_monomials, n_outputs = tables.shape[0], values.shape[1]
        n_valued = (moments.shape[1] - n_monomials) // max(n_outputs, 1)
        for g in range(2):
            for j in range(n_features):
                for i in range(count):
                    gap = strips[s, j, i] - queries[row + g, j]
                    work[n_monomials + j, i] = gap * units[j]
            for i in range(count):
                # A power of a far difference must not lift what is cut off at the floor.
                work[0, i] = buffer[g, i] if buffer[g, i] > least else zero
            for m in range(n_monomials):
                parent, factor = tables[m, 0], n_monomials + tables[m, 1]
                total = zero
                if m:
                    for i in range(count):
                        work[m, i] = work[parent, i] * work[factor, i]
                for i in range(count):
                    total += work[m, i]
                moments[row + g, m] += total
                for o in range(n_outputs if m < n_valued else 0):
                    total = zero
                    for i in range(count):
                        total += work[m, i] * values[s, o, i]
                    moments[row + g, n_monomials + m * n_outputs + o] += total

    return monomials


@in_any_order
def skip(
    skipped: Any, skip_range: Any, row: int, start: int, count: int, weights: Any, mass: Any
) -> Any:
    """Take the weights of a query's keys to be skipped out of a buffer; the mass that is left.

    Strips come in order, so the start of `skip_range` moves past what is done.
    """
    low, high = skip_range[row, 0], skip_range[row, 1]
    if low == high or skipped[low] >= start + count:
        return mass
    while low < high and skipped[low] < start + count:
        weights[skipped[low] - start] = 0
        low += 1
    skip_range[row, 0] = low
    total = mass * 0
    for i in range(count):
        total += weights[i]
    return total
