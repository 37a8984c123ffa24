"""Groups of queries and leaves of keys, laid out as the compiled loops take them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from locpipe.engines.fused.compiled import as_written, in_any_order

__all__ = ["Work", "excluded", "first_of", "load_group", "load_leaf", "load_rows", "scaled"]

_FAR = 1e18
"""Coordinates end here in float32, so that squares of differences stay finite."""


class Work(NamedTuple):
    """Memory of one group of queries.

    Attributes
    ----------
    q, x : float64 arrays (group, n_features), (n_features, leaf)
        Queries and keys.
    out : float64 array (n_quantities, leaf)
        What weights are multiplied by: a sample weight, or that times a scaled value.
    u : float64 array (leaf,)
        Weights of one row.
    q32, x32, out32, u32 : float32 arrays
        The same, with coordinates about the centre of the group in units of the scale.
    sums, least : float64 arrays (group, n_quantities)
        Sums so far, and with sizes in place of values.
    doubt : float64 array (group,)
        What a relative error of 1 in squared distances would do to the mass.
    reach : float64 array (group,)
        Squared distance from which on keys may be skipped.
    span : int64 array (group, 2)
        Where in `Forest.by_id` the keys lie that the row must not meet.
    chosen : int64 array (group,)
        Rows that meet the leaf at hand.
    skipped, skip_range : int64 arrays (group * leaf,), (group, 2)
        Keys of the leaf at hand that are left out, and where those of each row begin and end.
    low, high : float64 arrays (n_features,)
        Box of the group.
    leaves, gaps : arrays (n_leaves,)
        Leaves that may matter, and how far they are from the group.
    """

    q: Any
    x: Any
    out: Any
    u: Any
    q32: Any
    x32: Any
    out32: Any
    u32: Any
    sums: Any
    least: Any
    doubt: Any
    reach: Any
    span: Any
    chosen: Any
    skipped: Any
    skip_range: Any
    low: Any
    high: Any
    leaves: Any
    gaps: Any


@as_written
def load_group(forest: Any, rule: Any, queries: Any, rows: Any, work: Any) -> None:
    """Begin with some rows of the ordered queries."""
    for j in range(rule.scale.size):
        work.low[j], work.high[j] = np.inf, -np.inf
        for row in rows:
            work.low[j] = min(work.low[j], queries.data[row, j])
            work.high[j] = max(work.high[j], queries.data[row, j])
        for i in range(rows.size):
            work.q[i, j] = queries.data[rows[i], j]
            placed = (work.q[i, j] - _centre(work.low[j], work.high[j])) / rule.scale[j]
            work.q32[i, j] = min(max(placed, -_FAR), _FAR)
    for i in range(rows.size):
        for j in range(rule.size.size):
            work.sums[i, j] = work.least[i, j] = 0.0
        work.reach[i], work.doubt[i] = np.inf, 0.0
        work.span[i, 0], work.span[i, 1] = excluded(forest, queries, rows[i])


@as_written
def excluded(forest: Any, queries: Any, row: Any) -> Any:
    """Where in `by_id` the keys with the row's id begin and end."""
    if queries.ids.size == 0:
        return 0, 0
    name = queries.ids[row]
    return _smaller_ids(forest, name, False), _smaller_ids(forest, name, True)


@as_written
def _smaller_ids(forest: Any, name: Any, equal: Any) -> Any:
    """How many keys have a smaller id, or with `equal` the same."""
    low, high = 0, forest.by_id.size
    while low < high:
        middle = (low + high) // 2
        found = forest.ids[forest.by_id[middle]]
        if found < name or (equal and found == name):
            low = middle + 1
        else:
            high = middle
    return low


