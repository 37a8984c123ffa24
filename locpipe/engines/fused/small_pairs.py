"""Weights of a strip of keys, compiled: from differences to a buffer and its sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from locpipe.engines.fused.compiled import as_written, in_any_order, in_order, prefer_wide_vectors
from locpipe.engines.fused.exponential import two_to_minus
from locpipe.engines.fused.profiles import Profile
from locpipe.engines.fused.small_weights import cost, weight

__all__ = ["Variant", "squared", "strip_weights"]


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
    skips : bool
        Whether some keys are not to be seen by some queries.
    collects : {"squares", "products", "monomials"}
        What is summed beside the weights.
    in_registers : int
        As many weighted values are summed without a buffer of weights; 0: with one.
    """

    profile: Profile
    n_features: int
    single: bool
    plain: bool = False
    skips: bool = False
    collects: str = "products"
    in_registers: int = 0

    @property
    def real(self) -> Any:
        """Scalar type of the arithmetic."""
        return np.float32 if self.single else np.float64

    @property
    def label(self) -> str:
        """A file name for code that depends on all of this."""
        flags = ["plain"] * self.plain + ["skips"] * self.skips
        words = (self.profile.name, str(self.n_features), self.real.__name__, *flags)
        return "_".join((*words, self.collects, str(self.in_registers)))

    @property
    def exact(self) -> bool:
        """Whether distances must be those of the reference to the bit: an edge is a jump."""
        return self.profile.name == "uniform"


def strip_weights(variant: Variant) -> Any:
    """Weights of two queries over one strip: their sums, those of doubts, and of values or none.

    Where no values are summed, the weights go into the buffer.
    """
    d, real, weigh = variant.n_features, variant.real, _weigh(variant)
    add_square = squared(variant)
    zero, one, plain = real(0), real(1), variant.plain
    in_registers = variant.in_registers > 0
    nothing, add = (zero,) * variant.in_registers, _adder(variant.in_registers)

    @in_any_order
    def weights(
        queries: Any,
        factors: Any,
        shifts: Any,
        scales: Any,
        power: Any,
        strips: Any,
        row: int,
        s: int,
        count: int,
        values: Any,
        buffer: Any,
    ) -> tuple[Any, Any, Any, Any, Any, Any]:
        prefer_wide_vectors()
        mass_0, mass_1, doubt_0, doubt_1 = zero, zero, zero, zero
        valued_0, valued_1 = nothing, nothing
        factor_0, factor_1 = factors[row], factors[row + 1]
        shift_0, shift_1 = shifts[row], shifts[row + 1]
        for i in range(count):
            u2_0, u2_1, extra, near = zero, zero, one, one
            for j in range(d):
                scale = one if plain else scales[j]
                u2_0 = add_square(u2_0, queries[row, j] - strips[s, j, i], scale)
                u2_1 = add_square(u2_1, queries[row + 1, j] - strips[s, j, i], scale)
            if not plain:
                extra, near = strips[s, d, i], strips[s, d + 1, i]
            w_0, slope_0 = weigh(u2_0, factor_0, near, extra, shift_0, power)
            w_1, slope_1 = weigh(u2_1, factor_1, near, extra, shift_1, power)
            if in_registers:
                valued_0 = add(valued_0, w_0, values, s, i)
                valued_1 = add(valued_1, w_1, values, s, i)
            else:
                buffer[0, i] = w_0
                buffer[1, i] = w_1
            mass_0 += w_0
            mass_1 += w_1
            doubt_0 += slope_0
            doubt_1 += slope_1
        return mass_0, mass_1, doubt_0, doubt_1, valued_0, valued_1

    return weights


def _adder(n: int) -> Any:
    """Adds a key's first n values, weighed, to a tuple of n sums."""
    if n == 0:
        return None
    if n == 1:
        return in_any_order(lambda sums, w, values, s, i: (sums[0] + w * values[s, 0, i],))
    add_others, last = _adder(n - 1), n - 1

    @in_any_order
    def add(sums: Any, w: Any, values: Any, s: int, i: int) -> Any:
        others = add_others(sums[:last], w, values, s, i)
        return (*others, sums[last] + w * values[s, last, i])

    return add


def squared(variant: Variant) -> Any:
    """One feature more of a squared distance, scaled; as the reference does it where exact."""
    if variant.exact:

        @as_written
        def divided(total: Any, gap: Any, scale: Any) -> Any:
            gap = gap / scale
            return total + gap * gap

        return divided
    if variant.plain:
        return in_any_order(lambda total, gap, scale: total + gap * gap)

    @in_any_order
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
    if profile.name == "logistic":
        return _weigh_logistic(variant.single, variant.plain)
    costs, power_of_2 = cost(profile, real), two_to_minus(real)
    if variant.single:
        return _weigh_by_cost(costs, power_of_2, variant.plain)

    @in_order
    def weigh(u2: Any, factor: Any, near: Any, extra: Any, shift: Any, power: Any) -> Any:
        t = costs(u2 * factor * near, power) + extra
        w = power_of_2(t - shift)
        return w, w * t

    return weigh


def _weigh_by_cost(costs: Any, power_of_2: Any, plain: bool) -> Any:
    @in_order
    def weigh(u2: Any, factor: Any, near: Any, extra: Any, shift: Any, power: Any) -> Any:
        t = costs(u2 * factor if plain else u2 * factor * near, power)
        w = power_of_2(t) if plain else power_of_2(t) * extra
        return w, w * t

    return weigh


def _weigh_logistic(single: bool, plain: bool) -> Any:
    """``1 / cosh^2(u / 2) = e^-u (2 / (1 + e^-u))^2``: an exponential, and a factor up to 4."""
    real: Any = np.float32 if single else np.float64
    power_of_2, one, two = two_to_minus(real), real(1), real(2)

    @in_order
    def weigh(u2: Any, factor: Any, near: Any, extra: Any, shift: Any, power: Any) -> Any:
        u = np.sqrt(u2 * factor if plain else u2 * factor * near)
        e = power_of_2(u)
        bend = two / (one + e)
        shifted = (e if plain else e * extra) if single else power_of_2(u + extra - shift)
        w = shifted * bend * bend
        return w, w * u

    return weigh


def _weigh_directly(weights: Any, plain: bool, real: Any) -> Any:
    # A key of next to no weight still counts as a doubt: its square may be no number.
    least = real(1e-7 if real is np.float32 else 1e-120)

    @in_order
    def weigh(u2: Any, factor: Any, near: Any, extra: Any, shift: Any, power: Any) -> Any:
        w, slope = weights(u2 * factor if plain else u2 * factor * near)
        return (w, slope) if plain else (w * extra, slope * max(extra, least))

    return weigh


def _weigh_exactly(weights: Any) -> Any:
    @as_written
    def weigh(u2: Any, factor: Any, near: Any, extra: Any, shift: Any, power: Any) -> Any:
        u = np.sqrt(u2) / (factor * near)
        w, slope = weights(u * u)
        return w * extra, slope

    return weigh
