"""What may be skipped: distances between boxes, and the reach beyond which no key matters.

Distances are squared and in the unit of the profile, `Rule.scale`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from locpipe.engines.fused.compiled import as_written
from locpipe.engines.pruned.entry import call_log_weight

__all__ = ["Rule", "box_gap", "degree_of", "in_order", "log_weight", "reach", "row_gap", "totals"]

_SLACK = 1 + 1e-9
"""Room for the rounding of squared distances."""
_BINS = 64
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
    log_share : float
        Log of the part of a quantity that may be skipped in one way.
    peak : float
        Log of the largest sample weight.
    care : float
        A quantity must be larger than this times the square root of its doubt to be summed in
        float32; infinite where nothing is.
    log_weight, sums, sums32 : int
        Addresses of the profile's functions.
    compact : bool
        Whether the profile has an edge.
    closed : bool
        Whether sums of 0 are true in float64: a compact profile, and no tiny weights or values.
    """

    scale: Any
    power: Any
    squares: Any
    size: Any
    log_share: Any
    peak: Any
    care: Any
    log_weight: Any
    sums: Any
    sums32: Any
    compact: Any
    closed: Any


@as_written
def box_gap(low: Any, high: Any, other_low: Any, other_high: Any, scale: Any) -> Any:
    """Squared distance between two boxes."""
    total = 0.0
    for j in range(low.shape[0]):
        side = max(0.0, other_low[j] - high[j], low[j] - other_high[j]) / scale[j]
        total += side * side
    return total


@as_written
def row_gap(row: Any, low: Any, high: Any, scale: Any) -> Any:
    """Squared distance between a row and a box."""
    total = 0.0
    for j in range(row.shape[0]):
        side = max(0.0, low[j] - row[j], row[j] - high[j]) / scale[j]
        total += side * side
    return total


@as_written
def degree_of(rule: Any, j: Any) -> Any:
    """Power of the weights in a quantity."""
    return 2.0 if j > 0 and rule.squares else 1.0


@as_written
def _log_spare(rule: Any, least: Any, shift: Any, log_total: Any) -> Any:
    """Log of the weight that may be lost by every key of these totals."""
    spare = np.inf
    for j in range(least.shape[0]):
        some, degree = max(least[j], _FLOOR * least[0]) * rule.size[j], degree_of(rule, j)
        if log_total[j] > -np.inf:
            log_some = math.log(some) + degree * shift if some > 0 else -np.inf
            spare = min(spare, (rule.log_share + log_some - log_total[j]) / degree)
    return spare


@as_written
def reach(rule: Any, least: Any, shift: Any, log_total: Any) -> Any:
    """Squared distance from which on a row may do without keys, hardly too large.

    `least` (n_quantities,) are lower bounds of the row's quantities at ``exp(shift)`` over
    `Rule.size`, `log_total` the log totals of the keys.
    """
    spare = _log_spare(rule, least, shift, log_total)
    near, far = 0.0, 1.0
    while log_weight(rule, far) > spare:
        near, far = far, 4.0 * far
        if far > 1e300:
            return np.inf
    for _ in range(12):
        middle = 0.5 * (near + far)
        if log_weight(rule, middle) > spare:
            near = middle
        else:
            far = middle
    return far * _SLACK


@as_written
def log_weight(rule: Any, x: Any) -> Any:
    """Log weight over that at distance 0."""
    return call_log_weight(rule.log_weight, (x, rule.power))


@as_written
def totals(forest: Any, nodes: Any) -> Any:
    """Logs of the quantities below some nodes."""
    n = forest.log_total.shape[1]
    log_total = np.full(n, -np.inf)
    for j in range(n):
        peak, total = -np.inf, 0.0
        for node in nodes:
            peak = max(peak, forest.log_total[node, j])
        if peak > -np.inf:
            for node in nodes:
                total += math.exp(forest.log_total[node, j] - peak)
            log_total[j] = peak + math.log(total)
    return log_total


@as_written
def in_order(gaps: Any) -> Any:
    """Places of `gaps`, the small ones first, up to a 64th of the largest."""
    bins, first = np.empty(gaps.size, np.int64), np.zeros(_BINS + 1, np.int64)
    widest = 0.0
    for gap in gaps:
        widest = max(widest, gap)
    for i in range(gaps.size):
        bins[i] = int((_BINS - 1) * (gaps[i] / widest)) if widest > 0 else 0
        first[bins[i] + 1] += 1
    for b in range(_BINS):
        first[b + 1] += first[b]
    order = np.empty(gaps.size, np.int64)
    for i in range(gaps.size):
        order[first[bins[i]]] = i
        first[bins[i]] += 1
    return order
