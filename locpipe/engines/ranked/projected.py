"""The engine ``pruned`` of wide rankings: a few leading directions rule out most keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_ids
from locpipe.engines.base import Need
from locpipe.engines.ranked.measured import is_graded, present
from locpipe.engines.ranked.score import no_ranking, ranking_of
from locpipe.engines.ranked.shelf import Shelf
from locpipe.engines.ranked.sieve_sizes import SAMPLE, TILE_BYTES, TILE_KEYS, TILE_QUERIES
from locpipe.reductions.base import State
from locpipe.reductions.top_k import TopK

__all__ = ["RankedProjected"]

_LEAST_FEATURES, _LEAST_KEYS, _MOST_NEIGHBOURS = 256, 10_000, 64
_NO_IDS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class RankedProjected:
    """The k nearest keys of wide rows, equal to the reference to the bit.

    Distances along the leading principal directions of the keys, and between the lengths of what
    is left, bound distances from below; keys that these do not rule out are measured in float64.
    Rows for which they rule out too few (data without leading directions) are left to pairs.

    Parameters
    ----------
    k : int
    exclude_self : bool
    """

    k: int
    exclude_self: bool = False
    name: ClassVar[str] = "pruned"
    query_rows: ClassVar[int] = 2**14

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """What is no ranking of wide rows by the Euclidean distance."""
        if reason := no_ranking(need):
            return reason
        score, reduction = ranking_of(need)
        if score.metric != "euclidean":
            return f"ranks wide rows by the metric euclidean, got {score.metric}"
        if reduction.k > _MOST_NEIGHBOURS:
            return f"finds up to {_MOST_NEIGHBOURS} neighbours in wide rows, got k={reduction.k}"
        if need.n_features < _LEAST_FEATURES or need.n_keys < _LEAST_KEYS:
            return (
                f"serves {_LEAST_KEYS:,} keys of {_LEAST_FEATURES} features or more, "
                f"got {need.n_keys:,} of {need.n_features}"
            )
        return None

    @classmethod
    def seconds(cls, need: Need) -> float:
        """Time where leading directions hold most of the variance, which metadata cannot tell.

        Where they do not, a look at a sample of the keys finds out, and pairs do the work: it
        counts ten times, so that it is a small part of any work that is given here.
        """
        n, d = need.n_keys * need.n_blocks + need.n_queries, need.n_features
        return float(1e-9 * (4.0 * need.n_pairs + 14.0 * n * d) + 10 * 1.4e-4 * d)

    @classmethod
    def build(cls, need: Need) -> Self:
        """The engine of a ranking."""
        score, reduction = ranking_of(need)
        return cls(reduction.k, score.exclude_self)

    def tile_bytes(self, need: Need) -> int:
        """Scores of a tile, and its rows as they come, moved and projected."""
        return TILE_BYTES + (TILE_KEYS + TILE_QUERIES) * (20 * need.n_features + 6000)

    def summary_bytes(self, need: Need) -> int:
        """Rows as they came and in order, projected ones, and the sample looked at."""
        row = (8 if need.single else 16) * need.n_features + 1400
        return need.n_keys * row + 2 * SAMPLE * (32 * need.n_features + 3000)

    def summarise(self, k: KeyBlock) -> Shelf:
        """The keys of a block."""
        columns, data, ids = present(k), _floats(k.data), _NO_IDS
        if self.exclude_self:
            ids = np.asarray(row_ids(k))[columns]
        if len(columns) < k.n_rows:
            data = data[columns]
        return Shelf((data,), (k.start + columns,), (ids,), is_graded(k) or not _whole(ids))

    def merge(self, a: Shelf, b: Shelf) -> Shelf:
        """The keys of both."""
        return a.merge(b)

    def evaluate(self, summary: Shelf, q: QueryBlock) -> tuple[State, Array]:
        """The k nearest of each query, and which are left to pairs."""
        state, doubtful = TopK(self.k).init(q), np.ones(q.n_rows, dtype=np.bool_)
        ids = np.asarray(row_ids(q)) if self.exclude_self else _NO_IDS
        if summary.left or not _whole(ids) or q.n_rows == 0 or summary.n_keys == 0:
            return state, doubtful
        from locpipe.engines.ranked.sifted import Sifted

        sifted = summary.made(partial(Sifted.of, k=self.k))
        if sifted is not None:
            doubtful = sifted.nearest(_floats(q.data), ids, state)
        return state, doubtful


def _floats(x: np.ndarray) -> np.ndarray:
    """Rows in float32 or float64."""
    return np.asarray(x, dtype=np.float32 if x.dtype == np.float32 else np.float64)


def _whole(ids: np.ndarray) -> bool:
    return bool(np.can_cast(ids.dtype, np.int64))
