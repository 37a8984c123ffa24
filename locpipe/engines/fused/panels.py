"""Products of matrices whose sums stay in registers, and weights made of them on the spot.

BLAS is slow where one side is thin: at 16 columns it reaches a third of what the machine can do,
and its results travel through memory before a weight is made of them.  Here rows and keys are
packed in panels, a panel of each meets in registers, and what leaves them are weights.  LLVM does
not find this form by itself, so it is written in its own language, for any width of vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.extending import intrinsic

from locpipe.engines.fused.exponential import FLOOR, MANTISSA, power_coefficients

__all__ = [
    "KEYS",
    "STRIDE",
    "Panel",
    "panel_of",
    "product_of_panel",
    "weights_of_panel",
]

KEYS = 512
"""Keys whose weights are kept at a time."""
STRIDE = KEYS + 16
"""Numbers from a row of weights to the next, lest they all fall on the same sets of a cache."""

_LEAST = {np.float32: 100.0, np.float64: 960.0}
"""Weights stop at two to the minus this: arithmetic with smaller products would be slow."""
_CAP = {np.float32: 1e12, np.float64: 1e100}
"""More is hopeless, and its powers would not be numbers."""

_INDEX = ir.IntType(64)
_FAST = ("contract",)


@dataclass(frozen=True)
class Panel:
    """How many rows meet how many columns in registers.

    Attributes
    ----------
    rows : int
    lanes : int
        Numbers in a vector.
    vectors : int
        Vectors of columns.
    """

    rows: int
    lanes: int
    vectors: int = 2

    @property
    def columns(self) -> int:
        """Columns of a panel."""
        return self.lanes * self.vectors


@lru_cache
def panel_of(real: Any) -> Panel:
    """The panel that fills this machine's registers."""
    features = get_host_cpu_features()
    size = np.dtype(real).itemsize
    if features.get("avx512f"):
        return Panel(12, 64 // size)
    if features.get("avx"):
        return Panel(6, 32 // size)
    return Panel(12 if features.get("neon") else 6, 16 // size)


class _Vectors:
    """Vector instructions of one function that is being written."""

    def __init__(self, builder: Any, real: Any, lanes: int) -> None:
        single = real is np.float32
        self.builder, self.lanes = builder, lanes
        self.type = ir.VectorType(ir.FloatType() if single else ir.DoubleType(), lanes)
        self.words = ir.VectorType(ir.IntType(32 if single else 64), lanes)

    def constant(self, x: float) -> Any:
        return ir.Constant(self.type, [float(x)] * self.lanes)

    def whole(self, n: int) -> Any:
        return ir.Constant(self.words, [n] * self.lanes)

    def load(self, start: Any, vector: int) -> Any:
        """A vector that begins so many vectors after a number."""
        return self.builder.load(self._place(start, vector), align=4)

    def store(self, value: Any, start: Any, vector: int) -> None:
        self.builder.store(value, self._place(start, vector), align=4)

    def truths(self, start: Any, vector: int) -> Any:
        """Which of a vector's bytes are not 0."""
        b, kind = self.builder, ir.VectorType(ir.IntType(8), self.lanes)
        place = b.gep(start, [_INDEX(vector * self.lanes)])
        found = b.load(b.bitcast(place, kind.as_pointer()), align=1)
        return b.icmp_unsigned("!=", found, ir.Constant(kind, [0] * self.lanes))

    def _place(self, start: Any, vector: int) -> Any:
        place = self.builder.gep(start, [_INDEX(vector * self.lanes)])
        return self.builder.bitcast(place, self.type.as_pointer())

    def everywhere(self, number: Any) -> Any:
        """A vector of one number."""
        b, none = self.builder, ir.Constant(self.type, ir.Undefined)
        first = b.insert_element(none, b.load(number), ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return b.shuffle_vector(first, none, zeros)

    def add_product(self, total: Any, x: Any, y: Any) -> Any:
        b = self.builder
        return b.fadd(b.fmul(x, y, flags=_FAST), total, flags=_FAST)

    def lesser(self, x: Any, y: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", x, y), x, y)


def _sums(v: _Vectors, panel: Panel, n: Any, row: Any, columns: Any) -> list[list[Any]]:
    """Products of `rows` numbers with `vectors` vectors, added up over n steps.

    ``row(r, i)`` points to the number of row r at step i, ``columns(i)`` to the vectors.
    """
    b, start = v.builder, v.builder.block
    loop, end = b.append_basic_block("loop"), b.append_basic_block("end")
    b.branch(loop)
    b.position_at_end(loop)
    i = b.phi(_INDEX)
    i.add_incoming(_INDEX(0), start)
    sums = [[b.phi(v.type) for _ in range(panel.vectors)] for _ in range(panel.rows)]
    at = columns(i)
    loaded = [v.load(at, c) for c in range(panel.vectors)]
    totals = []
    for r, of_row in enumerate(sums):
        x = v.everywhere(row(r, i))
        totals.append([v.add_product(of_row[c], x, loaded[c]) for c in range(panel.vectors)])
    for before, after in zip(chain(*sums), chain(*totals), strict=True):
        before.add_incoming(v.constant(0.0), start)
        before.add_incoming(after, loop)
    following = b.add(i, _INDEX(1))
    i.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", following, n), loop, end)
    b.position_at_end(end)
    return totals


def _two_to_minus(v: _Vectors, t: Any, real: Any) -> Any:
    """``2 ** -t``, as in `exponential`; never so little that a product is no normal number."""
    b, mantissa = v.builder, MANTISSA[real]
    t = v.lesser(t, v.constant(_LEAST[real]))
    rounder = v.constant(1.5 * 2.0**mantissa)
    rounded = b.fsub(rounder, t)
    r = b.fsub(b.fsub(rounder, rounded), t)
    *lower, total = (v.constant(real(c)) for c in power_coefficients(real))
    for c in reversed(lower):
        total = v.add_product(c, total, r)
    exponent = b.shl(b.bitcast(rounded, v.words), v.whole(mantissa))
    return b.bitcast(b.add(b.bitcast(total, v.words), exponent), v.type)


def _product_of_rows(v: _Vectors, panel: Panel, n: Any, x: Any, y: Any) -> list[list[Any]]:
    """``x`` (n, rows) times ``y`` (n, columns), both packed."""
    b = v.builder

    def row(r: int, i: Any) -> Any:
        return b.gep(x, [b.add(b.mul(i, _INDEX(panel.rows)), _INDEX(r))])

    return _sums(v, panel, n, row, lambda i: b.gep(y, [b.mul(i, _INDEX(panel.columns))]))


def _written(real: Any, panel: Panel, write: Any) -> Any:
    """A function of arrays and whole numbers whose body ``write(vectors, *arguments)`` emits."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found: list[Any] = []
        for kind, x in zip(signature.args, arguments, strict=True):
            if isinstance(kind, types.Array):
                found.append(target.make_array(kind)(target, builder, x).data)
            else:
                found.append(x)
        write(_Vectors(builder, real, panel.lanes), *found)
        return target.get_dummy_value()

    return generate


@lru_cache
def weights_of_panel(real: Any, panel: Panel, with_squares: bool, masked: bool) -> Any:
    """Weights of a panel of pairs, from the two sides of the product that is their log.

    ``weights_of_panel(n, x, x_at, y, y_at, added, rounding, key_at, terms, base, base_at, allowed,
    allowed_at, stride, out, out_at, sums, sums_at)``: each ``at`` is where the panel begins in the
    array before it.  `x` (n, rows) and `y` (n, columns) are packed, `added` (columns,) goes to the
    logs; weights at ``2 ** base`` (rows,) go to `out` (rows, STRIDE).  `sums` (rows, 4, lanes) are
    of weights w and, where asked for, of their squares; then come the least ``base - log`` and the
    sum of ``w^2 v``, where ``v = terms product^2 + rounding`` (columns,), no less than 1, is the
    variance of a log in some unit.  Where pairs are masked, those not allowed (rows, stride) weigh
    as little as can be.

    For functions in which the order of steps is kept, and wide vectors preferred.
    """

    def write(
        v: _Vectors, n: Any, x: Any, x_at: Any, y: Any, y_at: Any, added: Any, rounding: Any,
        key_at: Any, terms: Any, base: Any, base_at: Any, allowed: Any, allowed_at: Any,
        stride: Any, out: Any, out_at: Any, sums: Any, sums_at: Any,
    ) -> None:  # fmt: skip
        b = v.builder
        x, y, base = b.gep(x, [x_at]), b.gep(y, [y_at]), b.gep(base, [base_at])
        added, rounding = b.gep(added, [key_at]), b.gep(rounding, [key_at])
        allowed, out = b.gep(allowed, [allowed_at]), b.gep(out, [out_at])
        sums = b.gep(sums, [sums_at])
        logs = _product_of_rows(v, panel, n, x, y)
        more = [v.load(added, c) for c in range(panel.vectors)]
        rounded = [v.load(rounding, c) for c in range(panel.vectors)]
        terms = v.everywhere(terms)
        for r, of_row in enumerate(logs):
            level = v.everywhere(b.gep(base, [_INDEX(r)]))
            mass, squares, least, errors = (v.load(sums, 4 * r + i) for i in range(4))
            place = b.gep(out, [_INDEX(r * STRIDE)])
            mask = b.gep(allowed, [b.mul(stride, _INDEX(r))])
            for c, log in enumerate(of_row):
                t = b.fsub(b.fsub(level, more[c]), log)
                if masked:
                    t = b.select(v.truths(mask, c), t, v.constant(float("inf")))
                least = v.lesser(t, least)
                w = _two_to_minus(v, t, real)
                v.store(w, place, c)
                mass = b.fadd(mass, w)
                variance = v.add_product(rounded[c], b.fmul(log, log), terms)
                variance = v.lesser(variance, v.constant(_CAP[real]))
                errors = v.add_product(errors, b.fmul(w, variance), w)
                if with_squares:
                    squares = v.add_product(squares, *[_worth_a_square(v, w, t, real)] * 2)
            for i, total in enumerate((mass, squares, least, errors)):
                if i != 1 or with_squares:
                    v.store(total, sums, 4 * r + i)

    @intrinsic
    def weights(
        context: Any, n: Any, x: Any, x_at: Any, y: Any, y_at: Any, added: Any, rounding: Any,
        key_at: Any, terms: Any, base: Any, base_at: Any, allowed: Any, allowed_at: Any,
        stride: Any, out: Any, out_at: Any, sums: Any, sums_at: Any,
    ) -> Any:  # fmt: skip
        keys = y, y_at, added, rounding, key_at, terms
        rest = base, base_at, allowed, allowed_at, stride, out, out_at, sums, sums_at
        return types.void(n, x, x_at, *keys, *rest), _written(real, panel, write)

    return weights


def _worth_a_square(v: _Vectors, w: Any, t: Any, real: Any) -> Any:
    # Squares below the least normal number would be slow, and nothing beside that of the largest.
    inside = v.builder.fcmp_ordered("<", t, v.constant(FLOOR[real] / 2))
    return v.builder.select(inside, w, v.constant(0.0))


@lru_cache
def product_of_panel(real: Any, panel: Panel) -> Any:
    """Weights (rows, STRIDE) times values (n, columns), added to what is there.

    ``product_of_panel(n, weights, weights_at, values, values_at, out)``, `out` (rows, columns);
    where it may be called, see `weights_of_panel`.
    """

    def write(
        v: _Vectors, n: Any, weights: Any, weights_at: Any, values: Any, values_at: Any, out: Any
    ) -> None:
        b = v.builder
        weights, values = b.gep(weights, [weights_at]), b.gep(values, [values_at])
        rows = [b.gep(weights, [_INDEX(r * STRIDE)]) for r in range(panel.rows)]
        sums = _sums(
            v, panel, n, lambda r, i: b.gep(rows[r], [i]),
            lambda i: b.gep(values, [b.mul(i, _INDEX(panel.columns))]),
        )  # fmt: skip
        for r, of_row in enumerate(sums):
            for c, total in enumerate(of_row):
                at = r * panel.vectors + c
                v.store(b.fadd(v.load(out, at), total), out, at)

    @intrinsic
    def product(
        context: Any, n: Any, weights: Any, weights_at: Any, values: Any, values_at: Any, out: Any
    ) -> Any:
        kinds = n, weights, weights_at, values, values_at, out
        return types.void(*kinds), _written(real, panel, write)

    return product
