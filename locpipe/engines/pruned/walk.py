"""Queries meet the leaves that matter to them, group by group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types

from locpipe.engines.pruned.bounds import box_gap, reach, row_gap
from locpipe.engines.pruned.entry import call_sums, entry, inlined, once

__all__ = ["Groups", "Work", "walk"]


class Groups(NamedTuple):
    """Queries in k-d order.

    Attributes
    ----------
    rows : int64 array (n_groups, 3)
        The first row of each group, the one after the last, and a leaf near it.
    boxes : float64 array (n_groups, 2 n_features)
        Least and largest coordinates.
    data : float64 array (n, n_features)
    """

    rows: Any
    boxes: Any
    data: Any


class Work(NamedTuple):
    """Memory of the walk of one group.

    Attributes
    ----------
    reach : float64 array (group,)
        Squared distance from which on keys may be skipped.
    rest : float64 array (n_quantities,)
        Parts of all quantities that are still to come.
    chosen : int64 array (group,)
        Rows that meet the leaf at hand.
    leaves, gaps : arrays (n_nodes,)
        Leaves that may matter, and how far they are from the group.  At the end of the list, nodes
        are waiting to be looked at.
    """

    reach: Any
    rest: Any
    chosen: Any
    leaves: Any
    gaps: Any


def walk(*arguments: Any) -> None:
    """Sums of all groups, into the last argument; compiled on first use for these kinds."""
    _compiled(tuple(typeof(argument) for argument in arguments))(*arguments)


@once
def _compiled(kinds: tuple[Any, ...]) -> Any:
    return entry("walk", types.void(*kinds), _walk)


def _walk(
    tree: Any,
    rule: Any,
    groups: Any,
    work: Any,
    address: Any,
    keys: Any,
    mask: Any,
    tile: Any,
    found: Any,
) -> None:
    for group in range(groups.rows.shape[0]):
        limit = _begin(rule, groups, group, work)
        work.leaves[0], work.gaps[0] = groups.rows[group, 2], 0.0
        first, last, n = 0, 1, 1
        while first < n:
            for place in range(first, min(last, n)):
                if work.gaps[place] <= limit:
                    leaf = work.leaves[place]
                    chosen = _choose(tree, rule, groups, group, leaf, work)
                    start, stop = tree.nodes[leaf, 1], tree.nodes[leaf, 2]
                    weight = tree.shares[leaf, rule.size.size]
                    of_leaf = keys, start, stop, weight
                    of_rows = groups, group, work.chosen, chosen
                    call_sums(address, (*of_leaf, *of_rows, mask, rule, tile, found))
            if first == 0 or last < n:
                limit = _renew(rule, groups, group, work, found)
            if first == 0:
                n = _find_leaves(tree, groups.boxes, group, work, rule.scale, limit)
                _sort(work.gaps, work.leaves, 1, n)
                _count(tree, work, n)
            first, last = last, max(5, 2 * last - 1)


@inlined
def _begin(rule: Any, groups: Any, group: Any, work: Any) -> Any:
    for i in range(groups.rows[group, 1] - groups.rows[group, 0]):
        work.reach[i] = np.inf
    for j in range(rule.size.size):
        work.rest[j] = 1.0
    return np.inf


@inlined
def _renew(rule: Any, groups: Any, group: Any, work: Any, found: Any) -> Any:
    """Reaches of all rows, as their sums are by now; the largest."""
    limit = 0.0
    for row in range(groups.rows[group, 0], groups.rows[group, 1]):
        far = reach(rule, found.least, row, rule.peak, work.rest)
        work.reach[row - groups.rows[group, 0]] = far
        limit = max(limit, far)
    return limit


@inlined
def _choose(tree: Any, rule: Any, groups: Any, group: Any, leaf: Any, work: Any) -> Any:
    """List the rows that the leaf is not too far from; their number."""
    n, first = 0, groups.rows[group, 0]
    for row in range(first, groups.rows[group, 1]):
        gap = row_gap(tree.boxes, leaf, groups.data, row, rule.scale)
        if gap <= work.reach[row - first]:
            work.chosen[n] = row
            n += 1
    return n


@inlined
def _find_leaves(tree: Any, boxes: Any, group: Any, work: Any, scale: Any, limit: Any) -> Any:
    """List the leaves within `limit` of the group behind the one that is there; their number."""
    waiting, found = work.leaves.size - tree.roots.size, 1
    for i in range(tree.roots.size):
        work.leaves[waiting + i] = tree.roots[i]
    while waiting < work.leaves.size:
        node = work.leaves[waiting]
        waiting += 1
        gap = box_gap(tree.boxes, node, boxes, group, scale)
        if gap <= limit and node != work.leaves[0]:
            if tree.nodes[node, 0] >= 0:
                waiting -= 2
                work.leaves[waiting], work.leaves[waiting + 1] = node + 1, tree.nodes[node, 0]
            else:
                work.leaves[found], work.gaps[found] = node, gap
                found += 1
    return found


@inlined
def _sort(gaps: Any, leaves: Any, first: Any, last: Any) -> None:
    """Small gaps first (Shell 1959)."""
    step = 1
    while 3 * step < last - first:
        step = 3 * step + 1
    while step > 0:
        for i in range(first + step, last):
            gap, leaf, j = gaps[i], leaves[i], i
            while j >= first + step and gaps[j - step] > gap:
                gaps[j], leaves[j] = gaps[j - step], leaves[j - step]
                j -= step
            gaps[j], leaves[j] = gap, leaf
        step //= 3


@inlined
def _count(tree: Any, work: Any, n: Any) -> None:
    """What is to come: the leaves in the list but the first."""
    for j in range(work.rest.size):
        total = 0.0
        for place in range(1, n):
            total += tree.shares[work.leaves[place], j]
        work.rest[j] = total
