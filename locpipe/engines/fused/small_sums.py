"""What a reduction asks of the loops, and its state from what they found."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from locpipe.blocks import Array, KeyBlock
from locpipe.engines.fused.memory import aligned
from locpipe.engines.fused.profiles import Profile
from locpipe.engines.fused.small_layout import Layout
from locpipe.engines.fused.small_loops import sums
from locpipe.engines.fused.small_pairs import Variant
from locpipe.engines.fused.small_rows import Block, even_rows
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.local_moments import LocalMoments, LocalMomentsState, exponents
from locpipe.reductions.log_mass import LogMass, LogMassState
from locpipe.reductions.weighted_mean import WeightedMeanState

__all__ = ["Sums", "as_state", "from_state", "mass_of", "no_sums", "of_values", "run"]

_LOG_2 = np.log(2.0)
_MOST_IN_REGISTERS = 3


@dataclass(frozen=True)
class Sums:
    """Sums of every query at ``exp(shift)``.

    Attributes
    ----------
    shift : array (n_queries,)
    totals : array (n_queries, 2)
        Of weights and of doubts.
    moments : array (n_queries, any)
        Squares of weights for `LogMass`, weighted values for `WeightedMean`, the moments and then
        the value moments for `LocalMoments`.
    """

    shift: Array
    totals: Array
    moments: Array

    def put(self, rows: Array, part: Sums) -> None:
        """Replace those of some rows."""
        for mine, new in zip(vars(self).values(), vars(part).values(), strict=True):
            mine[rows] = new


def no_sums(reduction: Any, n_queries: int) -> Sums:
    """Nothing so far."""
    shift = np.full(n_queries, -np.inf)
    return Sums(shift, np.zeros((n_queries, 2)), np.zeros((n_queries, _n_moments(reduction))))


def _n_moments(reduction: Any) -> int:
    if isinstance(reduction, LocalMoments):
        return sum(_sizes(reduction))
    return 1 if isinstance(reduction, LogMass) else int(reduction.n_outputs)


def _sizes(reduction: LocalMoments) -> tuple[int, int]:
    """Numbers of moments and of value moments."""
    d, p = len(reduction.scale), reduction.order
    return comb(d + 2 * p, d), comb(d + p, d) * reduction.n_outputs


def of_values(reduction: Any, found: Sums) -> Array:
    """Sums of the weighted values themselves (n_queries, n_outputs)."""
    if isinstance(reduction, LogMass):
        return found.moments[:, :0]
    start = _sizes(reduction)[0] if isinstance(reduction, LocalMoments) else 0
    return found.moments[:, start : start + reduction.n_outputs]


def run(layout: Layout, block: Block, reduction: Any, shifts: Array) -> Sums:
    """Sums of all queries of a block; `shifts` (n_queries,) are taken off the costs."""
    n, real = block.q.n_rows, layout.real
    tables, units = _monomials(reduction, layout)
    found = no_sums(reduction, len(layout.queries))
    work = aligned((len(tables) + len(units), layout.length), real)
    buffer = aligned((2, layout.length), real)
    loop = sums(_variant(reduction, layout, block.profile))
    loop(
        *layout.pairs(even_rows(shifts)),
        layout.values,
        tables,
        units,
        work,
        buffer,
        found.totals,
        found.moments,
    )
    moments = found.moments[:n] * _powers(reduction, layout.powers)
    return Sums(block.log_queries - _LOG_2 * shifts, found.totals[:n], moments)


def _variant(reduction: Any, layout: Layout, profile: Profile) -> Variant:
    kinds: dict[type, str] = {LogMass: "squares", LocalMoments: "monomials"}
    collects, skips = kinds.get(type(reduction), "products"), len(layout.skipped) > 0
    n_outputs = layout.values.shape[1]
    few = n_outputs <= _MOST_IN_REGISTERS and collects == "products" and not skips
    return Variant(
        profile.bare,
        layout.queries.shape[1],
        layout.real is np.float32,
        layout.plain,
        skips,
        collects,
        n_outputs if few else 0,
    )


def _powers(reduction: Any, powers: Array) -> Any:
    """Factors of all that is collected, from those of the values."""
    if isinstance(reduction, LogMass):
        return 1.0
    if not isinstance(reduction, LocalMoments):
        return powers
    n_plain, n_valued = _sizes(reduction)
    repeats = n_valued // max(reduction.n_outputs, 1)
    return np.concatenate([np.ones(n_plain), np.tile(powers, repeats)])


def _monomials(reduction: Any, layout: Layout) -> tuple[Array, Array]:
    """From which monomial and by which feature each comes (n, 2), and factors of the features."""
    if not isinstance(reduction, LocalMoments):
        return np.zeros((0, 2), np.int64), np.zeros(0, layout.real)
    d = len(reduction.scale)
    alphas = exponents(d, 2 * reduction.order)
    places = {alpha: i for i, alpha in enumerate(alphas)}
    table = np.zeros((len(alphas), 2), np.int64)
    for i, alpha in enumerate(alphas[1:], start=1):
        j = next(j for j, power in enumerate(alpha) if power)
        table[i] = places[(*alpha[:j], alpha[j] - 1, *alpha[j + 1 :])], j
    units = np.ldexp(1 / np.asarray(reduction.scale), layout.exponent)
    return table, units.astype(layout.real)


def mass_of(state: Any) -> Array:
    """Sum of weights in a state, at its shift."""
    return state.moments[:, 0] if isinstance(state, LocalMomentsState) else state.mass


def as_state(reduction: Reduction, found: Sums, k: KeyBlock, powers: Array) -> State:
    """The reduction's own state of the block's keys; `powers` are those of its values."""
    if (powers != 1).any():
        found = _lowered(found, _powers(reduction, powers))
    mass = found.totals[:, 0]
    shift = np.where(mass > 0, found.shift, -np.inf)
    if isinstance(reduction, LogMass):
        weights = k.log_sample_weight
        total = k.n_rows if weights is None else np.sum(np.exp(weights.astype(np.float64)))
        return LogMassState(shift, mass, found.moments[:, 0], np.full(len(mass), float(total)))
    if not isinstance(reduction, LocalMoments):
        return WeightedMeanState(shift, mass, found.moments)
    n_plain = _sizes(reduction)[0]
    n_alphas = comb(len(reduction.scale) + reduction.order, reduction.order)
    valued = found.moments[:, n_plain:].reshape(len(mass), n_alphas, reduction.n_outputs)
    return LocalMomentsState(shift, found.moments[:, :n_plain], valued)


def _lowered(found: Sums, powers: Array) -> Sums:
    """Sums of values times these powers, at a mass near 1: both may be tiny."""
    exponents = np.frexp(found.totals[:, 0])[1]
    moments = np.ldexp(found.moments, -exponents[:, None]) * powers
    totals = np.ldexp(found.totals, -exponents[:, None])
    return Sums(found.shift + _LOG_2 * exponents, totals, moments)


def from_state(state: Any) -> Sums:
    """The sums of a state, without doubts."""
    totals = np.zeros((len(state.shift), 2))
    totals[:, 0] = mass_of(state)
    if isinstance(state, LogMassState):
        return Sums(state.shift, totals, state.mass_of_squares[:, None])
    if isinstance(state, WeightedMeanState):
        return Sums(state.shift, totals, state.moment)
    valued = state.value_moments.reshape(len(totals), -1)
    return Sums(state.shift, totals, np.concatenate([state.moments, valued], axis=1))
