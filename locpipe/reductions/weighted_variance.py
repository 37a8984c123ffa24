"""The local mean and the local variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.reductions.base import (
    Reduction,
    check_outputs,
    check_whole,
    fill_empty,
    full,
    merge_shifts,
    weights_and_shift,
)

__all__ = ["WeightedVariance", "WeightedVarianceState"]


class WeightedVarianceState(NamedTuple):
    """Sums at ``exp(shift)``, about the mean of what was seen.

    Attributes
    ----------
    shift, mass : arrays (n_queries,)
    mean, rest : arrays (n_queries, n_outputs)
        ``sum w v / sum w = mean + rest``, the second below the last place of the first; 0 before
        any key.
    squares : array (n_queries, n_outputs)
        ``sum w (v - mean - rest)^2``
    """

    shift: Array
    mass: Array
    mean: Array
    rest: Array
    squares: Array


@dataclass(frozen=True)
class WeightedVariance(Reduction):
    """Mean and variance of the values around each query, output by output.

    Finalizes to ``(mean, variance)``, each (n_queries, n_outputs), with the plug-in variance
    ``sum_i w_i (v_i - mean)^2 / sum_i w_i``; multiply it by ``n / (n - 1)`` with the effective
    number of neighbours n of `LogMass` for the nearly unbiased one.

    Notes
    -----
    Squares are summed about a running mean, so values far from 0 lose nothing:
    ``Q = Q_a + Q_b + (m_b - m_a)^2 s_a s_b / (s_a + s_b)`` (Chan, Golub and LeVeque 1983, eq. 2.1,
    with masses for counts).  The mean is the sum of two floats (Dekker 1971): one would be off by
    its last place, 1e-7 for values near 1e9.  O(n_queries n_keys n_outputs) time.

    Examples
    --------
    >>> import locpipe as lp
    >>> keys = lp.Keys([0.0, 1.0, 2.0, 4.0], values=[1.0, 3.0, 2.0, 5.0])
    >>> reduction, kernel = lp.reductions.WeightedVariance(1), lp.kernels.Gaussian(1.0)
    >>> mean, variance = lp.fold(reduction, [1.5], keys, kernel)
    >>> print(mean[0].round(6), variance[0].round(6))
    [2.323238] [0.646639]
    """

    n_outputs: int

    def __post_init__(self) -> None:
        check_whole(self, "n_outputs", 1)

    @property
    def tile_arrays(self) -> int:
        """Weights, and the weighted squares of one output at a time."""
        return 4

    def check(self, *, query_features: int, key_features: int, n_outputs: int) -> None:
        """As many values as outputs."""
        check_outputs(self, self.n_outputs, n_outputs)

    def init(self, q: QueryBlock) -> WeightedVarianceState:
        """No mass."""
        zeros = full(q, (self.n_outputs,), 0.0)
        sums = Sums(full(q, (), 0.0), zeros, zeros, zeros)
        return WeightedVarianceState(full(q, (), float("-inf")), *sums)

    def update(
        self,
        state: WeightedVarianceState,
        log_w: Array | None,
        q: QueryBlock,
        k: KeyBlock,
        pair: Tile | None = None,
    ) -> WeightedVarianceState:
        """Add a tile's values."""
        shift, scale, w = weights_and_shift(state.shift, log_w)
        return WeightedVarianceState(shift, *_joined(_scaled(state, scale), self._sums(w, k)))

    def _sums(self, w: Array, k: KeyBlock) -> Sums:
        """Those of a tile."""
        xp = array_namespace(w)
        values: Array = k.values
        mass = xp.sum(w, axis=1)
        mean = (w @ values) / _or_one(mass)[:, None]
        outputs = [_about(w, mass, values[:, j], mean[:, j]) for j in range(self.n_outputs)]
        rest, squares = (xp.stack(arrays, axis=1) for arrays in zip(*outputs, strict=True))
        return Sums(mass, *_two_sum(mean, rest), squares)

    def merge(self, a: WeightedVarianceState, b: WeightedVarianceState) -> WeightedVarianceState:
        """Bring both to the larger shift and join them about their common mean."""
        shift, ca, cb = merge_shifts(a.shift, b.shift)
        return WeightedVarianceState(shift, *_joined(_scaled(a, ca), _scaled(b, cb)))

    def finalize(self, state: WeightedVarianceState, empty: float) -> tuple[Array, Array]:
        """Mean, and squares over mass."""
        variance = state.squares / _or_one(state.mass)[:, None]
        mean = state.mean + state.rest
        return fill_empty(mean, state.mass, empty), fill_empty(variance, state.mass, empty)

    def no_neighbour(self, state: WeightedVarianceState) -> Array:
        """Where the mass is 0."""
        empty: Array = state.mass == 0
        return empty


class Sums(NamedTuple):
    """A state at a shift that is known."""

    mass: Array
    mean: Array
    rest: Array
    squares: Array


def _scaled(state: WeightedVarianceState, scale: Array) -> Sums:
    squares = scale[:, None] * state.squares
    return Sums(scale * state.mass, state.mean, state.rest, squares)


def _joined(a: Sums, b: Sums) -> Sums:
    """Sums of both: the mean moves from the heavier one towards the other."""
    a_leads = a.mass >= b.mass
    lead, other = _picked(a_leads, a, b), _picked(a_leads, b, a)
    mass = a.mass + b.mass
    gap, error = _two_sum(other.mean, -lead.mean)
    gap = gap + (error + (other.rest - lead.rest))
    part = (other.mass / _or_one(mass))[:, None]
    mean, lost = _two_sum(lead.mean, gap * part)
    squares = a.squares + b.squares + gap * gap * (lead.mass[:, None] * part)
    return Sums(mass, *_two_sum(mean, lead.rest + lost), squares)


def _picked(mask: Array, a: Sums, b: Sums) -> Sums:
    """Rows of `a` where the mask holds, else of `b`."""
    xp = array_namespace(mask)
    pairs = zip(a, b, strict=True)
    return Sums(*(xp.where(mask if x.ndim == 1 else mask[:, None], x, y) for x, y in pairs))


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """``a + b`` and what rounding took from it (Knuth 1969, section 4.2.2, theorem B)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _about(w: Array, mass: Array, values: Array, mean: Array) -> tuple[Array, Array]:
    """What the mean of one output is off by, and squares about the mean put right."""
    xp = array_namespace(w)
    gap = values[None, :] - mean[:, None]
    rest = xp.vecdot(w, gap) / _or_one(mass)
    gap = gap - rest[:, None]
    return rest, xp.vecdot(w * gap, gap)


def _or_one(mass: Array) -> Array:
    """A mass to divide by: 1 in place of 0."""
    xp = array_namespace(mass)
    return xp.where(mass > 0, mass, xp.ones((), dtype=mass.dtype))
