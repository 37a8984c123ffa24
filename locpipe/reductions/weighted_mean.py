"""The local mean itself."""

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

__all__ = ["WeightedMean", "WeightedMeanState"]


class WeightedMeanState(NamedTuple):
    """Sums at ``exp(shift)``: of weights (n,), and of weight times value (n, n_outputs)."""

    shift: Array
    mass: Array
    moment: Array


@dataclass(frozen=True)
class WeightedMean(Reduction):
    """``sum_i w_i v_i / sum_i w_i`` per query: online softmax.

    Finalizes to ``(mean,)`` of shape (n_queries, n_outputs).

    References
    ----------
    Nadaraya (1964); Watson (1964); Milakov and Gimelshein (2018), algorithm 3.
    """

    n_outputs: int

    def __post_init__(self) -> None:
        check_whole(self, "n_outputs", 1)

    @property
    def tile_arrays(self) -> int:
        """As of `LogMass`."""
        return 3

    def check(self, *, query_features: int, key_features: int, n_outputs: int) -> None:
        """As many values as outputs."""
        check_outputs(self, self.n_outputs, n_outputs)

    def init(self, q: QueryBlock) -> WeightedMeanState:
        """No mass."""
        moment = full(q, (self.n_outputs,), 0.0)
        return WeightedMeanState(full(q, (), float("-inf")), full(q, (), 0.0), moment)

    def update(
        self,
        state: WeightedMeanState,
        log_w: Array | None,
        q: QueryBlock,
        k: KeyBlock,
        pair: Tile | None = None,
    ) -> WeightedMeanState:
        """Add a tile's weights and weighted values."""
        xp = array_namespace(log_w)
        shift, scale, w = weights_and_shift(state.shift, log_w)
        mass = scale * state.mass + xp.sum(w, axis=1)
        return WeightedMeanState(shift, mass, scale[:, None] * state.moment + w @ k.values)

    def merge(self, a: WeightedMeanState, b: WeightedMeanState) -> WeightedMeanState:
        """Bring both to the larger shift and add."""
        shift, ca, cb = merge_shifts(a.shift, b.shift)
        moment = ca[:, None] * a.moment + cb[:, None] * b.moment
        return WeightedMeanState(shift, ca * a.mass + cb * b.mass, moment)

    def finalize(self, state: WeightedMeanState, empty: float) -> tuple[Array]:
        """Moment over mass."""
        xp = array_namespace(state.mass)
        mass = xp.where(state.mass > 0, state.mass, xp.ones((), dtype=state.mass.dtype))
        return (fill_empty(state.moment / mass[:, None], state.mass, empty),)

    def no_neighbour(self, state: WeightedMeanState) -> Array:
        """Where the mass is 0."""
        empty: Array = state.mass == 0
        return empty
