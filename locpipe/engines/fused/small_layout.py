"""Rows in one precision, as the loops take them, and which precision can hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from locpipe.blocks import Array
from locpipe.engines.fused.small_rows import (
    Block,
    even_rows,
    extremes,
    into_strips,
    largest_sizes,
)

__all__ = ["Layout", "Span", "span_of"]


@dataclass(frozen=True)
class Layout:
    """Rows of a block as the loops take them, in one precision.

    Attributes
    ----------
    real : type
    queries, factors, scales, power, strips, n_keys, skipped, skip_range
        As in `small_loops`; the last query comes twice where their number is odd.
    values : array (n_strips, n_outputs, length)
    powers : float64 array (n_outputs,)
        What brings sums of these values back to those of the block's; 0 where all are 0.
    plain : bool
        Whether keys differ in nothing but their place, and features not in bandwidth.
    exponent : int
        Of the power of two that coordinates were divided by.
    """

    real: Any
    queries: Array
    factors: Array
    scales: Array
    power: Any
    strips: Array
    n_keys: int
    skipped: Array
    skip_range: Array
    values: Array
    powers: Array
    plain: bool
    exponent: int

    @classmethod
    def of(cls, block: Block, real: Any, centre: Array | None) -> Layout:
        """Lay out a block, its coordinates about a centre."""
        n = block.k.n_rows
        values, powers = _values(block, real)
        return cls(
            real,
            even_rows(block.coordinates(block.q.data, centre, real)),
            even_rows(block.factors(real)),
            block.scales.astype(real),
            real(block.profile.power),
            into_strips(block.key_columns(centre, real), n, real),
            n,
            block.skipped,
            even_rows(block.skip_range),
            into_strips(values, n, real),
            powers,
            real is np.float32 and block.plain,
            block.exponent,
        )

    @property
    def length(self) -> int:
        """Keys per strip."""
        return int(self.strips.shape[2])

    def pairs(self, shifts: Array) -> tuple[Any, ...]:
        """What every loop begins with; loops move the starts of the ranges."""
        return (
            self.queries,
            self.factors,
            shifts.astype(self.real),
            self.scales,
            self.power,
            self.strips,
            self.n_keys,
            self.skipped,
            self.skip_range.copy(),
        )


def _values(block: Block, real: Any) -> tuple[list[Array], Array]:
    """Columns of values, brought near 1 by powers of two in float32, and these powers."""
    values = block.k.values
    if values is None:
        return [], np.ones(0)
    if real is np.float64:
        return list(values.T), np.ones(values.shape[1])
    fractions, exponents = np.frexp(largest_sizes(values))
    return list(np.ldexp(values, -exponents).T), np.ldexp(np.sign(fractions), exponents)


_FARTHEST = 1e15
"""Bandwidths whose squares float32 holds, those of some features together too."""


@dataclass(frozen=True)
class Span:
    """How far rows lie apart, and what float32 would do to them.

    Attributes
    ----------
    reach : float
        No coordinate is farther from another in bandwidths, with any row's bandwidth or without.
    least, most : float
        Factors of squared distances lie between.
    centre : array or None
        To be subtracted before float32; None where the rows are float32 numbers in range.
    rounding : float
        What float32 changes a coordinate by, in bandwidths.
    """

    reach: float
    least: float
    most: float
    centre: Array | None
    rounding: float

    def fits_single(self, rtol: float) -> bool:
        """Whether float32 is worth a try."""
        in_range = self.reach < _FARTHEST and self.least > 1e-30 and self.most < 1e30
        return in_range and 4 * self.rounding < rtol

    @property
    def fits_double(self) -> bool:
        """Whether no number leaves float64 on the way."""
        return self.reach < 1e140 and self.least > 1e-280 and self.most < 1e280


def span_of(block: Block) -> Span:
    """Look at all rows of a block."""
    (q_low, q_high), (k_low, k_high) = extremes(block.q.data), extremes(block.k.data)
    low, high = np.minimum(q_low, k_low), np.maximum(q_high, k_high)
    rows = [h for h in (block.q.bandwidth, block.k.bandwidth) if h is not None]
    smallest = float(np.prod([h.min() for h in rows])) if rows else 1.0
    largest = float(np.prod([h.max() for h in rows])) if rows else 1.0
    reach = float(np.max((high - low) / block.bandwidths)) / min(smallest, 1.0)
    size = float(np.max(np.maximum(np.abs(low), np.abs(high)) / block.bandwidths))
    narrow, wide = np.ldexp(block.last, -block.exponent) * np.array([smallest, largest])
    unit = 1.0 if block.exact else block.profile.unit
    centre, rounding = None, 0.0
    if size > _FARTHEST or not (_is_single(block.q.data) and _is_single(block.k.data)):
        centre = 0.5 * (low + high)
        rounding = 2.0**-24 * reach
    return Span(reach, unit / wide / wide, unit / narrow / narrow, centre, rounding)


def _is_single(data: Array) -> bool:
    if data.dtype == np.float32:
        return True
    with np.errstate(over="ignore"):
        return bool(np.array_equal(data.astype(np.float32), data))
