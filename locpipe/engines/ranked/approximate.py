"""The engine ``approximate``: most of the nearest keys, at a measured recall."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import ClassVar, Self

import numpy as np

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_ids, row_slices
from locpipe.engines.base import Need
from locpipe.engines.ranked.lists import searched
from locpipe.engines.ranked.measured import best_of, is_graded, present, surrogates
from locpipe.engines.ranked.score import no_ranking, ranking_of
from locpipe.engines.ranked.shelf import Shelf
from locpipe.reductions.base import State
from locpipe.reductions.top_k import TopK, TopKState

__all__ = ["Approximate"]

_METRICS = ("euclidean", "cosine")


@dataclass(frozen=True)
class Approximate:
    """Most of the k nearest keys: only the lists around the nearest centres are looked through.

    As many lists as find the target share of the true neighbours of a sample of the keys; the
    share reached is logged by ``logging.getLogger("locpipe")`` at level INFO.  Distances of what
    is found are those of the exact engines.  Queries unlike the keys may fare worse: compare with
    an exact engine by `locpipe.engines.ranked.recall`.

    Parameters
    ----------
    metric : {"euclidean", "cosine"}
    k : int
    exclude_self : bool
    target : float
        Share of the true neighbours to find.
    """

    metric: str
    k: int
    exclude_self: bool = False
    target: float = 0.95
    name: ClassVar[str] = "approximate"
    query_rows: ClassVar[int] = 2**14

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """What is no ranking by one of the metrics, and where faiss is not installed."""
        if find_spec("faiss") is None:
            return "needs faiss: pip install 'locpipe[approximate]'"
        if reason := no_ranking(need):
            return reason
        score, _ = ranking_of(need)
        if score.metric not in _METRICS:
            return f"ranks by one of {', '.join(_METRICS)}, got {score.metric}"
        return None

    @classmethod
    def seconds(cls, need: Need) -> float:
        """Placing the centres, finding the nearest of them, and a fiftieth of the pairs."""
        n, d = need.n_keys, need.n_features
        n_lists = 4 * n**0.5
        placing = 10 * min(n, 256 * n_lists) * n_lists * d
        finding = (n + need.n_queries) * n_lists * d
        return float(2e-11 * (placing + finding + 0.1 * need.n_pairs * d))

    @classmethod
    def build(cls, need: Need) -> Self:
        """The engine of a ranking."""
        score, reduction = ranking_of(need)
        return cls(score.metric, reduction.k, score.exclude_self)

    def tile_bytes(self, need: Need) -> int:
        """Neighbours of the queries that ask at a time."""
        return 8 * self._step(need.n_features) * (self.k + 1) * (need.n_features + 8)

    def summary_bytes(self, need: Need) -> int:
        """Rows in float64, twice while they are put together, and in float32, twice as well."""
        return need.n_keys * (24 * need.n_features + 48)

    def _step(self, n_features: int) -> int:
        return max(16, 2**22 // ((self.k + 1) * max(1, n_features)))

    def summarise(self, k: KeyBlock) -> Shelf:
        """The keys of a block."""
        columns = present(k)
        index = k.start + columns
        ids = np.asarray(row_ids(k))[columns] if self.exclude_self else index
        return Shelf((self._rows(k.data[columns]),), (index,), (ids,), is_graded(k))

    def merge(self, a: Shelf, b: Shelf) -> Shelf:
        """The keys of both."""
        return a.merge(b)

    def evaluate(self, summary: Shelf, q: QueryBlock) -> tuple[State, Array]:
        """Near keys of each query, and which have found fewer than there are."""
        state, doubtful = TopK(self.k).init(q), np.ones(q.n_rows, dtype=np.bool_)
        if summary.left or q.n_rows == 0 or summary.n_keys == 0:
            return state, doubtful & summary.left
        for rows in row_slices(q.n_rows, self._step(q.data.shape[1])):
            some = self._near(summary, q.rows(rows))
            state.score[rows], state.index[rows] = some
            doubtful[rows] = np.isneginf(some.score[:, -1])
        return state, doubtful

    def _near(self, summary: Shelf, q: QueryBlock) -> TopKState:
        lists, data, index, ids = summary.made(partial(searched, k=self.k, target=self.target))
        x = self._rows(q.data)
        column = lists.near(x, min(self.k + self.exclude_self, len(data)))
        surrogate = surrogates(self.metric, x, data[column])
        if self.metric == "cosine":
            none = (x == 0).all(axis=1)[:, None] | (data == 0).all(axis=1)[column]
            surrogate[none] = 1.0
        surrogate[column < 0] = np.inf
        if self.exclude_self:
            surrogate[ids[column] == np.asarray(row_ids(q))[:, None]] = np.inf
        return best_of(surrogate, index[column], self.k)

    def _rows(self, x: np.ndarray) -> np.ndarray:
        """Rows as distances are formed from them; those without a direction stay zeros."""
        if self.metric != "cosine":
            return np.asarray(x, dtype=np.float64)
        from locpipe.engines.ranked.sides import directions

        unit, _ = directions(x)
        return unit
