"""What every task of a graph does with its blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Literal

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, PairSource, QueryBlock, row_slices
from locpipe.engines import single_threaded_libraries
from locpipe.engines.base import PairEngine, SummaryEngine
from locpipe.engines.dense import Dense
from locpipe.engines.mutual import Rows, fold_mutual
from locpipe.errors import InputError
from locpipe.graph.sources import KEY_BLOCK_ROWS, KeySource
from locpipe.kernels.base import Kernel
from locpipe.kernels.closest import Closest
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.top_k import TopK, TopKState

__all__ = ["Empty", "Operation", "put_rows"]

Empty = float | Literal["nearest"]
"""Result of a query with no neighbour: a number, or what its nearest key gives."""

AnyKeys = KeySource | KeyBlock
_DENSE = Dense()


@dataclass(frozen=True, eq=False)
class Operation:
    """What every task of a graph is told; small, picklable.

    Attributes
    ----------
    reduction : Reduction
    kernel : Kernel, optional
    pairs : PairSource, optional
    empty : float or "nearest"
    key_rows : int
        Keys that a task reads and widens at a time.
    weights_as_mask : bool
        Sample weights only say which keys are there: so that a ranking is by nearness alone.
    pairwise : PairEngine
        Goes through the pairs.
    engine : SummaryEngine, optional
        Answers from a summary of the keys, and leaves rows in doubt to `pairwise`.
    ranker : PairEngine
        Answers the first pass of a kernel that ranks.
    """

    reduction: Reduction
    kernel: Kernel | None = None
    pairs: PairSource | None = None
    empty: Empty = float("nan")
    key_rows: int = KEY_BLOCK_ROWS
    weights_as_mask: bool = False
    pairwise: PairEngine = _DENSE
    engine: SummaryEngine | None = None
    ranker: PairEngine = _DENSE

    def pair_sources(self) -> tuple[PairSource, ...]:
        """All data per pair that is read."""
        of_kernel = () if self.kernel is None else self.kernel.pair_sources()
        return of_kernel if self.pairs is None else (*of_kernel, self.pairs)

    def some(self, q: QueryBlock, chosen: Array) -> QueryBlock:
        """The rows to go through again for the sake of those that the mask `chosen` marks.

        Rows and columns of pairs go by place, so with pairs it is the whole block.
        """
        return q if self.pair_sources() else q.chosen(chosen)

    def first_pass(self) -> Operation | None:
        """The pass that finds what the kernel must know of all keys, if it needs one."""
        ranking = None if self.kernel is None else self.kernel.ranking()
        if ranking is None:
            return None
        ranks = TopK(ranking.k)
        return Operation(
            ranks,
            ranking.score,
            key_rows=self.key_rows,
            weights_as_mask=True,
            pairwise=self.ranker,
        )

    def fallback(self) -> Operation | None:
        """What gives queries with no neighbour their result, under ``empty="nearest"``."""
        if self.empty != "nearest" or self.kernel is None:
            return None
        score = self.kernel.nearness()
        if score is None:
            raise InputError(
                f"empty='nearest' needs a kernel of a distance, got {type(self.kernel).__name__}; "
                "use empty='nan' or 'zero'"
            )
        return replace(
            self, kernel=Closest(score), empty=float("nan"), pairwise=_DENSE, engine=None
        )

    def fold(self, q: QueryBlock, keys: Iterable[KeyBlock], state: State | None = None) -> State:
        """State of a query block over key blocks read one at a time."""
        state = self.reduction.init(q) if state is None else state
        with single_threaded_libraries():
            return reduce(partial(self._step, q), keys, state)

    def stream(self, q: QueryBlock, keys: AnyKeys, summary: Any = None) -> tuple[Array, ...]:
        """Results of a query block over all keys, which are at hand, as is their summary."""
        first = self.first_pass()
        if first is not None:
            q = with_ranks(q, first.span(q, keys))
        state = self.span(q, keys) if self.engine is None else self.consult(summary, q, keys)
        return self.complete(q, state, keys)

    def span(self, q: QueryBlock, keys: AnyKeys, start: int = 0, stop: int | None = None) -> State:
        """State of a query block over a span of keys: a leaf of the strategy ``tree``."""
        if q.n_rows == 0:  # nobody asks, so no key is read
            return self.reduction.init(q)
        return self.fold(q, _blocks(keys, self.key_rows, start, stop))

    def mutual(
        self,
        q_a: QueryBlock,
        k_a: KeyBlock,
        q_b: QueryBlock,
        k_b: KeyBlock,
        states: tuple[State, State] | None = None,
    ) -> tuple[State, State]:
        """States of two blocks of the same rows over each other's keys, each pair weighed once."""
        kernel = self._weighing()
        if kernel is None:
            raise InputError("rows meet each other under a kernel, got None")
        states = (self.reduction.init(q_a), self.reduction.init(q_b)) if states is None else states
        k_a, k_b = self._weighed(k_a), self._weighed(k_b)
        a, b = Rows(q_a, k_a), Rows(q_b, k_b)
        with single_threaded_libraries():
            return fold_mutual(self.reduction, states, a, b, kernel)

    def summary(self, keys: AnyKeys, start: int = 0, stop: int | None = None) -> Any:
        """Summary of a span of keys, a leaf of the strategy ``summary``; None of no keys."""
        blocks = _blocks(keys, self.key_rows, start, stop)
        with single_threaded_libraries():
            return self.merge_summaries(
                [self._engine().summarise(self._weighed(k)) for k in blocks]
            )

    def merge_summaries(self, summaries: Sequence[Any]) -> Any:
        """Summary of the keys of all; None of no keys."""
        some = [summary for summary in summaries if summary is not None]
        return reduce(self._engine().merge, some) if some else None

    def ask(self, summary: Any, q: QueryBlock) -> tuple[State, Array]:
        """State of each query from the summary, and a mask of those to repair pair by pair."""
        with single_threaded_libraries():
            return self._engine().evaluate(summary, q)

    def consult(self, summary: Any, q: QueryBlock, keys: AnyKeys) -> State:
        """State of a query block from the summary, repaired where it needs it."""
        state, doubtful = self.ask(summary, q)
        if not bool(array_namespace(doubtful).any(doubtful)):
            return state
        repaired: State = put_rows(state, doubtful, self.span(self.some(q, doubtful), keys))
        return repaired

    def _engine(self) -> SummaryEngine:
        if self.engine is None:
            raise InputError("a summary is made by an engine that summarises, got None")
        return self.engine

    def merge(self, states: Sequence[State]) -> State:
        """State of the keys of all."""
        return reduce(self.reduction.merge, states)

    def complete(self, q: QueryBlock, state: State, keys: AnyKeys) -> tuple[Array, ...]:
        """Results of a query block whose state has seen all keys, which are at hand."""
        results, fallback = self.finish(state), self.fallback()
        if fallback is None:
            return results
        lonely = self.reduction.no_neighbour(state)
        if not bool(array_namespace(lonely).any(lonely)):
            return results
        filled: tuple[Array, ...] = put_rows(
            results, lonely, fallback.stream(self.some(q, lonely), keys)
        )
        return filled

    def finish(self, state: State) -> tuple[Array, ...]:
        """Results of a query block."""
        empty = float("nan") if self.empty == "nearest" else self.empty
        return self.reduction.finalize(state, empty)

    def meta(self, q: QueryBlock) -> tuple[Array, ...]:
        """Results of no rows: their dtypes and trailing shapes, without computing anything."""
        return self.finish(self.reduction.init(q.rows(slice(0, 0))))

    def _step(self, q: QueryBlock, state: State, k: KeyBlock) -> State:
        k = self._weighed(k)
        return self.pairwise.fold(self.reduction, state, q, k, self._weighing(), self.pairs)

    def _weighed(self, k: KeyBlock) -> KeyBlock:
        """The block as its weights count."""
        return _present(k) if self.weights_as_mask else k

    def _weighing(self) -> Kernel | None:
        """The kernel, exact where keys are ranked."""
        kernel = self.kernel
        return kernel.exact() if kernel is not None and self.reduction.ranks else kernel