@as_written
def load_leaf(forest: Any, rule: Any, leaf: Any, single: Any, work: Any) -> Any:
    """The keys of a leaf, filled up with keys of no weight to the width that is returned."""
    start, n = forest.start[leaf], forest.stop[leaf] - forest.start[leaf]
    width = (n + 63) // 64 * 64
    factor = math.exp(forest.log_peak[leaf] - rule.peak)
    keys = forest.data, forest.values, forest.weight, start, n, width
    if single:
        _load_keys(*keys, work.low, work.high, rule.scale, True, work.x32)
        _load_out(*keys, factor, rule.size, rule.squares, work.out32)
    else:
        _load_keys(*keys, work.low, work.high, rule.scale, False, work.x)
        _load_out(*keys, factor, rule.size, rule.squares, work.out)
    return width


@in_any_order
def _load_keys(
    data: Any,
    values: Any,
    weight: Any,
    start: Any,
    n: Any,
    width: Any,
    low: Any,
    high: Any,
    scale: Any,
    single: Any,
    x: Any,
) -> None:
    for j in range(data.shape[0]):
        if single:
            centre, inverse = _centre(low[j], high[j]), 1 / scale[j]
            for i in range(n):
                x[j, i] = min(max((data[j, start + i] - centre) * inverse, -_FAR), _FAR)
        else:
            for i in range(n):
                x[j, i] = data[j, start + i]
        for i in range(n, width):
            x[j, i] = x[j, 0]


@in_any_order
def _load_out(
    data: Any,
    values: Any,
    weight: Any,
    start: Any,
    n: Any,
    width: Any,
    factor: Any,
    size: Any,
    squares: Any,
    out: Any,
) -> None:
    for j in range(size.size):
        for i in range(n):
            out[j, i] = factor * (factor if squares and j > 0 else 1.0)
        for i in range(n, width):
            out[j, i] = 0
        if weight.size:
            for i in range(n):
                w = weight[start + i]
                out[j, i] *= w * w if squares and j > 0 else w
        if j > 0 and not squares:
            inverse = 1 / size[j] if size[j] > 0 else 0.0
            for i in range(n):
                out[j, i] *= values[j - 1, start + i] * inverse


@as_written
def _centre(low: Any, high: Any) -> Any:
    return low + 0.5 * (high - low)


@as_written
def load_rows(forest: Any, rule: Any, queries: Any, rows: Any, leaf: Any, work: Any) -> Any:
    """The rows that the leaf is not too far from, and the keys left out for each; their number."""
    n = n_skipped = 0
    for i in range(rows.size):
        gap = 0.0
        for j in range(rule.scale.size):
            value = queries.data[rows[i], j]
            side = max(0.0, forest.low[leaf, j] - value, value - forest.high[leaf, j])
            gap += (side / rule.scale[j]) ** 2
        if gap > work.reach[i]:
            continue
        work.chosen[n] = i
        n += 1
        work.skip_range[i, 0] = n_skipped
        if work.span[i, 0] < work.span[i, 1]:
            n_skipped = _load_skipped(forest, leaf, i, n_skipped, work)
        work.skip_range[i, 1] = n_skipped
    return n


@as_written
def _load_skipped(forest: Any, leaf: Any, i: Any, n_skipped: Any, work: Any) -> Any:
    start, stop = forest.start[leaf], forest.stop[leaf]
    place = first_of(forest.by_id, work.span[i, 0], work.span[i, 1], start)
    while place < work.span[i, 1] and forest.by_id[place] < stop:
        work.skipped[n_skipped] = forest.by_id[place] - start
        n_skipped += 1
        place += 1
    return n_skipped


@as_written
def scaled(forest: Any, rule: Any, j: Any, key: Any) -> Any:
    """A value over the largest size of its output."""
    return forest.values[j - 1, key] / rule.size[j] if rule.size[j] > 0 else 0.0


@as_written
def first_of(places: Any, first: Any, last: Any, least: Any) -> Any:
    """The first of the sorted ``places[first:last]`` that is at least `least`; `last` if none."""
    while first < last:
        middle = (first + last) // 2
        if places[middle] < least:
            first = middle + 1
        else:
            last = middle
    return first
