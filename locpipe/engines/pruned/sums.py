"""Weights between a query and the keys of one leaf, and their sums; compiled for one profile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numba import types

from locpipe.engines.fused.compiled import as_written, prefer_wide_vectors
from locpipe.engines.fused.exponential import two_to_minus
from locpipe.engines.fused.profiles import Profile
from locpipe.engines.fused.small_weights import cost, weight
from locpipe.engines.pruned.entry import as_numbers, entry, inlined, once
from locpipe.engines.pruned.leaves import leaver, load_keys, load_out, load_row

__all__ = ["Form", "log_weight", "rows_sums"]

_LOG_2 = log(2.0)


@once
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
    return inlined(lambda x, power: plain(x))


def _by_cost(price: Any, power_of_2: Any) -> Any:
    @inlined
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
    """Squared distance of a row from key i of a leaf; in float32 in units of the scale already."""
    zero, single = real(0), real is np.float32

    @inlined
    def distance(q: Any, x: Any, i: Any, scale: Any, largest: Any) -> Any:
        total = zero
        for j in range(d):
            gap = q[0, j] - x[j, i]
            if not single:
                gap /= scale[j]
            total += gap * gap
        return total

    return distance


def _squared_to_the_bit(d: int) -> Any:
    """The same in float64 as the reference has it for profiles with an edge."""

    @as_written
    def distance(q: Any, x: Any, i: Any, scale: Any, largest: Any) -> Any:
        total = 0.0
        for j in range(d):
            gap = (q[0, j] - x[j, i]) / (scale[j] / largest)
            total += gap * gap
        u = math.sqrt(total) / largest
        return u * u

    return distance


@inlined
def _add_outputs(row: Any, width: Any, u: Any, out: Any, zero: Any, found: Any) -> None:
    for j in range(1, found.sums.shape[1]):
        total, size = zero, zero
        for i in range(width):
            total += u[0, i] * out[j, i]
            size += u[0, i] * abs(out[j, i])
        found.sums[row, j] += total
        found.least[row, j] += size


@inlined
def _add_squares(row: Any, width: Any, u: Any, out: Any, zero: Any, found: Any) -> None:
    total = zero
    for i in range(width):
        total += u[0, i] * u[0, i] * (out[0, i] * out[0, i])
    found.sums[row, 1] += total
    found.least[row, 1] += total


@dataclass(frozen=True)
class Form:
    """What the code of the sums depends on.

    Attributes
    ----------
    profile : Profile
    n_features : int
    real, stored : type
        Of the sums, and of the keys' coordinates.
    squares, masked : bool
        Whether the second quantity is the squared weights; whether keys are left out by id.
    """

    profile: Profile
    n_features: int
    real: type
    stored: type
    squares: bool
    masked: bool

    @property
    def name(self) -> str:
        """A name for the code."""
        more = ["squares"] * self.squares + ["masked"] * self.masked
        kinds = self.real.__name__, self.stored.__name__
        return "_".join(["sums", self.profile.name, str(self.n_features), *kinds, *more])


@once
def rows_sums(form: Form, kinds: tuple[Any, ...]) -> Any:
    """Loop over some rows that adds the sums over a leaf, and those of the sizes."""
    profile, d, real, stored = form.profile, form.n_features, form.real, form.stored
    exact = real is np.float64 and not profile.has_cost
    distance = _squared_to_the_bit(d) if exact else _squared_in_units(d, real)
    weigh, zero, single = _weight(profile, real), real(0), real is np.float32
    add = _add_squares if form.squares else _add_outputs
    leave = leaver(form.masked)

    def sum_rows(
        keys: Any,
        start: Any,
        stop: Any,
        factor: Any,
        groups: Any,
        group: Any,
        chosen: Any,
        n_chosen: Any,
        mask: Any,
        rule: Any,
        tile: Any,
        found: Any,
    ) -> None:
        prefer_wide_vectors()
        q, x, out = (
            as_numbers(tile, 0, real),
            as_numbers(tile, 1, real),
            as_numbers(tile, 1 + d, real),
        )
        u = as_numbers(tile, 1 + d + rule.size.size, real)
        data, scale, in_power, largest = (
            as_numbers(keys.data, 0, stored),
            rule.scale,
            real(rule.power),
            0.0,
        )
        for h in scale:
            largest = max(largest, h)
        width = load_keys(data, start, stop, groups, group, rule, single, x)
        load_out(keys, start, stop, factor, rule.size, width, out)
        for place in range(n_chosen):
            row = chosen[place]
            load_row(groups, group, row, rule, single, q)
            mass, unsure = zero, zero
            for i in range(width):
                w, slope = weigh(distance(q, x, i, scale, largest), in_power)
                u[0, i] = w
                mass += w * out[0, i]
                unsure += slope * out[0, i]
            if leave(mask, start, stop, row, u, zero):
                mass = zero
                for i in range(width):
                    mass += u[0, i] * out[0, i]
            found.least[row, rule.size.size] += unsure
            found.sums[row, 0] += mass
            found.least[row, 0] += mass
            add(row, width, u, out, zero, found)

    return entry(form.name, types.void(*kinds), sum_rows)
