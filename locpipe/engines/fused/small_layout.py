"""Rows in one precision, as the loops take them, and which precision can hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from locpipe.blocks import Array
from locpipe.engines.fused.profiles import Profile
from locpipe.engines.fused.small_loops import Variant
from locpipe.engines.fused.small_rows import Block, even_rows, into_strips

__all__ = ["Layout", "Span", "span_of"]


@dataclass(frozen=True)
class Layout:
    """Arguments of the loops; `units` brings moments back to those of the values."""

    variant: Variant
    queries: Array
    factors: Array
    scales: Array
    power: Any
    strips: Array
    n_keys: int
    skipped: Array
    skip_range: Array
    values: Array
    units: Array

    @classmethod
    def of(cls, block: Block, real: Any, centre: Array | None) -> Layout:
        """Lay out a block in one precision, about a centre."""
        single = real is np.float32
        profile, n = block.profile, block.k.n_rows
        d = int(block.q.data.shape[1])
        kind = Profile(profile.name, profile.has_cost)
        values, units = _values(block, real)
        return cls(
            Variant(kind, d, single, single and block.plain),
            even_rows(block.coordinates(block.q.data, centre, real)),
            even_rows(block.factors(real)),
            block.scales.astype(real),
            real(profile.power),
            into_strips(block.key_columns(centre, real), n, real),
            n,
            block.skipped,
            even_rows(block.skip_range),
            into_strips(values, n, real),
            units,
        )

    def pairs(self, shifts: Array) -> tuple[Any, ...]:
        """What every loop begins with."""
        return (
            self.queries,
            self.factors,
            shifts.astype(self.queries.dtype),
            self.scales,
            self.power,
            self.strips,
            self.n_keys,
            self.skipped,
            self.skip_range,
        )


def _values(block: Block, real: Any) -> tuple[list[Array], Array]:
    """Columns of values, brought near 1 by powers of two in float32, and these powers."""
    values = block.k.values
    if values is None:
        return [], np.ones(0)
    if real is np.float64:
        return list(values.T), np.ones(values.shape[1])
    exponents = np.frexp(np.max(np.abs(values), axis=0).astype(np.float64))[1]
    return list(np.ldexp(values, -exponents).T), np.ldexp(1.0, exponents)


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
        To be subtracted before float32; None where the rows are float32 numbers.
    rounding : float
        What float32 changes a coordinate by, in bandwidths.
    even_values : bool
        Whether no value is so small beside the others that float32 would lose it.
    """

    reach: float
    least: float
    most: float
    centre: Array | None
    rounding: float
    even_values: bool

    def fits_single(self, rtol: float) -> bool:
        """Whether float32 is worth a try."""
        in_range = self.reach < 1e15 and 1e-30 < self.least and self.most < 1e30
        return in_range and self.even_values and 4 * self.rounding < rtol

    @property
    def fits_double(self) -> bool:
        """Whether no number leaves float64 on the way."""
        return self.reach < 1e140 and 1e-280 < self.least and self.most < 1e280


def span_of(block: Block) -> Span:
    """Look at all rows of a block."""
    low = np.minimum(block.q.data.min(axis=0), block.k.data.min(axis=0)).astype(np.float64)
    high = np.maximum(block.q.data.max(axis=0), block.k.data.max(axis=0)).astype(np.float64)
    rows = [h for h in (block.q.bandwidth, block.k.bandwidth) if h is not None]
    smallest = float(np.prod([h.min() for h in rows])) if rows else 1.0
    largest = float(np.prod([h.max() for h in rows])) if rows else 1.0
    reach = float(np.max((high - low) / block.bandwidths)) / min(smallest, 1.0)
    narrow, wide = np.ldexp(block.last, -block.exponent) * np.array([smallest, largest])
    unit = 1.0 if block.exact else block.profile.unit
    centre, rounding = None, 0.0
    if not (_is_single(block.q.data) and _is_single(block.k.data)):
        centre = 0.5 * (low + high)
        rounding = 2.0**-24 * reach
    return Span(
        reach, unit / wide / wide, unit / narrow / narrow, centre, rounding, _even(block.k.values)
    )


def _is_single(data: Array) -> bool:
    return data.dtype == np.float32 or bool(np.array_equal(data.astype(np.float32), data))


def _even(values: Array | None) -> bool:
    if values is None or values.size == 0:
        return True
    sizes = np.abs(values)
    smallest = np.min(sizes, axis=0, where=sizes > 0, initial=np.inf)
    with np.errstate(invalid="ignore"):
        return bool(np.all((sizes.max(axis=0) < 1e20 * smallest)))
