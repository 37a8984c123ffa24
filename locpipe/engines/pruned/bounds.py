"""What may be skipped: distances between boxes, and the reach beyond which no key matters.

Distances are squared and in the unit of the profile, `Rule.scale`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from locpipe.engines.pruned.entry import call_log_weight, inlined

__all__ = [
    "Rule",
    "Tree",
    "box_gap",
    "degree_of",
    "log_weight",
    "near_and_far",
    "nearest_leaves",
    "reach",
    "row_gap",
]

_SLACK = 1 + 1e-9
"""Room for the rounding of squared distances."""
_FLOOR = 1e-200
"""A local mean of sizes below this part of the largest counts as that: nothing is 0 for certain."""


class Rule(NamedTuple):
    """What the compiled loops know of the kernel, the values and the accuracy.

    Attributes
    ----------
    scale : float64 array (n_features,)
        Divides the differences; the sum of their squares is what the profile takes.
    power : float
        The profile's.
    squares : bool
        Whether the second quantity is the squared weights.
    size : float64 array (n_quantities,)
        Values are divided by their largest size, 0 where there is none; 1 for weights.
    log_total : float64 array (n_quantities,)
        Logs of the quantities of all keys.
    log_share : float
        Log of the part of a quantity that may be skipped in one way.
    peak : float
        Log of the largest sample weight.
    log_weight : int
        Address of the profile's function.
    compact : bool
        Whether the profile has an edge.
    """

    scale: Any
    power: Any
    squares: Any
    size: Any
    log_total: Any
    log_share: Any
    peak: Any
    log_weight: Any
    compact: Any


class Tree(NamedTuple):
    """The nodes of a `Forest` as the compiled loops take them.

    Attributes
    ----------
    nodes : int64 array (n_nodes, 3)
        Right child, first key, and the key after the last.
    boxes : float64 array (n_nodes, 2 n_features)
        Least and largest coordinates.
    shares : float64 array (n_nodes, n_quantities + 1)
        The parts of the quantities that lie below a node, and the largest weight there over that
        of all keys.
    roots : int64 array (n_trees,)
    """

    nodes: Any
    boxes: Any
    shares: Any
    roots: Any


@inlined
def box_gap(boxes: Any, node: Any, others: Any, other: Any, scale: Any) -> Any:
    """Squared distance between two boxes."""
    total, d = 0.0, scale.shape[0]
    for j in range(d):
        below = others[other, j] - boxes[node, d + j]
        above = boxes[node, j] - others[other, d + j]
        side = max(0.0, max(below, above)) / scale[j]
        total += side * side
    return total


@inlined
def row_gap(boxes: Any, node: Any, rows: Any, row: Any, scale: Any) -> Any:
    """Squared distance between a row and a box."""
    total, d = 0.0, scale.shape[0]
    for j in range(d):
        below = rows[row, j] - boxes[node, d + j]
        side = max(0.0, max(below, boxes[node, j] - rows[row, j])) / scale[j]
        total += side * side
    return total


@inlined
def near_and_far(tree: Any, node: Any, others: Any, other: Any, scale: Any) -> Any:
    """The children of a node, the one nearer to a box first."""
    near, far = node + 1, tree.nodes[node, 0]
    gap = box_gap(tree.boxes, near, others, other, scale)
    if box_gap(tree.boxes, far, others, other, scale) < gap:
        near, far = far, near
    return near, far


def nearest_leaves(tree: Tree, boxes: Any, scale: Any) -> Any:
    """A leaf near each box: of each tree the one found by going to the nearer child."""
    best, leaves = np.full(len(boxes), np.inf), np.zeros(len(boxes), np.int64)
    for root in tree.roots:
        nodes = np.full(len(boxes), root)
        while (inner := tree.nodes[nodes, 0] >= 0).any():
            near, far, there = nodes[inner] + 1, tree.nodes[nodes[inner], 0], boxes[inner]
            nearer = _gaps(tree.boxes[near], there, scale) <= _gaps(tree.boxes[far], there, scale)
            nodes[inner] = np.where(nearer, near, far)
        gaps = _gaps(tree.boxes[nodes], boxes, scale)
        leaves = np.where(gaps < best, nodes, leaves)
        best = np.minimum(gaps, best)
    return leaves


def _gaps(boxes: Any, others: Any, scale: Any) -> Any:
    """Squared distances between boxes, one by one."""
    d = len(scale)
    sides = np.maximum(others[:, :d] - boxes[:, d:], boxes[:, :d] - others[:, d:]) / scale
    return (np.maximum(sides, 0.0) ** 2).sum(axis=1)


@inlined
def degree_of(rule: Any, j: Any) -> Any:
    """Power of the weights in a quantity."""
    return 2.0 if j > 0 and rule.squares else 1.0


@inlined
def _log_spare(rule: Any, least: Any, row: Any, shift: Any, rest: Any) -> Any:
    """Log of the weight that may be lost by every key of these totals."""
    spare = np.inf
    for j in range(least.shape[1]):
        some, degree = max(least[row, j], _FLOOR * least[row, 0]) * rule.size[j], degree_of(rule, j)
        if rest[j] > 0:
            log_some = math.log(some) + degree * shift if some > 0 else -np.inf
            log_total = rule.log_total[j] + math.log(rest[j])
            spare = min(spare, (rule.log_share + log_some - log_total) / degree)
    return spare


@inlined
def reach(rule: Any, least: Any, row: Any, shift: Any, rest: Any) -> Any:
    """Squared distance from which on a row may do without keys, hardly too large.

    ``least[row]`` are lower bounds of the row's quantities at ``exp(shift)`` over `Rule.size`,
    `rest` the parts of all quantities that the keys have.
    """
    spare = _log_spare(rule, least, row, shift, rest)
    near, far = 0.0, 1.0
    while far <= 1e300 and log_weight(rule, far) > spare:
        near, far = far, 4.0 * far
    for _ in range(12):
        middle = 0.5 * (near + far)
        if log_weight(rule, middle) > spare:
            near = middle
        else:
            far = middle
    return far * _SLACK if far <= 1e300 else np.inf


@inlined
def log_weight(rule: Any, x: Any) -> Any:
    """Log weight over that at distance 0."""
    return call_log_weight(rule.log_weight, (x, rule.power))
