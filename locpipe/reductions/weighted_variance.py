"""The local mean and the local variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.reductions.base import Reduction, fill_empty, full, merge_shifts, weights_and_shift

__all__ = ["WeightedVariance", "WeightedVarianceState"]


class WeightedVarianceState(NamedTuple):
    """Sums at ``exp(shift)``, about the mean of what was seen.

    Attributes
    ----------
    shift, mass : arrays (n_queries,)
    mean : array (n_queries, n_outputs)
        ``sum w v / sum w``; 0 before any key.
    squares : array (n_queries, n_outputs)
        ``sum w (v - mean)^2``
    """

    shift: Array
    mass: Array
    mean: Array
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
    with masses for counts).  O(n_queries n_keys n_outputs) time.

    Examples
    --------
    >>> import locpipe as lp
    >>> keys = lp.Keys([0.0, 1.0, 2.0, 4.0], values=[1.0, 3.0, 2.0, 5.0])
    >>> mean, variance = lp.fold(WeightedVariance(1), [1.5], keys, lp.kernels.Gaussian(1.0))
    >>> print(mean[0].round(6), variance[0].round(6))
    [2.323238] [0.646639]
    """

    n_outputs: int

    @property
    def tile_arrays(self) -> int:
        """Weights, and the weighted squares of one output at a time."""
        return 4

    def init(self, q: QueryBlock) -> WeightedVarianceState:
        """No mass."""
        zeros = full(q, (self.n_outputs,), 0.0)
        return WeightedVarianceState(full(q, (), float("-inf")), full(q, (), 0.0), zeros, zeros)

    def update(
        self,
        state: WeightedVarianceState,
        log_w: Array | None,
        q: QueryBlock,
        k: KeyBlock,
        pair: Tile | None = None,
    ) -> WeightedVarianceState:
        """Add a tile's values."""
        xp = array_namespace(log_w)
        shift, scale, w = weights_and_shift(state.shift, log_w)
        values: Array = k.values
        mass = xp.sum(w, axis=1)
        mean = (w @ values) / _or_one(mass)[:, None]
        squares = [_squares_about(w, values[:, j], mean[:, j]) for j in range(self.n_outputs)]
        old = (scale * state.mass, state.mean, scale[:, None] * state.squares)
        return _joined(shift, old, (mass, mean, xp.stack(squares, axis=1)))

    def merge(self, a: WeightedVarianceState, b: WeightedVarianceState) -> WeightedVarianceState:
        """Bring both to the larger shift and join them about their common mean."""
        shift, ca, cb = merge_shifts(a.shift, b.shift)
        at_shift = [(c * s.mass, s.mean, c[:, None] * s.squares) for c, s in ((ca, a), (cb, b))]
        return _joined(shift, *at_shift)

    def finalize(self, state: WeightedVarianceState, empty: float) -> tuple[Array, Array]:
        """Mean, and squares over mass."""
        variance = state.squares / _or_one(state.mass)[:, None]
        return fill_empty(state.mean, state.mass, empty), fill_empty(variance, state.mass, empty)

    def no_neighbour(self, state: WeightedVarianceState) -> Array:
        """Where the mass is 0."""
        empty: Array = state.mass == 0
        return empty


Sums = tuple[Array, Array, Array]
"""Mass, mean and squares at one shift."""


def _joined(shift: Array, a: Sums, b: Sums) -> WeightedVarianceState:
    (mass_a, mean_a, squares_a), (mass_b, mean_b, squares_b) = a, b
    mass = mass_a + mass_b
    gap, part = mean_b - mean_a, (mass_b / _or_one(mass))[:, None]
    squares = squares_a + squares_b + gap * gap * mass_a[:, None] * part
    return WeightedVarianceState(shift, mass, mean_a + gap * part, squares)


def _squares_about(w: Array, values: Array, mean: Array) -> Array:
    """``sum_i w_i (v_i - mean)^2`` per query, of one output."""
    xp = array_namespace(w)
    gap = values[None, :] - mean[:, None]
    return xp.vecdot(w * gap, gap)


def _or_one(mass: Array) -> Array:
    """A mass to divide by: 1 in place of 0."""
    xp = array_namespace(mass)
    return xp.where(mass > 0, mass, xp.ones((), dtype=mass.dtype))
