"""Weights of one pair, compiled: ``(weight, doubt)`` from the squared distance in bandwidths.

The doubt is what a relative error of 1 in the squared distance would change the weight by, to
first order; summed over the keys it bounds what rounding did to the mass.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import factorial, pi
from typing import Any

import numpy as np

from locpipe.engines.fused.compiled import in_order
from locpipe.engines.fused.exponential import log2_of_1_plus, polynomial
from locpipe.engines.fused.profiles import Profile

__all__ = ["cost", "weight"]

_EDGE = 1 + 1e-5
"""Pairs up to here may lie inside a compact kernel, but for rounding."""
_TRACE = 1e-30
"""Doubt of any such pair: a mass of 0 with a doubt of 0 is a true 0."""


@lru_cache(maxsize=64)
def cost(profile: Profile, real: Any) -> Any:
    """Minus the log (base 2) of the weight as a function of ``(x, power)``, 0 at distance 0.

    That of the logistic kernel is right to a factor of 4: its tail.
    """
    if profile.name == "gaussian":
        return in_order(lambda x, power: x)
    if profile.name in ("exponential", "logistic"):
        return in_order(lambda x, power: np.sqrt(x))
    return _student(real)


def _student(real: Any) -> Any:
    logarithm = log2_of_1_plus(real)
    return in_order(lambda x, power: power * logarithm(x))


@lru_cache(maxsize=64)
def weight(profile: Profile, real: Any) -> Any:
    """``(weight, doubt)`` of a profile without a cost, as a function of x."""
    if profile.name == "uniform":
        return _uniform(real)
    root, edge, trace = _WEIGHTS[profile.name](real), real(_EDGE), real(_TRACE)
    zero = real(0)

    @in_order
    def inside(x: Any) -> Any:
        w, slope = root(x)
        return w, (slope + trace if x < edge else zero)

    return inside


def _uniform(real: Any) -> Any:
    """Its distances are those of the reference to the bit, so there is no doubt."""
    one, zero = real(1), real(0)
    return in_order(lambda x: (one if x <= one else zero, zero))


def _power(n: int) -> Callable[[Any], Any]:
    """``(1 - x)^n``."""

    def build(real: Any) -> Any:
        one, zero, degree = real(1), real(0), real(n)

        @in_order
        def beta(x: Any) -> Any:
            rest = max(one - x, zero)
            lower = one
            for _ in range(n - 1):
                lower *= rest
            return lower * rest, degree * x * lower

        return beta

    return build


def _tricube(real: Any) -> Any:
    one, zero, factor = real(1), real(0), real(4.5)

    @in_order
    def tricube(x: Any) -> Any:
        cube = x * np.sqrt(x)
        rest = max(one - cube, zero)
        return rest * rest * rest, factor * cube * rest * rest

    return tricube


def _triangular(real: Any) -> Any:
    one, zero, half = real(1), real(0), real(0.5)

    @in_order
    def triangular(x: Any) -> Any:
        u = np.sqrt(x)
        return max(one - u, zero), half * u

    return triangular


def _cosine(real: Any) -> Any:
    """``cos(pi sqrt(x) / 2) = (1 - x) P(x)``: the factor keeps the edge right."""
    one, zero, slope = real(1), real(0), real(pi / 4)
    quotient = polynomial(_cosine_quotient(8 if real is np.float32 else 14), real)

    @in_order
    def cosine(x: Any) -> Any:
        within = min(x, one)
        return max(one - x, zero) * quotient(within), slope * within

    return cosine


def _cosine_quotient(degree: int) -> list[float]:
    """P's coefficients: those of the cosine, summed from the end since they add up to 0."""
    cosine = [(-1) ** k * (pi / 2) ** (2 * k) / factorial(2 * k) for k in range(30)]
    return [-sum(reversed(cosine[k + 1 :])) for k in range(degree + 1)]


_WEIGHTS: dict[str, Callable[[Any], Any]] = {
    "epanechnikov": _power(1),
    "biweight": _power(2),
    "triweight": _power(3),
    "tricube": _tricube,
    "triangular": _triangular,
    "cosine": _cosine,
}
