"""A fold of one block: float32, then float64, then what underflows, until all rows are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.engines.fused.profiles import profile_of
from locpipe.engines.fused.small_layout import Layout, span_of
from locpipe.engines.fused.small_loops import least_costs, sums
from locpipe.engines.fused.small_rows import Block, block_of, even_rows
from locpipe.engines.parts import Parts
from locpipe.kernels.base import Kernel
from locpipe.kernels.normalized import Normalized
from locpipe.kernels.product import Product
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.log_mass import LogMass, LogMassState
from locpipe.reductions.local_moments import LocalMomentsState
from locpipe.reductions.weighted_mean import WeightedMeanState

__all__ = ["fold_block"]

SINGLE_FROM = 5e-7
"""The least rtol for which float32 is tried."""
_LOG_2 = np.log(2.0)


@dataclass(frozen=True)
class Precision:
    """What a pass may get wrong.

    Attributes
    ----------
    real : type
    base : float
        Relative error of every sum.
    per_doubt : float
        Relative error of a squared distance.
    floor : float
        A mean weight that is worth a shift: a square of it is still a number.
    """

    real: Any
    base: float
    per_doubt: float
    floor: float


_SINGLE = Precision(np.float32, 2e-7, 1.2e-7, 2.0**-70)
_DOUBLE = Precision(np.float64, 1e-15, 6e-16, 2.0**-400)


@dataclass(frozen=True)
class Sums:
    """Sums of every query at ``exp(shift)``: totals are of weights, doubts and squares."""

    shift: Array
    totals: Array
    moments: Array

    def put(self, rows: Array, part: Sums) -> None:
        """Replace those of some rows."""
        for mine, new in zip(vars(self).values(), vars(part).values(), strict=True):
            mine[rows] = new


@dataclass(frozen=True)
class Fold:
    """What all passes over one block share; `old_mass` is what the queries hold already."""

    reduction: Reduction
    kernel: Kernel
    rtol: float
    old_shift: Array
    old_mass: Array

    def rows(self, mask: Array) -> Fold:
        """The same for some of the queries."""
        return replace(self, old_shift=self.old_shift[mask], old_mass=self.old_mass[mask])


def fold_block(
    parts: Parts, reduction: Reduction, state: Any, q: QueryBlock, k: KeyBlock, rtol: float
) -> State:
    """`state` with the keys of a block folded in; the keys are few enough to be laid out anew."""
    core: Any = parts.core
    d = int(q.data.shape[1])
    profile = profile_of(core, d)
    if isinstance(reduction, LogMass):
        k = replace(k, values=None)
    block = block_of(
        profile, core.scale(d), parts.log_factor, parts.per_row, bool(parts.masks), q, k
    )
    found = _no_sums(reduction, q)
    if block is not None:
        job = Fold(reduction, _whole(parts), rtol, state[0], _mass_of(state))
        _fill(found, block, job)
    return reduction.merge(state, _as_state(reduction, found, k))


def _whole(parts: Parts) -> Kernel:
    core = Normalized(parts.core) if parts.per_row else parts.core
    return Product((core, *parts.masks)) if parts.masks else core


def _mass_of(state: Any) -> Array:
    return state.moments[:, 0] if isinstance(state, LocalMomentsState) else state.mass


def _no_sums(reduction: Reduction, q: QueryBlock) -> Sums:
    n_moments = getattr(reduction, "n_outputs", 0)
    return Sums(
        np.full(q.n_rows, -np.inf), np.zeros((q.n_rows, 3)), np.zeros((q.n_rows, n_moments))
    )


def _as_state(reduction: Reduction, found: Sums, k: KeyBlock) -> State:
    mass = found.totals[:, 0]
    shift = np.where(mass > 0, found.shift, -np.inf)
    if isinstance(reduction, LogMass):
        weights = k.log_sample_weight
        total = k.n_rows if weights is None else np.sum(np.exp(weights.astype(np.float64)))
        return LogMassState(shift, mass, found.totals[:, 2], np.full(len(mass), float(total)))
    return WeightedMeanState(shift, mass, found.moments)


def _from_state(state: Any) -> Sums:
    """The sums of a state, without doubts."""
    totals = np.zeros((len(state.shift), 3))
    totals[:, 0] = _mass_of(state)
    if isinstance(state, LogMassState):
        totals[:, 2] = state.mass_of_squares
    moments = state.moment if isinstance(state, WeightedMeanState) else np.zeros((len(totals), 0))
    return Sums(state.shift, totals, moments)


def _fill(found: Sums, block: Block, job: Fold) -> None:
    """Sums of all queries: each pass takes those that the one before could not be trusted with."""
    left = np.ones(block.q.n_rows, dtype=bool)
    for attempt in _attempts(block, job.rtol):
        part, trusted = attempt(block if left.all() else block.rows(left), job.rows(left))
        found.put(left, part)
        left[left] = ~trusted
        if not left.any():
            return


Attempt = Callable[[Block, Fold], tuple[Sums, Array]]


def _attempts(block: Block, rtol: float) -> Iterator[Attempt]:
    span = span_of(block)
    if rtol >= SINGLE_FROM and span.fits_single(rtol):
        yield partial(_summed, _SINGLE, span.centre)
    if span.fits_double:
        yield partial(_summed, _DOUBLE, None)
        if block.profile.has_cost:
            yield _shifted
    yield _dense


def _summed(
    precision: Precision, centre: Array | None, block: Block, job: Fold
) -> tuple[Sums, Array]:
    """Sums in one precision, and whether they are right to rtol."""
    layout = Layout.of(block, precision.real, centre)
    part = _run(layout, block, job, np.zeros(block.q.n_rows))
    return part, _trusted(part, block, job, precision)


def _shifted(block: Block, job: Fold) -> tuple[Sums, Array]:
    """Sums about the largest weight of each query, in float64: nothing that matters underflows."""
    layout = Layout.of(block, np.float64, None)
    least = np.full(len(layout.queries), np.inf)
    least_costs(layout.variant)(*layout.pairs(least), least)
    least = np.where(np.isfinite(least), least, 0.0)[: block.q.n_rows]
    return _run(layout, block, job, least), np.ones(block.q.n_rows, dtype=bool)


def _dense(block: Block, job: Fold) -> tuple[Sums, Array]:
    """The reference, for the few rows where nothing else will do."""
    state = dense.fold(job.reduction, job.reduction.init(block.q), block.q, block.k, job.kernel)
    return _from_state(state), np.ones(block.q.n_rows, dtype=bool)


def _run(layout: Layout, block: Block, job: Fold, shifts: Array) -> Sums:
    n = block.q.n_rows
    totals = np.zeros((len(layout.queries), 3))
    moments = np.zeros((len(totals), layout.values.shape[1]))
    squares = isinstance(job.reduction, LogMass)
    loop = sums(layout.variant)
    loop(*layout.pairs(even_rows(shifts)), layout.values, squares, totals, moments)
    shift = block.log_queries - _LOG_2 * shifts
    return Sums(shift, totals[:n], moments[:n] * layout.units)


def _trusted(part: Sums, block: Block, job: Fold, precision: Precision) -> Array:
    """Whether rounding is within rtol of the mass, that of earlier keys included."""
    mass, doubt = part.totals[:, 0], part.totals[:, 1]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        old = job.old_mass * np.exp(np.minimum(job.old_shift - part.shift, 700.0))
        error = precision.per_doubt * doubt
        if block.profile.has_cost:
            # What a shift cannot mend in float64 is left as it is.
            floor = block.k.n_rows * precision.floor
            error = floor + (error if precision is _SINGLE else 0.0)
        relative = precision.base + error / (mass + old)
    return (relative <= job.rtol) | ((mass == 0) & (doubt == 0) & (not block.profile.has_cost))
