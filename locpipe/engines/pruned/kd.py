"""Points in k-d order: consecutive blocks of a fixed size, each in a small box."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

__all__ = ["Blocks", "order_in_blocks"]

_loops = njit(nogil=True, error_model="numpy")


class Blocks(NamedTuple):
    """A binary tree over points whose leaves are blocks of consecutive points, in preorder.

    Attributes
    ----------
    order : int64 array (n,)
        Place of each point in the array that was given.
    right : int64 array (n_nodes,)
        Right child of each node, whose left child is the next node; -1 for a leaf.
    start, stop : int64 arrays (n_nodes,)
        The points below each node.
    low, high : float64 arrays (n_nodes, n_features)
        The box of these points.
    """

    order: Any
    right: Any
    start: Any
    stop: Any
    low: Any
    high: Any


def order_in_blocks(points: Any, scale: Any, size: int) -> Blocks:
    """k-d order of `points` (n, n_features), cut at the widest side in units of `scale`.

    All blocks but the last hold exactly `size` points.

    Notes
    -----
    O(n n_features log(n / size)) time: one selection per level (Hoare 1961).
    """
    rows = np.array(points, dtype=np.float64, order="C")
    return Blocks(*_order(rows, 1.0 / scale, size))


@_loops
def _order(points: Any, inverse: Any, size: Any) -> Any:
    n, d = points.shape
    n_nodes = max(0, 2 * ((n + size - 1) // size) - 1)
    order = np.arange(n)
    right, start, stop = (
        np.full(n_nodes, -1),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes, np.int64),
    )
    low, high = np.empty((n_nodes, d)), np.empty((n_nodes, d))
    waiting = np.empty((64, 3), np.int64)
    waiting[0] = 0, n, -1
    depth = 1
    for node in range(n_nodes):
        depth -= 1
        first, last, parent = waiting[depth]
        start[node], stop[node] = first, last
        if parent >= 0:
            right[parent] = node
        _box(points[first:last], low[node], high[node])
        if last - first <= size:
            continue
        half = ((last - first + size - 1) // size + 1) // 2
        middle = first + half * size
        _select(
            points, order, first, last - 1, middle, np.argmax((high[node] - low[node]) * inverse)
        )
        waiting[depth] = middle, last, node
        waiting[depth + 1] = first, middle, -1
        depth += 2
    return order, right, start, stop, low, high


@_loops
def _box(points: Any, low: Any, high: Any) -> None:
    for j in range(points.shape[1]):
        low[j] = high[j] = points[0, j]
    for i in range(1, points.shape[0]):
        for j in range(points.shape[1]):
            low[j] = min(low[j], points[i, j])
            high[j] = max(high[j], points[i, j])


@_loops
def _select(points: Any, order: Any, first: Any, last: Any, place: Any, side: Any) -> None:
    """Bring what is at `place` by feature `side` there, and no larger ones before it."""
    while first < last:
        pivot = _median(points[first, side], points[(first + last) // 2, side], points[last, side])
        i, j = first, last
        while i <= j:
            while points[i, side] < pivot:
                i += 1
            while points[j, side] > pivot:
                j -= 1
            if i <= j:
                _swap(points, order, i, j)
                i += 1
                j -= 1
        if place <= j:
            last = j
        elif place >= i:
            first = i
        else:
            return


@_loops
def _median(a: Any, b: Any, c: Any) -> Any:
    return max(min(a, b), min(max(a, b), c))


@_loops
def _swap(points: Any, order: Any, i: Any, j: Any) -> None:
    order[i], order[j] = order[j], order[i]
    for k in range(points.shape[1]):
        points[i, k], points[j, k] = points[j, k], points[i, k]
