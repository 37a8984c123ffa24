"""One row at a time in the log domain: for rows far off all keys, and masses of any size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import typeof, types

from locpipe.engines.pruned.bounds import box_gap, degree_of, log_weight, near_and_far, reach
from locpipe.engines.pruned.entry import entry, inlined, once
from locpipe.engines.pruned.leaves import leaver

__all__ = ["answer_rows"]


def answer_rows(*arguments: Any) -> None:
    """Sums of rows at ``exp(shift)``; the shift: the largest log weight, ``-inf`` of none.

    Parameters
    ----------
    arguments
        ``(tree, rule, groups, waiting, keys, log_weights, mask, logs, rest, found, shifts)``:
        groups of one row, memory for nodes and (1, leaf) for logs, and a 1 per quantity.
    """
    _compiled(tuple(typeof(argument) for argument in arguments))(*arguments)


@once
def _compiled(kinds: tuple[Any, ...]) -> Any:
    masked = isinstance(kinds[6], types.BaseNamedTuple)
    return entry(f"far_{masked}", types.void(*kinds), _answering(leaver(masked)))


def _answering(leave: Any) -> Any:
    """The loop over rows, with what leaves keys out."""

    def answer(
        tree: Any,
        rule: Any,
        groups: Any,
        waiting: Any,
        keys: Any,
        log_weights: Any,
        mask: Any,
        logs: Any,
        rest: Any,
        found: Any,
        shifts: Any,
    ) -> None:
        for row in range(groups.boxes.shape[0]):
            depth, shift, limit = tree.roots.size, -np.inf, np.inf
            for i in range(depth):
                waiting[i] = tree.roots[i]
            while depth > 0:
                depth -= 1
                node = waiting[depth]
                if box_gap(tree.boxes, node, groups.boxes, row, rule.scale) > limit:
                    continue
                if tree.nodes[node, 0] >= 0:
                    near, far = near_and_far(tree, node, groups.boxes, row, rule.scale)
                    waiting[depth], waiting[depth + 1] = far, near
                    depth += 2
                    continue
                _load_logs(tree, rule, groups, row, keys, log_weights, node, logs)
                leave(mask, tree.nodes[node, 1], tree.nodes[node, 2], row, logs, -np.inf)
                shift = _add(tree, rule, keys, node, row, logs, shift, found)
                if shift > -np.inf:
                    limit = reach(rule, found.least, row, shift, rest)
            shifts[row] = shift

    return answer


@inlined
def _load_logs(
    tree: Any,
    rule: Any,
    groups: Any,
    row: Any,
    keys: Any,
    log_weights: Any,
    leaf: Any,
    logs: Any,
) -> None:
    start, stop = tree.nodes[leaf, 1], tree.nodes[leaf, 2]
    for i in range(start, stop):
        logs[0, i - start] = log_weight(rule, _squared(keys.data, i, groups.data, row, rule))
        if log_weights.size > 0:
            logs[0, i - start] += log_weights[i]


@inlined
def _squared(data: Any, i: Any, rows: Any, row: Any, rule: Any) -> Any:
    """Squared distance of key i; of profiles with an edge as the reference has it, to the bit."""
    largest, total = 1.0, 0.0
    if rule.compact:
        largest = 0.0
        for h in rule.scale:
            largest = max(largest, h)
    for j in range(rule.scale.size):
        gap = (rows[row, j] - data[j, i]) / (rule.scale[j] / largest)
        total += gap * gap
    if rule.compact:
        u = math.sqrt(total) / largest
        total = u * u
    return total


@inlined
def _add(
    tree: Any, rule: Any, keys: Any, leaf: Any, row: Any, logs: Any, shift: Any, found: Any
) -> Any:
    """Add a leaf's keys; the new shift."""
    start, n, peak = tree.nodes[leaf, 1], tree.nodes[leaf, 2] - tree.nodes[leaf, 1], shift
    for i in range(n):
        peak = max(peak, logs[0, i])
    if peak > -np.inf:
        for j in range(rule.size.size):
            factor = math.exp(degree_of(rule, j) * (shift - peak))
            found.sums[row, j] *= factor
            found.least[row, j] *= factor
        for i in range(n):
            w = math.exp(logs[0, i] - peak)
            for j in range(rule.size.size):
                term = w
                if j > 0 and rule.squares:
                    term = w * w
                elif j > 0:
                    size = rule.size[j]
                    term = w * (keys.values[j - 1, start + i] / size if size > 0 else 0.0)
                found.sums[row, j] += term
                found.least[row, j] += abs(term)
    return peak
