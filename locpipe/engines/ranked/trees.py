"""The engine ``pruned`` of rankings: k-d trees propose, float64 differences decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_ids, row_slices
from locpipe.engines.base import Need
from locpipe.engines.ranked.forest import Forest, Tree, merge, query
from locpipe.engines.ranked.measured import best_of, is_graded, present, surrogates
from locpipe.engines.ranked.score import no_ranking, ranking_of
from locpipe.reductions.base import State
from locpipe.reductions.top_k import TopK, TopKState

__all__ = ["RankedTrees"]

_POWERS = {"euclidean": 2.0, "manhattan": 1.0}
_MOST_FEATURES = 12
_ROUNDS = 3
"""Times that a query in doubt asks for twice as many neighbours before pairs must decide."""
_MARGIN = 2


@dataclass(frozen=True)
class RankedTrees:
    """The k nearest keys from k-d trees, equal to the reference to the bit.

    A tree gives a few neighbours too many; differences in float64 order them.  Where the next key
    that it did not give might tie with the k-th, it is asked for more, and then pairs decide.

    Parameters
    ----------
    metric : {"euclidean", "manhattan"}
    k : int
    exclude_self : bool
    """

    metric: str
    k: int
    exclude_self: bool = False
    name: ClassVar[str] = "pruned"
    query_rows: ClassVar[int] = 2**14

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """What is no ranking by a distance that boxes bound."""
        if reason := no_ranking(need):
            return reason
        score, _ = ranking_of(need)
        if score.metric not in _POWERS:
            return f"ranks by one of {', '.join(_POWERS)}, got {score.metric}"
        if need.n_features > _MOST_FEATURES:
            return f"serves up to {_MOST_FEATURES} features, got {need.n_features}"
        return None

    @classmethod
    def seconds(cls, need: Need) -> float:
        """Time of building, and of visits that grow with the features and slowly with the keys."""
        d, k = need.n_features, getattr(need.reduction, "k", 1) + _MARGIN
        visit = 0.8 * 1.8**d * k**0.45 * (need.n_keys / 1e6) ** 0.35
        measure = k * (0.1 + 0.02 * d)
        build = need.n_keys * (0.15 + 0.04 * d)
        return float(1e-6 * (need.n_queries * (1.0 + visit + measure) + build))

    @classmethod
    def build(cls, need: Need) -> Self:
        """The engine of a ranking."""
        score, reduction = ranking_of(need)
        return cls(score.metric, reduction.k, score.exclude_self)

    def tile_bytes(self, need: Need) -> int:
        """Neighbours of the queries that ask at a time, in twice the number wanted."""
        return 8 * self._step() * 2 * (self.k + _MARGIN) * (3 * need.n_features + 8)

    def summary_bytes(self, need: Need) -> int:
        """Those of the trees: rows in float64, indices, nodes; two copies while one is made."""
        return need.n_keys * (16 * need.n_features + 48)

    def _step(self) -> int:
        return max(64, 2**18 // (self.k + _MARGIN))

    def summarise(self, k: KeyBlock) -> Forest:
        """A tree of the keys of a block."""
        columns = present(k)
        if columns.size == 0:
            return Forest((), is_graded(k))
        index = k.start + columns
        ids = row_ids(k)[columns] if self.exclude_self else index
        tree = Tree.of(k.data[columns].astype(np.float64), index, ids)
        return Forest((tree,), is_graded(k))

    def merge(self, a: Forest, b: Forest) -> Forest:
        """The trees of both; small ones become one."""
        return merge(a, b)

    def evaluate(self, summary: Forest, q: QueryBlock) -> tuple[State, Array]:
        """The k nearest of each query, and which may tie with keys that no tree gave."""
        state = TopK(self.k).init(q)
        doubtful = np.full(q.n_rows, summary.graded)
        for rows in row_slices(0 if summary.graded else q.n_rows, self._step()):
            some, doubtful[rows] = self._ask(summary, q.rows(rows))
            state.score[rows], state.index[rows] = some
        return state, doubtful

    def _ask(self, forest: Forest, q: QueryBlock) -> tuple[TopKState, np.ndarray]:
        x = np.asarray(q.data, dtype=np.float64)
        ids = np.asarray(row_ids(q)) if self.exclude_self else None
        state = TopK(self.k).init(q)
        left, wanted = np.arange(q.n_rows), self.k + _MARGIN
        for _ in range(_ROUNDS):
            some = None if ids is None else ids[left]
            found, certain = self._nearest(forest, x[left], some, wanted)
            state.score[left], state.index[left] = found
            left, wanted = left[~certain], 2 * wanted
            if left.size == 0:
                break
        doubtful = np.zeros(q.n_rows, dtype=np.bool_)
        doubtful[left] = True
        return state, doubtful

    def _nearest(
        self, forest: Forest, x: np.ndarray, ids: np.ndarray | None, wanted: int
    ) -> tuple[TopKState, np.ndarray]:
        """The best of what all trees give, and for which rows no other key can be as near."""
        state = best_of(np.zeros((len(x), 0)), np.zeros((len(x), 0), dtype=np.int64), self.k)
        beyond = np.full(len(x), np.inf)
        for tree in forest.trees:
            column, bound = query(tree, x, wanted, _POWERS[self.metric])
            surrogate = surrogates(self.metric, x, tree.data[column])
            if ids is not None:
                surrogate[tree.ids[column] == ids[:, None]] = np.inf
            state = TopK(self.k).merge(state, best_of(surrogate, tree.index[column], self.k))
            beyond = np.minimum(beyond, bound)
        return state, (-state.score[:, -1] < beyond) | (beyond == np.inf)