def with_ranks(q: QueryBlock, state: Any) -> QueryBlock:
    """`q` with what its first pass found; with fewer than k keys, the last one found."""
    found: TopKState = state
    xp = array_namespace(found.score)
    inf = xp.asarray(xp.inf, dtype=found.score.dtype)
    last = xp.min(xp.where(found.score > -xp.inf, found.score, inf), axis=1)
    kth_score = xp.where(last < xp.inf, last, -inf)
    return replace(
        q, best_score=found.score[:, 0], kth_score=kth_score, kth_index=found.index[:, -1]
    )


def put_rows(whole: Any, chosen: Array, part: Any) -> Any:
    """Tuples of arrays: `whole` with `part` at the rows that the mask `chosen` marks.

    `part` holds these rows alone, or all rows.
    """
    xp = array_namespace(chosen)
    arrays = []
    for array, new in zip(whole, part, strict=True):
        copy = xp.asarray(array, copy=True)
        copy[chosen] = new[chosen] if new.shape[0] == array.shape[0] else new
        arrays.append(copy)
    return type(whole)(*arrays) if hasattr(whole, "_fields") else tuple(arrays)


def _present(k: KeyBlock) -> KeyBlock:
    """The block with weights that only say which keys are there."""
    if k.log_sample_weight is None:
        return k
    xp = array_namespace(k.log_sample_weight)
    there = k.log_sample_weight > -xp.inf
    zero = xp.zeros((), dtype=k.log_sample_weight.dtype)
    return replace(k, log_sample_weight=xp.where(there, zero, k.log_sample_weight))


def _blocks(keys: AnyKeys, rows: int, start: int, stop: int | None) -> Iterator[KeyBlock]:
    if not isinstance(keys, KeyBlock):
        return keys.iter_blocks(rows, start, stop)
    stop = keys.n_rows if stop is None else stop
    return (keys.rows(part) for part in row_slices(stop, rows, start))
