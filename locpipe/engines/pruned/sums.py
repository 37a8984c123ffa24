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

__all__ = ["log_weight", "rows_sums", "squared"]

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
    """``(weight, doubt)``: the doubt bounds what a relative error of 1 in x would do to it."""
    if profile.name == "logistic":
        return _logistic(real)
    if profile.has_cost:
        return _by_cost(cost(profile, real), two_to_minus(real))
    plain = weight(profile, real)
    return as_written(lambda x, power: plain(x))


def _by_cost(price: Any, power_of_2: Any) -> Any:
    @as_written
    def weigh(x: Any, power: Any) -> Any:
        t = price(x, power)
        w = power_of_2(t)
        return w, w * t

    return weigh


def _logistic(real: Any) -> Any:
    """``4 e / (1 + e)^2`` with ``e = exp(-u)``."""
    power_of_2, one, four = two_to_minus(real), real(1), real(4)

    @as_written
    def logistic(x: Any, power: Any) -> Any:
        u = np.sqrt(x)
        e = power_of_2(u)
        w = four * e / ((one + e) * (one + e))
        return w, w * u

    return logistic


def squared(d: int, *, exact: bool) -> Any:
    """Squared distance of row r from key i of a leaf.

    Where it is exact it is that of the reference to the bit, which profiles with an edge need.
    """

    @(as_written if exact else in_any_order)
    def distance(q: Any, r: Any, x: Any, i: Any, scale: Any) -> Any:
        total = 0.0
        for j in range(d):
            gap = (q[r, j] - x[j, i]) / scale[j]
            total += gap * gap
        return total

    return distance


def _squared_in_single(d: int) -> Any:
    """The same where coordinates are in units of the scale."""
    zero = np.float32(0)

    @in_any_order
    def distance(q: Any, r: Any, x: Any, i: Any, scale: Any) -> Any:
        total = zero
        for j in range(d):
            gap = q[r, j] - x[j, i]
            total += gap * gap
        return total

    return distance


def rows_sums(profile: Profile, d: int, real: Any) -> Any:
    """Loop over some rows that adds the sums over a leaf, and their sizes to the lower bounds.

    Its arguments are arrays alone: tuples of arrays are counted in and out at every call, which
    takes longer than a leaf.
    """
    single = real is np.float32
    distance = _squared_in_single(d) if single else squared(d, exact=not profile.has_cost)
    weigh, zero = _weight(profile, real), real(0)

    @in_any_order
    def sum_rows(
        chosen: Any,
        width: Any,
        q: Any,
        x: Any,
        out: Any,
        u: Any,
        scale: Any,
        power: Any,
        squares: Any,
        skipped: Any,
        skip_range: Any,
        sums: Any,
        least: Any,
        doubt: Any,
    ) -> None:
        prefer_wide_vectors()
        in_power = real(power)
        for r in chosen:
            mass, unsure = zero, zero
            for i in range(width):
                w, slope = weigh(distance(q, r, x, i, scale), in_power)
                u[i] = w
                mass += w * out[0, i]
                unsure += slope * out[0, i]
            if skip_range[r, 0] < skip_range[r, 1]:
                for place in range(skip_range[r, 0], skip_range[r, 1]):
                    u[skipped[place]] = zero
                mass = zero
                for i in range(width):
                    mass += u[i] * out[0, i]
            doubt[r] += unsure
            sums[r, 0] += mass
            least[r, 0] += mass
            for j in range(1, out.shape[0]):
                total = zero
                if squares:
                    for i in range(width):
                        total += u[i] * u[i] * out[j, i]
                else:
                    for i in range(width):
                        total += u[i] * out[j, i]
                sums[r, j] += total
                least[r, j] += abs(total)

    return sum_rows
