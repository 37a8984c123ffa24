"""Squared distances of a tile of pairs, compiled: from products, or from differences."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit, types

from locpipe.engines.fused.compiled import compiled
from locpipe.engines.fused.wide_compiled import COUNTS, NUMBERS, larger, matrix, read_only

__all__ = ["squares_from_differences", "squares_from_products"]


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

    rows = (read_only(source, 2), read_only(source, 2))
    signature = types.void(matrix(np.float64), *rows, *(NUMBERS,) * 3)
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
                square = larger(square, 0.0)
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

    numbers, rows = (NUMBERS,) * 6, (read_only(source, 2), read_only(source, 2))
    signature = types.void(matrix(np.float64), *numbers, *rows, *(NUMBERS,) * 3, COUNTS)
    return compiled(f"wide-squares-from-products-{source.__name__}", signature, squares)
