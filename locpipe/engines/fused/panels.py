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

from locpipe.engines.fused.compiled import in_order, prefer_wide_vectors
from locpipe.engines.fused.exponential import FLOOR, power_coefficients

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
    """``2 ** -t``, as in `exponential`."""
    b, mantissa = v.builder, 23 if real is np.float32 else 52
    t = v.lesser(t, v.constant(FLOOR[real]))
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
    """A function of arrays and whole numbers whose body ``write(vectors, *pointers)`` emits."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pairs = zip(signature.args, arguments, strict=True)
        pointers = [
            target.make_array(kind)(target, builder, x).data if isinstance(kind, types.Array) else x
            for kind, x in pairs
        ]
        write(_Vectors(builder, real, panel.lanes), *pointers)
        return target.get_dummy_value()

    return generate


@lru_cache
def weights_of_panel(real: Any, panel: Panel, with_squares: bool, masked: bool) -> Any:
    """Weights of a panel of pairs, from the two sides of the product that is their log.

    ``weights_of_panel(x, y, n, added, rounding, terms, base, allowed, first, stride, out, at,
    sums)``: `x` (n, rows) and `y` (n, columns) packed, `added` (columns,) to the logs; weights at
    ``2 ** base`` (rows,) go to `out` (rows, STRIDE), from column `at` on.  `sums` (rows, 4, lanes)
    are of weights w and, where asked for, of their squares; then come the least ``base - log`` and
    the sum of ``w^2 v``, where ``v = terms product^2 + rounding`` (columns,) is the variance of a
    log.  Where pairs are masked, those not allowed weigh as little as can be: row r of the panel
    begins ``first + r stride`` numbers after the start of `allowed`.
    """

    def write(
        v: _Vectors, x: Any, y: Any, n: Any, added: Any, rounding: Any, terms: Any, base: Any,
        allowed: Any, first: Any, stride: Any, out: Any, at: Any, sums: Any,
    ) -> None:  # fmt: skip
        b = v.builder
        logs, out = _product_of_rows(v, panel, n, x, y), b.gep(out, [at])
        more = [v.load(added, c) for c in range(panel.vectors)]
        rounded = [v.load(rounding, c) for c in range(panel.vectors)]
        terms = v.everywhere(terms)
        for r, of_row in enumerate(logs):
            level = v.everywhere(b.gep(base, [_INDEX(r)]))
            mass, squares, least, errors = (v.load(sums, 4 * r + i) for i in range(4))
            place = b.gep(out, [_INDEX(r * STRIDE)])
            mask = b.gep(allowed, [b.add(first, b.mul(stride, _INDEX(r)))])
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
                v.store(total, sums, 4 * r + i)

    @intrinsic
    def emitted(
        context: Any, x: Any, y: Any, n: Any, added: Any, rounding: Any, terms: Any, base: Any,
        allowed: Any, first: Any, stride: Any, out: Any, at: Any, sums: Any,
    ) -> Any:  # fmt: skip
        kinds = x, y, n, added, rounding, terms, base, allowed, first, stride, out, at, sums
        return types.void(*kinds), _written(real, panel, write)

    @in_order
    def weights(
        x: Any, y: Any, n: int, added: Any, rounding: Any, terms: Any, base: Any, allowed: Any,
        first: int, stride: int, out: Any, at: int, sums: Any,
    ) -> None:  # fmt: skip
        prefer_wide_vectors()
        emitted(x, y, n, added, rounding, terms, base, allowed, first, stride, out, at, sums)

    return weights


def _worth_a_square(v: _Vectors, w: Any, t: Any, real: Any) -> Any:
    # Squares below the least normal number would be slow, and nothing beside that of the largest.
    inside = v.builder.fcmp_ordered("<", t, v.constant(FLOOR[real] / 2))
    return v.builder.select(inside, w, v.constant(0.0))


@lru_cache
def product_of_panel(real: Any, panel: Panel) -> Any:
    """Weights (rows, STRIDE) times values (n, columns).

    ``product_of_panel(weights, n, values, out)``, `out` (rows, columns).
    """

    def write(v: _Vectors, weights: Any, n: Any, values: Any, out: Any) -> None:
        b = v.builder
        rows = [b.gep(weights, [_INDEX(r * STRIDE)]) for r in range(panel.rows)]
        sums = _sums(
            v, panel, n, lambda r, i: b.gep(rows[r], [i]),
            lambda i: b.gep(values, [b.mul(i, _INDEX(panel.columns))]),
        )  # fmt: skip
        for r, of_row in enumerate(sums):
            for c, total in enumerate(of_row):
                v.store(total, out, r * panel.vectors + c)

    @intrinsic
    def emitted(context: Any, weights: Any, n: Any, values: Any, out: Any) -> Any:
        return types.void(weights, n, values, out), _written(real, panel, write)

    @in_order
    def product(weights: Any, n: int, values: Any, out: Any) -> None:
        prefer_wide_vectors()
        emitted(weights, n, values, out)

    return product
