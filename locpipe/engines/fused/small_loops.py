"""The compiled loops over pairs: keys in strips that stay in the first-level cache.

Two queries at a time run over a strip.  Their weights go into a buffer of the strip's length;
sums of weights are kept in registers, sums of weighted values are products with the buffer.
Sums run in the loop's own precision over one strip and in float64 over the strips.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit, types

from locpipe.engines.fused.compiled import SUMS, compiled, prefer_wide_vectors
from locpipe.engines.fused.exponential import two_to_minus
from locpipe.engines.fused.profiles import Profile
from locpipe.engines.fused.small_weights import cost, weight

__all__ = ["Variant", "least_costs", "sums"]

_STEPS = {"contract", "nsz"}


@dataclass(frozen=True)
class Variant:
    """What a loop is compiled for.

    Attributes
    ----------
    profile : Profile
        Its numbers left out, so that code does not depend on them.
    n_features : int
    single : bool
        Whether arithmetic is float32.
    plain : bool
        Whether keys carry no weights and no bandwidths, and all features have one bandwidth.
    """

    profile: Profile
    n_features: int
    single: bool
    plain: bool

    @property
    def real(self) -> Any:
        """Scalar type of the arithmetic."""
        return np.float32 if self.single else np.float64

    @property
    def label(self) -> str:
        """A file name for code that depends on all of this."""
        plain = "plain" if self.plain else "full"
        return f"{self.profile.name}_{self.n_features}_{self.real.__name__}_{plain}"

    @property
    def exact(self) -> bool:
        """Whether distances must be those of the reference to the bit: an edge is a jump."""
        return self.profile.name == "uniform"


@lru_cache(maxsize=256)
def sums(variant: Variant) -> Any:
    """Loop that adds up weights, doubts, squares and weighted values for every query.

    Its arguments are those of `_PAIRS`, then `values` (n_strips, n_outputs, length), whether
    squares are asked for, and float64 `totals` (n_queries, 3) and `moments` (n_queries,
    n_outputs), which it adds to.
    """
    strip_weights, add_products = _strip_weights(variant), _add_products(variant.real)

    def sum_pairs(
        queries: Any,
        factors: Any,
        shifts: Any,
        scales: Any,
        power: Any,
        strips: Any,
        n_keys: Any,
        skipped: Any,
        skip_range: Any,
        values: Any,
        squares: Any,
        totals: Any,
        moments: Any,
    ) -> None:
        length = strips.shape[2]
        buffer, found = np.empty((2, length), queries.dtype), np.empty((2, 2))
        place = skip_range[:, 0].copy()
        for row in range(0, queries.shape[0], 2):
            for s in range(strips.shape[0]):
                count = min(length, n_keys - s * length)
                strip_weights(
                    queries, factors, shifts, scales, power, strips, row, s, count, buffer, found
                )
                _skip(skipped, skip_range, place, row, s * length, count, buffer, found)
                totals[row, 0] += found[0, 0]
                totals[row, 1] += found[0, 1]
                totals[row + 1, 0] += found[1, 0]
                totals[row + 1, 1] += found[1, 1]
                if squares:
                    _add_squares(buffer, count, row, totals)
                add_products(buffer, count, values, s, row, moments)

    real = _NUMBA[variant.real]
    signature = types.void(
        *_pairs(variant.real), real[:, :, ::1], types.boolean, _F8[:, ::1], _F8[:, ::1]
    )
    return compiled(f"sums_{variant.label}", signature, sum_pairs)


_F8, _I8 = types.float64, types.int64
_NUMBA = {np.float32: types.float32, np.float64: types.float64}


def _pairs(real: Any) -> tuple[Any, ...]:
    """Types of what every loop takes: queries (n, d), an even number; factors (n,) of the squared
    distance; shifts (n,) of the cost; scales (d,) of the differences; the power; strips
    (n_strips, d + 2, length) of coordinates, then what weighs a key, then its factor; the number
    of keys; positions of keys to be skipped (any,), and each query's range of them (n, 2).
    """
    kind = _NUMBA[real]
    rows = (kind[:, ::1], kind[::1], kind[::1], kind[::1], kind)
    return (*rows, kind[:, :, ::1], _I8, _I8[::1], _I8[:, ::1])


def _strip_weights(variant: Variant) -> Any:
    """Weights of two queries over one strip into a buffer, and their sums into `found`."""
    d, real, weigh = variant.n_features, variant.real, _weigh(variant)
    squared = _squared(variant)
    zero, one, plain = real(0), real(1), variant.plain

    @njit(fastmath=set(SUMS))
    def strip_weights(
        queries: Any,
        factors: Any,
        shifts: Any,
        scales: Any,
        power: Any,
        strips: Any,
        row: int,
        s: int,
        count: int,
        buffer: Any,
        found: Any,
    ) -> None:
        prefer_wide_vectors()
        mass_0, mass_1, doubt_0, doubt_1 = zero, zero, zero, zero
        factor_0, factor_1, shift_0, shift_1 = (
            factors[row],
            factors[row + 1],
            shifts[row],
            shifts[row + 1],
        )
        for i in range(count):
            u2_0, u2_1, extra, near = zero, zero, one, one
            for j in range(d):
                scale = one if plain else scales[j]
                u2_0 = squared(u2_0, queries[row, j] - strips[s, j, i], scale)
                u2_1 = squared(u2_1, queries[row + 1, j] - strips[s, j, i], scale)
            if not plain:
                extra, near = strips[s, d, i], strips[s, d + 1, i]
            w_0, slope_0 = weigh(u2_0, factor_0, near, extra, shift_0, power)
            w_1, slope_1 = weigh(u2_1, factor_1, near, extra, shift_1, power)
            buffer[0, i] = w_0
            buffer[1, i] = w_1
            mass_0 += w_0
            mass_1 += w_1
            doubt_0 += slope_0
            doubt_1 += slope_1
        found[0, 0], found[0, 1] = mass_0, doubt_0
        found[1, 0], found[1, 1] = mass_1, doubt_1

    return strip_weights


def _squared(variant: Variant) -> Any:
    """One feature more of a squared distance, scaled; as the reference does it where exact."""
    if variant.exact:

        @njit
        def divided(total: Any, gap: Any, scale: Any) -> Any:
            gap = gap / scale
            return total + gap * gap

        return divided
    if variant.plain:
        return njit(fastmath=set(SUMS))(lambda total, gap, scale: total + gap * gap)

    @njit(fastmath=set(SUMS))
    def multiplied(total: Any, gap: Any, scale: Any) -> Any:
        gap = gap * scale
        return total + gap * gap

    return multiplied


def _weigh(variant: Variant) -> Any:
    """``(weight, doubt)`` from the squared distance, the factors and the weight of the key."""
    profile, real = variant.profile, variant.real
    if variant.exact:
        return _weigh_exactly(weight(profile, real))
    if not profile.has_cost:
        return _weigh_directly(weight(profile, real), variant.plain, real)
    costs, power_of_2 = cost(profile, real), two_to_minus(real)
    if variant.single:
        return _weigh_by_cost(costs, power_of_2, variant.plain)

    @njit(fastmath=_STEPS)
    def weigh(u2: Any, factor: Any, near: Any, extra: Any, shift: Any, power: Any) -> Any:
        t = costs(u2 * factor * near, power) + extra
        w = power_of_2(t - shift)
        return w, w * t

    return weigh


def _weigh_by_cost(costs: Any, power_of_2: Any, plain: bool) -> Any:
    @njit(fastmath=_STEPS)
    def weigh(u2: Any, factor: Any, near: Any, extra: Any, shift: Any, power: Any) -> Any:
        t = costs(u2 * factor if plain else u2 * factor * near, power)
        w = power_of_2(t) if plain else power_of_2(t) * extra
        return w, w * t

    return weigh


def _weigh_directly(weights: Any, plain: bool, real: Any) -> Any:
    # A key of next to no weight still counts as a doubt: its square may be no number.
    least = real(1e-7 if real is np.float32 else 1e-120)

    @njit(fastmath=_STEPS)
    def weigh(u2: Any, factor: Any, near: Any, extra: Any, shift: Any, power: Any) -> Any:
        w, slope = weights(u2 * factor if plain else u2 * factor * near)
        return (w, slope) if plain else (w * extra, slope * max(extra, least))

    return weigh


def _weigh_exactly(weights: Any) -> Any:
    @njit
    def weigh(u2: Any, factor: Any, near: Any, extra: Any, shift: Any, power: Any) -> Any:
        bandwidth = factor * near
        w, slope = weights(u2 / bandwidth / bandwidth)
        return w * extra, slope

    return weigh


@njit(fastmath=set(SUMS))
def _skip(
    skipped: Any,
    skip_range: Any,
    place: Any,
    row: int,
    start: int,
    count: int,
    buffer: Any,
    found: Any,
) -> None:
    """Take the weights of the keys to be skipped out of the buffer, and sum anew."""
    for g in range(2):
        end, before = skip_range[row + g, 1], place[row + g]
        while place[row + g] < end and skipped[place[row + g]] < start + count:
            buffer[g, skipped[place[row + g]] - start] = 0
            place[row + g] += 1
        if place[row + g] > before:
            total = 0.0
            for i in range(count):
                total += buffer[g, i]
            found[g, 0] = total


@njit(fastmath=set(SUMS))
def _add_squares(buffer: Any, count: int, row: int, totals: Any) -> None:
    for g in range(2):
        total = buffer[0, 0] * 0
        for i in range(count):
            total += buffer[g, i] * buffer[g, i]
        totals[row + g, 2] += total


def _add_products(real: Any) -> Any:
    """Products of the buffer with every row of values."""
    zero = real(0)

    @njit(fastmath=set(SUMS))
    def add_products(
        buffer: Any, count: int, values: Any, s: int, row: int, moments: Any
    ) -> None:
        prefer_wide_vectors()
        for o in range(values.shape[1]):
            moment_0, moment_1 = zero, zero
            for i in range(count):
                moment_0 += buffer[0, i] * values[s, o, i]
                moment_1 += buffer[1, i] * values[s, o, i]
            moments[row, o] += moment_0
            moments[row + 1, o] += moment_1

    return add_products


@lru_cache(maxsize=256)
def least_costs(variant: Variant) -> Any:
    """Loop that finds the least cost of any key, float64 (n_queries,), infinite without keys."""
    d, squared, costs = variant.n_features, _squared(variant), cost(variant.profile, variant.real)

    def find_least(
        queries: Any,
        factors: Any,
        shifts: Any,
        scales: Any,
        power: Any,
        strips: Any,
        n_keys: Any,
        skipped: Any,
        skip_range: Any,
        least: Any,
    ) -> None:
        prefer_wide_vectors()
        length = strips.shape[2]
        buffer = np.empty(length)
        for row in range(queries.shape[0]):
            place = skip_range[row, 0]
            for s in range(strips.shape[0]):
                count = min(length, n_keys - s * length)
                for i in range(count):
                    u2 = 0.0
                    for j in range(d):
                        u2 = squared(u2, queries[row, j] - strips[s, j, i], scales[j])
                    t = costs(u2 * factors[row] * strips[s, d + 1, i], power)
                    buffer[i] = t + strips[s, d, i]
                while place < skip_range[row, 1] and skipped[place] < s * length + count:
                    buffer[skipped[place] - s * length] = np.inf
                    place += 1
                for i in range(count):
                    least[row] = min(least[row], buffer[i])

    signature = types.void(*_pairs(variant.real), _F8[::1])
    return compiled(f"least_{variant.label}", signature, find_least)
