"""Groups of queries and leaves of keys, laid out as the compiled loops take them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from locpipe.engines.fused.compiled import as_written

__all__ = ["Work", "excluded", "first_of", "load_group", "load_leaf", "scaled"]

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
        Sums so far, and lower bounds of the sums of the sizes.
    reach : float64 array (group,)
        Squared distance from which on keys may be skipped.
    span : int64 array (group, 2)
        Where in `Forest.by_id` the keys lie that the row must not meet.
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
    reach: Any
    span: Any
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
            work.q32[i, j] = _placed(work.q[i, j], j, rule, work)
    for i in range(rows.size):
        for j in range(rule.size.size):
            work.sums[i, j] = work.least[i, j] = 0.0
        work.reach[i] = np.inf
        work.span[i, 0], work.span[i, 1] = excluded(forest, queries, rows[i])


@as_written
def _placed(value: Any, j: Any, rule: Any, work: Any) -> Any:
    """A coordinate about the centre of the group."""
    centre = work.low[j] + 0.5 * (work.high[j] - work.low[j])
    return min(max((value - centre) / rule.scale[j], -_FAR), _FAR)


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
    start = forest.start[leaf]
    n = forest.stop[leaf] - start
    width = (n + 63) // 64 * 64
    for j in range(rule.scale.size):
        for i in range(width):
            work.x[j, i] = forest.data[j, start + min(i, n - 1)]
            if single:
                work.x32[j, i] = _placed(work.x[j, i], j, rule, work)
    factor = math.exp(forest.log_peak[leaf] - rule.peak)
    for i in range(width):
        key = start + min(i, n - 1)
        w = forest.weight[key] if forest.weight.size else 1.0
        work.out[0, i] = w = w * factor if i < n else 0.0
        for j in range(1, rule.size.size):
            work.out[j, i] = w * (w if rule.squares else scaled(forest, rule, j, key))
        if single:
            for j in range(rule.size.size):
                work.out32[j, i] = work.out[j, i]
    return width


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
