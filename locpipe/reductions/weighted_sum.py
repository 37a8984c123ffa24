"""The weighted sum: gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.reductions.base import (
    Reduction,
    check_outputs,
    check_whole,
    full,
    merge_shifts,
    weights_and_shift,
)

__all__ = ["WeightedSum", "WeightedSumState"]


class WeightedSumState(NamedTuple):
    """Sum of weight times value at ``exp(shift)``: (n,) and (n, n_outputs)."""

    shift: Array
    total: Array


@dataclass(frozen=True)
class WeightedSum(Reduction):
    """``sum_i w_i v_i`` per query; finalizes to ``(sum,)`` of shape (n_queries, n_outputs).

    The empty sum is 0.  The shift is carried so that log weights near +-700 neither overflow
    on the way nor lose what is small.
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

    def init(self, q: QueryBlock) -> WeightedSumState:
        """The empty sum."""
        return WeightedSumState(full(q, (), float("-inf")), full(q, (self.n_outputs,), 0.0))

    def update(
        self,
        state: WeightedSumState,
        log_w: Array | None,
        q: QueryBlock,
        k: KeyBlock,
        pair: Tile | None = None,
    ) -> WeightedSumState:
        """Add a tile's weighted values."""
        shift, scale, w = weights_and_shift(state.shift, log_w)
        return WeightedSumState(shift, scale[:, None] * state.total + w @ k.values)

    def merge(self, a: WeightedSumState, b: WeightedSumState) -> WeightedSumState:
        """Bring both to the larger shift and add."""
        shift, ca, cb = merge_shifts(a.shift, b.shift)
        return WeightedSumState(shift, ca[:, None] * a.total + cb[:, None] * b.total)

    def finalize(self, state: WeightedSumState, empty: float) -> tuple[Array]:
        """The sum at its true scale."""
        xp = array_namespace(state.total)
        size = xp.abs(state.total)
        some = size > 0
        # One exponential: exp(shift) alone may overflow where the sum does not.
        log_size = state.shift[:, None] + xp.log(xp.where(some, size, xp.ones_like(size)))
        log_size = xp.where(some, log_size, xp.zeros_like(size))
        return (xp.sign(state.total) * xp.exp(log_size),)
