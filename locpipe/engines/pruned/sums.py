"""Weights between a query and the keys of one leaf, and their sums; compiled for one profile."""

from __future__ import annotations

import math
from math import log
from typing import Any

import numpy as np

from locpipe.engines.fused.compiled import as_written, in_any_order, prefer_wide_vectors
from locpipe.engines.fused.exponential import two_to_minus
from locpipe.engines.fused.profiles import Profile
from locpipe.engines.fused.small_weights import cost, weight
from locpipe.engines.pruned.leaves import first_of

__all__ = ["log_weight", "row_sums", "squared"]

_LOG_2 = log(2.0)


def log_weight(profile: Profile) -> Any:
    """Log weight over that at distance 0, as a function of ``(x, power)``."""
    if profile.name == "logistic":
        return _log_logistic
    if profile.has_cost:
        price = cost(profile, np.float64)
        return as_written(lambda x, power: -_LOG_2 * price(x, power))
    plain = weight(profile, np.float64)

    @as_written
    def log_of_weight(x: Any, power: Any) -> Any:
        w = plain(x)[0]
        return math.log(w) if w > 0 else -np.inf

    return log_of_weight


@as_written
def _log_logistic(x: Any, power: Any) -> Any:
    u = _LOG_2 * math.sqrt(x)
    return 2 * (_LOG_2 - math.log1p(math.exp(-u))) - u


def _weight(profile: Profile, real: Any) -> Any:
    if profile.name == "logistic":
        return _logistic(real)
    if profile.has_cost:
        price, power_of_2 = cost(profile, real), two_to_minus(real)
        return as_written(lambda x, power: power_of_2(price(x, power)))
    plain = weight(profile, real)
    return as_written(lambda x, power: plain(x)[0])


def _logistic(real: Any) -> Any:
    """``4 e / (1 + e)^2`` with ``e = exp(-u)``."""
    power_of_2, one, four = two_to_minus(real), real(1), real(4)

    @as_written
    def logistic(x: Any, power: Any) -> Any:
        e = power_of_2(np.sqrt(x))
        return four * e / ((one + e) * (one + e))

    return logistic


def squared(d: int) -> Any:
    """Squared distance of a query from key i of a leaf, to the bit as the reference has it."""

    @as_written
    def distance(q: Any, x: Any, i: int, scale: Any) -> Any:
        total = 0.0
        for j in range(d):
            gap = (q[j] - x[j, i]) / scale[j]
            total += gap * gap
        return total

    return distance


def _squared_in_single(d: int) -> Any:
    """The same where coordinates are in units of the scale."""

    @in_any_order
    def distance(q: Any, x: Any, i: int, scale: Any) -> Any:
        total = np.float32(0)
        for j in range(d):
            gap = q[j] - x[j, i]
            total += gap * gap
        return total

    return distance


def row_sums(profile: Profile, d: int) -> Any:
    """Loop that adds the sums over a leaf to those of row i, and their sizes to its bounds."""
    weights = _weights(profile, squared(d), np.float64)
    weights_in_single = _weights(profile, _squared_in_single(d), np.float32)

    @as_written
    def add(forest: Any, rule: Any, leaf: Any, i: Any, width: Any, single: Any, work: Any) -> None:
        if single:
            weights_in_single(work.q32[i], work.x32, width, rule, work.u32)
            _leave_out(forest, leaf, work.span[i], work.u32)
            _add_products(work.u32, work.out32, width, rule, work.sums[i], work.least[i])
        else:
            weights(work.q[i], work.x, width, rule, work.u)
            _leave_out(forest, leaf, work.span[i], work.u)
            _add_products(work.u, work.out, width, rule, work.sums[i], work.least[i])

    return add


def _weights(profile: Profile, distance: Any, real: Any) -> Any:
    weigh = _weight(profile, real)

    @as_written
    def weights(q: Any, x: Any, width: int, rule: Any, u: Any) -> None:
        prefer_wide_vectors()
        power, scale = real(rule.power), rule.scale
        for i in range(width):
            u[i] = weigh(distance(q, x, i, scale), power)

    return weights


@as_written
def _leave_out(forest: Any, leaf: Any, span: Any, u: Any) -> None:
    """No weight for the keys that the row must not meet."""
    if span[0] == span[1]:
        return
    place = first_of(forest.by_id, span[0], span[1], forest.start[leaf])
    while place < span[1] and forest.by_id[place] < forest.stop[leaf]:
        u[forest.by_id[place] - forest.start[leaf]] = 0
        place += 1


@in_any_order
def _add_products(u: Any, out: Any, width: int, rule: Any, sums: Any, least: Any) -> None:
    prefer_wide_vectors()
    for j in range(out.shape[0]):
        total = u[0] * 0
        if j > 0 and rule.squares:
            for i in range(width):
                total += u[i] * u[i] * out[j, i]
        else:
            for i in range(width):
                total += u[i] * out[j, i]
        sums[j] += total
        least[j] += abs(total)
