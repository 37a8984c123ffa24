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
from locpipe.engines.fused.small import SINGLE_FROM
from locpipe.engines.fused.small_layout import Layout, span_of
from locpipe.engines.fused.small_loops import least_costs
from locpipe.engines.fused.small_rows import Block, are_even, block_of, extremes, largest_sizes
from locpipe.engines.fused.small_sums import (
    Sums,
    as_state,
    from_state,
    mass_of,
    no_sums,
    of_values,
    run,
)
from locpipe.engines.parts import Parts
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.log_mass import LogMass
from locpipe.reductions.weighted_mean import WeightedMean

__all__ = ["fold_block"]

_FEW = 4.0

_TINY_EXPONENT = -100
"""Of two: values of this size are tiny."""

_SCARCE = 2.0**-13
"""Share of the mass at which values weigh so little that only far keys may have any."""

_STEPS = 16, 1
"""One key of so many tells of most queries whether there are values near them, and then all do."""

_LONE = 2.0**-25
"""Error of one squared distance in float32; those of many are independent."""


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


_SINGLE = Precision(np.float32, 2e-7, 1e-7, 2.0**-70)
_DOUBLE = Precision(np.float64, 1e-15, 6e-16, 2.0**-400)


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
    if isinstance(reduction, LogMass) or getattr(reduction, "n_outputs", None) == 0:
        k = replace(k, values=None)
    k, powers = _raised(k)
    block = block_of(
        profile, core.scale(d), parts.log_factor, parts.per_row, bool(parts.masks), q, k
    )
    if block is None:
        found = no_sums(reduction, q.n_rows)
    else:
        found = _found(block, Fold(reduction, parts.kernel, rtol, state[0], mass_of(state)))
    return reduction.merge(state, as_state(reduction, found, k, powers))


def _raised(k: KeyBlock) -> tuple[KeyBlock, Array]:
    """Keys whose values are not all tiny, lest products with weights underflow; what undoes it."""
    if k.values is None:
        return k, np.ones(0)
    exponents = np.frexp(largest_sizes(k.values))[1]
    exponents = np.where(exponents < _TINY_EXPONENT, exponents, 0)
    if exponents.any():
        k = replace(k, values=np.ldexp(k.values.astype(np.float64), -exponents))
    return k, np.ldexp(1.0, exponents)


def _found(block: Block, job: Fold) -> Sums:
    """Sums of all queries: each pass takes those that the one before could not be trusted with."""
    left = np.ones(block.q.n_rows, dtype=bool)
    for attempt in _attempts(block, job.rtol):
        if left.all():
            found, trusted = attempt(block, job)
        else:
            part, trusted = attempt(block.rows(left), job.rows(left))
            found.put(left, part)
        left[left] = ~trusted
        if not left.any():
            break
    return found


Attempt = Callable[[Block, Fold], tuple[Sums, Array]]


def _attempts(block: Block, rtol: float) -> Iterator[Attempt]:
    span = span_of(block)
    if rtol >= SINGLE_FROM and not block.exact and span.fits_single(rtol):
        yield partial(_in_single, span.centre)
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
    part = run(layout, block, job.reduction, np.zeros(block.q.n_rows))
    return part, _trusted(part, block, job, precision)


def _in_single(centre: Array | None, block: Block, job: Fold) -> tuple[Sums, Array]:
    """Sums in float32, and whether they are right: those of the values too."""
    part, trusted = _summed(_SINGLE, centre, block, job)
    if block.k.values is not None:
        trusted &= ~_from_afar(trusted, part, centre, block, job)
    return part, trusted


def _from_afar(rows: Array, part: Sums, centre: Array | None, block: Block, job: Fold) -> Array:
    """Those of the rows whose means may be less right than their masses: values of far keys."""
    needed = _needed(part, block, job.rtol)
    unseen = rows & (np.abs(of_values(job.reduction, part)) < needed).any(axis=1)
    # By chance, where values of both signs cancel: then their sizes do not.
    for step in _STEPS if _of_both_signs(block.k.values) else ():
        if unseen.any():
            near = _sizes_near(block.rows(unseen), centre, needed.shape[1], step)
            unseen[unseen] = (near < needed[unseen]).any(axis=1)
    return unseen


def _of_both_signs(values: Array) -> bool:
    low, high = extremes(values)
    return bool(np.any((low < 0) & (high > 0)))


def _needed(part: Sums, block: Block, rtol: float) -> Array:
    """Weighted values (n_queries, n_outputs) that leave nothing to those of far keys."""
    mass, sizes = part.totals[:, :1], largest_sizes(block.k.values)
    if block.profile.has_cost and are_even(block.k.values):
        return np.asarray(_SCARCE * mass * sizes)
    # The values may be those of keys near the edge, which are more in doubt than others.
    doubt = np.maximum(part.totals[:, 1:], mass)
    return np.asarray(_LONE / rtol * doubt / np.sqrt(np.maximum(mass, 1.0)) * sizes)


def _sizes_near(block: Block, centre: Array | None, n_outputs: int, step: int) -> Array:
    """Weighted sizes of values (n_queries, n_outputs), at least: those of every so many keys."""
    sample, reduction = block.sizes(step), WeightedMean(n_outputs)
    layout = Layout.of(sample, np.float32, centre)
    return run(layout, sample, reduction, np.zeros(block.q.n_rows)).moments


def _shifted(block: Block, job: Fold) -> tuple[Sums, Array]:
    """Sums about the largest weight of each query, in float64: nothing that matters underflows."""
    layout = Layout.of(block, np.float64, None)
    least = np.full(len(layout.queries), np.inf)
    find = least_costs(block.profile.bare, layout.queries.shape[1])
    find(*layout.pairs(least), np.empty((1, layout.length)), least)
    least = np.where(np.isfinite(least), least, 0.0)[: block.q.n_rows]
    return run(layout, block, job.reduction, least), np.ones(block.q.n_rows, dtype=bool)


def _dense(block: Block, job: Fold) -> tuple[Sums, Array]:
    """The reference, for the few rows where nothing else will do."""
    state = dense.fold(job.reduction, job.reduction.init(block.q), block.q, block.k, job.kernel)
    return from_state(state), np.ones(block.q.n_rows, dtype=bool)


def _trusted(part: Sums, block: Block, job: Fold, precision: Precision) -> Array:
    """Whether rounding is within rtol of the mass, that of earlier keys included."""
    mass, doubt = part.totals[:, 0], part.totals[:, 1]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        old = job.old_mass * np.exp(np.minimum(job.old_shift - part.shift, 700.0))
        # Keys farther out weigh more in moments of a higher degree.
        error = precision.per_doubt * doubt * (1 + getattr(job.reduction, "order", 0))
        if not block.profile.has_cost:
            # Of a few keys, the one near the edge may be all there is to a mean.
            error *= 1 + _FEW * block.mean_weight / (mass + old)
        elif precision is _DOUBLE:
            error = 0.0  # what a shift does not mend
        unlike = block.profile.has_cost or block.log_keys is not None
        floor = block.k.n_rows * precision.floor if unlike else 0.0
        relative = precision.base + (error + floor) / (mass + old)
    sees_all = not block.profile.has_cost and not block.underflows(precision.real)
    nothing = (mass == 0) & (doubt == 0) & sees_all
    return np.asarray((relative <= job.rtol) | nothing)
