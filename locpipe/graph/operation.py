"""What every task of a graph does with its blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from locpipe.blocks import Array, KeyBlock, PairSource, QueryBlock
from locpipe.engines import dense, single_threaded_libraries
from locpipe.graph.sources import KEY_BLOCK_ROWS, KeySource
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction, State

__all__ = ["Operation"]


@dataclass(frozen=True, eq=False)
class Operation:
    """What every task of a graph is told; small, picklable."""

    reduction: Reduction
    kernel: Kernel | None = None
    pairs: PairSource | None = None
    empty: float = float("nan")

    def fold(self, q: QueryBlock, keys: Iterable[KeyBlock]) -> State:
        """State of a query block over key blocks read one at a time."""
        with single_threaded_libraries():
            return reduce(partial(self._step, q), keys, self.reduction.init(q))

    def stream(self, q: QueryBlock, keys: KeySource | KeyBlock) -> tuple[Array, ...]:
        """Results of a query block over all keys: the task of the strategy ``stream``."""
        blocks = [keys] if isinstance(keys, KeyBlock) else keys.iter_blocks(KEY_BLOCK_ROWS)
        return self.finish(self.fold(q, blocks))

    def span(self, q: QueryBlock, k: KeyBlock) -> State:
        """State of a query block over one key block: a leaf of the strategy ``tree``."""
        return self.fold(q, [k])

    def merge(self, states: Sequence[State]) -> State:
        """State of the keys of all."""
        return reduce(self.reduction.merge, states)

    def finish(self, state: State) -> tuple[Array, ...]:
        """Results of a query block."""
        return self.reduction.finalize(state, self.empty)

    def _step(self, q: QueryBlock, state: State, k: KeyBlock) -> State:
        return dense.fold(self.reduction, state, q, k, self.kernel, self.pairs)

    def meta(self, q: QueryBlock) -> tuple[Array, ...]:
        """Results of no rows: their dtypes and trailing shapes, without computing anything."""
        return self.finish(self.reduction.init(q.rows(slice(0, 0))))
