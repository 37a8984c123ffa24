"""One row at a time in the log domain: for rows far off all keys, and masses of any size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from locpipe.engines.fused.compiled import as_written
from locpipe.engines.pruned.bounds import degree_of, log_weight, reach, row_gap, totals
from locpipe.engines.pruned.leaves import first_of, scaled
from locpipe.engines.pruned.walk import children_first

__all__ = ["answer_row"]


@as_written
def answer_row(forest: Any, rule: Any, row: Any, span: Any, sums: Any) -> Any:
    """Sums of one row at ``exp(shift)``; the shift: the largest log weight, ``-inf`` of none."""
    everything, least = totals(forest, forest.roots), np.zeros(sums.size)
    depth, shift, limit = forest.roots.size, -np.inf, np.inf
    waiting = np.empty(depth + 64, np.int64)
    for i in range(depth):
        waiting[i] = forest.roots[i]
    for j in range(sums.size):
        sums[j] = 0.0
    while depth:
        depth -= 1
        node = waiting[depth]
        if row_gap(row, forest.low[node], forest.high[node], rule.scale) > limit:
            continue
        if forest.right[node] >= 0:
            near, far = children_first(forest, node, row, row, rule.scale)
            waiting[depth], waiting[depth + 1] = far, near
            depth += 2
            continue
        logs = _log_weights(forest, rule, row, span, node)
        shift = _add(forest, rule, logs, node, shift, sums, least)
        if shift > -np.inf:
            limit = reach(rule, least, shift, everything)
    return shift


@as_written
def _log_weights(forest: Any, rule: Any, row: Any, span: Any, leaf: Any) -> Any:
    start, stop = forest.start[leaf], forest.stop[leaf]
    logs = np.empty(stop - start)
    for i in range(start, stop):
        logs[i - start] = log_weight(rule, _squared(forest, rule, row, i))
        if forest.log_weight.size:
            logs[i - start] += forest.log_weight[i]
    place = first_of(forest.by_id, span[0], span[1], start)
    while place < span[1] and forest.by_id[place] < stop:
        logs[forest.by_id[place] - start] = -np.inf
        place += 1
    return logs


@as_written
def _squared(forest: Any, rule: Any, row: Any, i: Any) -> Any:
    """Squared distance of key i; of profiles with an edge as the reference has it, to the bit."""
    largest, total = 1.0, 0.0
    if rule.compact:
        largest = max(rule.scale)
    for j in range(row.size):
        gap = (row[j] - forest.data[j, i]) / (rule.scale[j] / largest)
        total += gap * gap
    if not rule.compact:
        return total
    u = math.sqrt(total) / largest
    return u * u


@as_written
def _add(forest: Any, rule: Any, logs: Any, leaf: Any, shift: Any, sums: Any, least: Any) -> Any:
    """Add a leaf's keys; the new shift."""
    peak = shift
    for log_w in logs:
        peak = max(peak, log_w)
    if peak == -np.inf:
        return peak
    for j in range(sums.size):
        factor = math.exp(degree_of(rule, j) * (shift - peak))
        sums[j] *= factor
        least[j] *= factor
    for i in range(logs.size):
        w = math.exp(logs[i] - peak)
        for j in range(sums.size):
            term = w
            if j > 0:
                term *= w if rule.squares else scaled(forest, rule, j, forest.start[leaf] + i)
            sums[j] += term
            least[j] += abs(term)
    return peak
