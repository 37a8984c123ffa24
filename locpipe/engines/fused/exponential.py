"""Powers and logarithms of two in plain arithmetic, which LLVM turns into vectors.

Numba's own ``math.exp`` calls the C library for one number at a time.  The polynomials here are
right to about one unit in the last place, and no branch is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import factorial, log
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from locpipe.engines.fused.compiled import in_order

__all__ = ["FLOOR", "MANTISSA", "log2_of_1_plus", "power_coefficients", "two_to_minus"]

FLOOR = {np.float32: 126.0, np.float64: 1022.0}
"""Powers of two stop at minus this, the last one that has all its digits."""

MANTISSA = {np.float32: 23, np.float64: 52}
"""Bits of a fraction."""
_WORD = {np.float32: np.int32, np.float64: np.int64}
_DEGREE = {np.float32: 5, np.float64: 11}


@intrinsic
def _bits_of(context: Any, x: Any) -> Any:
    """The bits of a floating number as an integer."""
    word = types.int32 if x == types.float32 else types.int64

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(word.bitwidth))

    return word(x), generate


@intrinsic
def _from_bits(context: Any, x: Any) -> Any:
    """The floating number of these bits."""
    real, kind = (
        (types.float32, ir.FloatType()) if x == types.int32 else (types.float64, ir.DoubleType())
    )

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], kind)

    return real(x), generate


def polynomial(coefficients: Sequence[float], real: Any) -> Any:
    """A function of x by Horner's rule, lowest power first, without a loop."""
    kind = {np.float32: ir.FloatType(), np.float64: ir.DoubleType()}[real]
    constants = [ir.Constant(kind, float(real(c))) for c in reversed(coefficients)]

    @intrinsic
    def value(context: Any, x: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            total = constants[0]
            for c in constants[1:]:
                product = builder.fmul(total, arguments[0], flags=("contract",))
                total = builder.fadd(product, c, flags=("contract",))
            return total

        return x(x), generate

    return value


@lru_cache(maxsize=64)
def two_to_minus(real: Any, given: Any = None) -> Any:
    """``2^-t`` for ``t >= 0``; ``2^-FLOOR`` beyond the floor.

    ``-t = n + r`` with a whole n and ``|r| <= 1/2``; ``2^r`` is a polynomial, n goes into the
    exponent's bits.  A t of another type, `given`, is rounded to `real` after n is taken out of it.
    """
    # Sums of integers of 32 bits are of 64 in Numba, so each is made a word again.
    given, word = given or real, cast(Any, _WORD[real])
    floor = given(FLOOR[real])
    shift = word(MANTISSA[real])
    rounder = given(1.5 * 2.0 ** MANTISSA[given])
    fraction = polynomial(power_coefficients(real), real)

    @in_order
    def power(t: Any) -> Any:
        t = min(t, floor)
        rounded = rounder - t
        r = real((rounder - rounded) - t)
        return _from_bits(word(_bits_of(fraction(r)) + word(word(_bits_of(rounded)) << shift)))

    return power


def power_coefficients(real: Any) -> list[float]:
    """Of a polynomial near ``2^r`` on ``|r| <= 1/2``, with nearly the least relative error."""
    degree = _DEGREE[real]
    if degree > 8:  # Taylor's next term is below the last place, and least squares' noise is not.
        return [log(2.0) ** k / factorial(k) for k in range(degree + 2)]
    nodes = 0.5 * np.cos(np.pi * (np.arange(400) + 0.5) / 400)
    powers = np.vander(nodes, degree + 1, increasing=True) / np.exp2(nodes)[:, None]
    found: list[float] = np.linalg.lstsq(powers, np.ones(400), rcond=None)[0].tolist()
    return found


@lru_cache(maxsize=64)
def log2_of_1_plus(real: Any) -> Any:
    """``log2(1 + x)`` for ``x >= 0``, right for small x too.

    ``1 + x = 2^e m`` with m near 1, and ``log m = 2 atanh((m - 1) / (m + 1))``; what the sum
    ``1 + x`` lost to rounding is added as a first-order term.
    """
    word: Any = _WORD[real]
    shift = word(MANTISSA[real])
    # The bits of sqrt(1/2): m lies between it and sqrt(2).
    root = word(np.array(0.5**0.5, real).view(word))
    largest, e_of_2 = real(1e30 if real is np.float32 else 1e300), real(1 / log(2.0))
    terms = 5 if real is np.float32 else 12
    series = polynomial([2 / log(2.0) / (2 * k + 1) for k in range(terms)], real)
    one = real(1)

    @in_order
    def logarithm(x: Any) -> Any:
        x = min(x, largest)
        y = one + x
        lost = (x - (y - one)) / y
        e = word(word(_bits_of(y) - root) >> shift)
        m = _from_bits(word(_bits_of(y) - word(e << shift)))
        s = (m - one) / (m + one)
        return real(e) + (s * series(s * s) + lost * e_of_2)

    return logarithm
