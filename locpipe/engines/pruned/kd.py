"""Points in k-d order: consecutive blocks of a fixed size, each in a small box."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import types

from locpipe.engines.fused.compiled import as_written
from locpipe.engines.pruned.entry import entry

__all__ = ["Blocks", "order_in_blocks"]


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
    n, d = rows.shape
    n_nodes = max(0, 2 * -(-n // size) - 1)
    start, stop = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    boxes = np.empty((n_nodes, d)), np.empty((n_nodes, d))
    blocks = Blocks(np.arange(n), np.full(n_nodes, -1), start, stop, *boxes)
    _order()(rows, 1.0 / scale, size, *blocks)
    return blocks


@lru_cache(maxsize=1)
def _order() -> Any:
    integers, rows = types.int64[::1], types.float64[:, ::1]
    kinds = rows, types.float64[::1], types.int64, *(integers,) * 4, rows, rows
    return entry("order", types.void(*kinds), _fill)


def _fill(
    points: Any,
    inverse: Any,
    size: Any,
    order: Any,
    right: Any,
    start: Any,
    stop: Any,
    low: Any,
    high: Any,
) -> None:
    """Nodes in preorder: what waits is a stack of (first, last, parent if it is a right child)."""
    waiting = np.empty((64, 3), np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, order.size, -1
    depth = 1
    for node in range(right.size):
        depth -= 1
        first, last, parent = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2]
        start[node], stop[node] = first, last
        if parent >= 0:
            right[parent] = node
        side = _box(points, first, last, node, inverse, low, high)
        if last - first <= size:
            continue
        middle = first + size * (((last - first + size - 1) // size + 1) // 2)
        _select(points, order, first, last - 1, middle, side)
        waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = middle, last, node
        depth += 1
        waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = first, middle, -1
        depth += 1


@as_written
def _box(points: Any, first: Any, last: Any, node: Any, inverse: Any, low: Any, high: Any) -> Any:
    """Fill in the box of a node; the feature in which it is widest."""
    side, widest = 0, -1.0
    for j in range(points.shape[1]):
        least = most = points[first, j]
        for i in range(first + 1, last):
            least, most = min(least, points[i, j]), max(most, points[i, j])
        low[node, j], high[node, j] = least, most
        if (most - least) * inverse[j] > widest:
            side, widest = j, (most - least) * inverse[j]
    return side


@as_written
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


@as_written
def _median(a: Any, b: Any, c: Any) -> Any:
    return max(min(a, b), min(max(a, b), c))


@as_written
def _swap(points: Any, order: Any, i: Any, j: Any) -> None:
    order[i], order[j] = order[j], order[i]
    for k in range(points.shape[1]):
        points[i, k], points[j, k] = points[j, k], points[i, k]
