"""Weights between a query and the keys of one leaf, and their sums; compiled for one profile."""

from __future__ import annotations

import math
from functools import lru_cache
from math import log
from typing import Any

import numpy as np
from numba import types

from locpipe.engines.fused.compiled import as_written, in_any_order, prefer_wide_vectors
from locpipe.engines.fused.exponential import two_to_minus
from locpipe.engines.fused.profiles import Profile
from locpipe.engines.fused.small_weights import cost, weight
from locpipe.engines.pruned.entry import entry

__all__ = ["log_weight", "rows_sums"]

_LOG_2 = log(2.0)


@lru_cache(maxsize=64)
def log_weight(profile: Profile) -> Any:
    """Log weight over that at distance 0, as a function of ``(x, power)``."""
    number = types.float64
    return entry(f"log_{profile.name}", number(number, number), _log_weight(profile))


def _log_weight(profile: Profile) -> Any:
    if profile.name == "logistic":
        return _log_logistic
    if profile.has_cost:
        price = cost(profile, np.float64)
        return lambda x, power: -_LOG_2 * price(x, power)
    plain = weight(profile, np.float64)

    def log_of_weight(x: Any, power: Any) -> Any:
        w = plain(x)[0]
        return math.log(w) if w > 0 else -np.inf

    return log_of_weight


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


def _squared_in_units(d: int, real: Any) -> Any:
    """Squared distance of row r from key i of a leaf; in float32 in units of the scale already."""
    zero, single = real(0), real is np.float32

    @in_any_order
    def distance(q: Any, r: Any, x: Any, i: Any, scale: Any, largest: Any) -> Any:
        total = zero
        for j in range(d):
            gap = q[r, j] - x[j, i]
            if not single:
                gap /= scale[j]
            total += gap * gap
        return total

    return distance


def _squared_to_the_bit(d: int) -> Any:
    """The same in float64 as the reference has it for profiles with an edge."""

    @as_written
    def distance(q: Any, r: Any, x: Any, i: Any, scale: Any, largest: Any) -> Any:
        total = 0.0
        for j in range(d):
            gap = (q[r, j] - x[j, i]) / (scale[j] / largest)
            total += gap * gap
        u = math.sqrt(total) / largest
        return u * u

    return distance


@lru_cache(maxsize=256)
def rows_sums(profile: Profile, d: int, real: Any) -> Any:
    """Loop over some rows that adds the sums over a leaf, and those of the sizes."""
    exact = real is np.float64 and not profile.has_cost
    distance = _squared_to_the_bit(d) if exact else _squared_in_units(d, real)
    weigh, zero = _weight(profile, real), real(0)

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
        in_power, largest = real(power), 0.0
        for h in scale:
            largest = max(largest, h)
        for r in chosen:
            mass, unsure = zero, zero
            for i in range(width):
                w, slope = weigh(distance(q, r, x, i, scale, largest), in_power)
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
                total, size = zero, zero
                if squares:
                    for i in range(width):
                        total += u[i] * u[i] * out[j, i]
                    size = total
                else:
                    for i in range(width):
                        total += u[i] * out[j, i]
                        size += u[i] * abs(out[j, i])
                sums[r, j] += total
                least[r, j] += size

    return entry(f"sums_{profile.name}_{d}_{real.__name__}", _signature(real), sum_rows)


def _signature(real: Any) -> Any:
    """As `walk` passes them: the rows, arrays of `Work`, numbers of `Rule`."""
    f8, i8, boolean = types.float64, types.int64, types.boolean
    kind = types.float32 if real is np.float32 else f8
    tile = kind[:, ::1], kind[:, ::1], kind[:, ::1], kind[::1]
    left_out, found = (i8[::1], i8[:, ::1]), (f8[:, ::1], f8[:, ::1], f8[::1])
    return types.void(i8[::1], i8, *tile, f8[::1], f8, boolean, *left_out, *found)
