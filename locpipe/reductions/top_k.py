"""The k largest log weights, ties to the lowest key index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_numpy_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.reductions.base import NO_KEY, Reduction, check_whole, full

__all__ = ["TopK", "TopKState", "best_columns", "best_order"]


class TopKState(NamedTuple):
    """Scores (n, k), best first, and the global key indices (n, k) int64."""

    score: Array
    index: Array


@dataclass(frozen=True)
class TopK(Reduction):
    """The `k` keys of largest log weight per query.

    Finalizes to ``(score, index)``, each (n_queries, k), best first; equal scores stand by
    ascending key index whatever the chunking.  Places without a key hold ``-inf`` and -1.
    """

    k: int
    ranks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_whole(self, "k", 1)

    @property
    def tile_arrays(self) -> int:
        """The rows that may improve, and what a partition needs."""
        return 4

    def init(self, q: QueryBlock) -> TopKState:
        """No key yet."""
        xp = array_namespace(q.data)
        index = xp.full((q.n_rows, self.k), NO_KEY, dtype=xp.int64)
        return TopKState(full(q, (self.k,), float("-inf")), index)

    def update(
        self,
        state: TopKState,
        log_w: Any,
        q: QueryBlock,
        k: KeyBlock,
        pair: Tile | None = None,
    ) -> TopKState:
        """Keep the best of the old and the tile's."""
        xp = array_namespace(log_w)
        # After the first tiles few rows find anything better: the others cost one maximum.
        hopeful = xp.max(log_w, axis=1) >= state.score[:, -1]
        if bool(xp.all(hopeful)):
            return self._with_tile(state, log_w, k)
        if not bool(xp.any(hopeful)):
            return state
        some = TopKState(state.score[hopeful], state.index[hopeful])
        better = self._with_tile(some, log_w[hopeful], k)
        score, index = xp.asarray(state.score, copy=True), xp.asarray(state.index, copy=True)
        score[hopeful], index[hopeful] = better
        return TopKState(score, index)

    def _with_tile(self, state: TopKState, log_w: Any, k: KeyBlock) -> TopKState:
        xp = array_namespace(log_w)
        column = best_columns(log_w, min(self.k, k.n_rows))
        score = xp.take_along_axis(log_w, column, axis=1)
        empty = xp.asarray(NO_KEY, dtype=xp.int64)
        index = xp.where(score > -xp.inf, xp.astype(column, xp.int64) + k.start, empty)
        return self.merge(state, TopKState(score, index))

    def merge(self, a: TopKState, b: TopKState) -> TopKState:
        """Best k of both by (score descending, index ascending)."""
        xp = array_namespace(a.score)
        score = xp.concat((a.score, b.score), axis=1)
        index = xp.concat((a.index, b.index), axis=1)
        order = best_order(score, index, self.k)
        return TopKState(
            xp.take_along_axis(score, order, axis=1), xp.take_along_axis(index, order, axis=1)
        )

    def finalize(self, state: TopKState, empty: float) -> tuple[Array, Array]:
        """Scores and indices; an empty place has index -1."""
        xp = array_namespace(state.index)
        missing = state.index == NO_KEY
        return state.score, xp.where(missing, xp.asarray(-1, dtype=xp.int64), state.index)


def best_order(score: Array, index: Array, k: int) -> Array:
    """Places of the best k of each row by (score descending, index ascending)."""
    xp = array_namespace(score)
    # Two stable sorts make the lexicographic order: the last key sorted is the first key.
    order = xp.argsort(index, axis=1, stable=True)
    by_score = xp.argsort(-xp.take_along_axis(score, order, axis=1), axis=1, stable=True)
    return xp.take_along_axis(order, by_score[:, :k], axis=1)


def best_columns(log_w: Array, k: int) -> Array:
    """Columns of the k largest entries of each row, ties to the left, in any order."""
    numpy = is_numpy_namespace(array_namespace(log_w))
    return (_best_columns if numpy else _best_columns_by_sort)(log_w, k)


def _best_columns_by_sort(log_w: Array, k: int) -> Array:
    """Columns of the k largest entries of each row, ties to the left: the reference."""
    xp = array_namespace(log_w)
    return xp.argsort(-log_w, axis=1, stable=True)[:, :k]


def _best_columns(log_w: np.ndarray, k: int) -> np.ndarray:
    """The same set in column order, by a partition instead of a sort."""
    n_queries, n_keys = log_w.shape
    if k == n_keys:
        return np.broadcast_to(np.arange(n_keys), log_w.shape)
    kth = -np.partition(-log_w, k - 1, axis=1)[:, k - 1 : k]
    above, ties = log_w > kth, log_w == kth
    places = k - np.count_nonzero(above, axis=1, keepdims=True)
    keep = above | (ties & (np.cumsum(ties, axis=1) <= places))
    return np.nonzero(keep)[1].reshape(n_queries, k)
