"""Queries meet the leaves that matter to them, group by group."""

from __future__ import annotations

from typing import Any

import numpy as np

from locpipe.engines.fused.compiled import as_written
from locpipe.engines.pruned.bounds import box_gap, in_order, reach, totals
from locpipe.engines.pruned.entry import call_sums
from locpipe.engines.pruned.leaves import load_group, load_leaf, load_rows

__all__ = ["answer_group", "children_first"]


@as_written
def answer_group(forest: Any, rule: Any, queries: Any, rows: Any, single: Any, work: Any) -> None:
    """Sums of some rows of the ordered queries, into `work`."""
    load_group(forest, rule, queries, rows, work)
    first = _nearest_leaf(forest, work.low, work.high, rule.scale)
    _add_leaf(forest, rule, queries, rows, first, single, work)
    limit = _renew(rule, work, rows.size, totals(forest, forest.roots))
    n = _find_leaves(forest, work, rule.scale, limit, first)
    rest, order = totals(forest, work.leaves[:n]), in_order(work.gaps[:n])
    due = 0
    for i in range(n):
        if i == due:
            limit, due = _renew(rule, work, rows.size, rest), max(4, 2 * due)
        if work.gaps[order[i]] <= limit:
            _add_leaf(forest, rule, queries, rows, work.leaves[order[i]], single, work)


@as_written
def _renew(rule: Any, work: Any, n_rows: Any, rest: Any) -> Any:
    limit = 0.0
    for i in range(n_rows):
        work.reach[i] = reach(rule, work.least[i], rule.peak, rest)
        limit = max(limit, work.reach[i])
    return limit


@as_written
def _add_leaf(
    forest: Any, rule: Any, queries: Any, rows: Any, leaf: Any, single: Any, work: Any
) -> None:
    n = load_rows(forest, rule, queries, rows, leaf, work)
    if n == 0:
        return
    chosen, width = work.chosen[:n], load_leaf(forest, rule, leaf, single, work)
    numbers = rule.scale, rule.power, rule.squares
    state = work.skipped, work.skip_range, work.sums, work.least, work.doubt
    if single:
        tile = work.q32, work.x32, work.out32, work.u32
        call_sums(rule.sums32, (chosen, width, *tile, *numbers, *state))
    else:
        tile_64 = work.q, work.x, work.out, work.u
        call_sums(rule.sums, (chosen, width, *tile_64, *numbers, *state))


@as_written
def _nearest_leaf(forest: Any, low: Any, high: Any, scale: Any) -> Any:
    """A leaf near a box: of each tree the one found by going to the nearer child."""
    best, leaf = np.inf, -1
    for node in forest.roots:
        while forest.right[node] >= 0:
            node = children_first(forest, node, low, high, scale)[0]
        gap = box_gap(low, high, forest.low[node], forest.high[node], scale)
        if gap < best or leaf < 0:
            best, leaf = gap, node
    return leaf


@as_written
def children_first(forest: Any, node: Any, low: Any, high: Any, scale: Any) -> Any:
    """The children of a node, the one nearer to a box first."""
    a, b = node + 1, forest.right[node]
    gap_a = box_gap(low, high, forest.low[a], forest.high[a], scale)
    gap_b = box_gap(low, high, forest.low[b], forest.high[b], scale)
    return (a, b) if gap_a <= gap_b else (b, a)


@as_written
def _find_leaves(forest: Any, work: Any, scale: Any, limit: Any, done: Any) -> Any:
    """How many leaves are within `limit` of the group, but for one; they are listed in `work`."""
    depth, found = forest.roots.size, 0
    waiting = np.empty(depth + 64, np.int64)
    for i in range(depth):
        waiting[i] = forest.roots[i]
    while depth:
        depth -= 1
        node = waiting[depth]
        gap = box_gap(work.low, work.high, forest.low[node], forest.high[node], scale)
        if gap > limit or node == done:
            continue
        if forest.right[node] >= 0:
            waiting[depth], waiting[depth + 1] = forest.right[node], node + 1
            depth += 2
        else:
            work.leaves[found], work.gaps[found] = node, gap
            found += 1
    return found
