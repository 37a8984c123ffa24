"""The engine ``fused`` of rankings: float32 proposes, float64 decides."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from locpipe.blocks import (
    UNKNOWN_START,
    KeyBlock,
    PairSource,
    QueryBlock,
    row_ids,
    row_times,
)
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.ranked.measured import is_graded, present
from locpipe.engines.ranked.score import Score, allowed_pairs, score_of
from locpipe.engines.ranked.tile_sizes import tile_keys, tile_queries
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.top_k import TopK, TopKState

__all__ = ["Ranked"]

_METRICS = ("euclidean", "cosine", "manhattan", "nan-euclidean")
_BY_PRODUCT = ("euclidean", "cosine")
_NARROW = 8
"""Features up to which differences cost no more than a product."""


@dataclass(frozen=True)
class Ranked:
    """The k nearest keys by compiled loops, equal to the reference to the bit.

    A product in float32 gives every pair a score with a proven error bound; the few that may be
    among the best are measured by differences in float64.  Where the bound leaves too many in
    doubt (far clusters, ties by the thousand), the product is in float64, and then differences.
    """

    name: ClassVar[str] = "fused"

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """What is no ranking by one of the metrics."""
        if need.library != "numpy":
            return f"takes NumPy arrays, got {need.library}"
        if type(need.reduction) is not TopK:
            return f"ranks by TopK, got {type(need.reduction).__name__}"
        score = score_of(need.kernel)
        if score is None or need.has_pairs:
            return "ranks by one distance, with masks"
        if score.metric not in _METRICS:
            return f"ranks by one of {', '.join(_METRICS)}, got {score.metric}"
        return None

    @classmethod
    def seconds(cls, need: Need) -> float:
        """About the time of the product, or of the differences."""
        score = score_of(need.kernel)
        by_product = score is not None and _by_product(score.metric, need.n_features)
        ns, feature_ns = (0.5, 0.016) if by_product else (1.0, 0.12)
        return 1e-9 * need.n_pairs * (ns + feature_ns * need.n_features)

    @classmethod
    def build(cls, need: Need) -> Self:
        """The one there is."""
        return cls()

    def tile_bytes(self, need: Need) -> int:
        """Scores of a tile, and its rows in two forms."""
        n_keys = tile_keys(need.n_features)
        n_queries = tile_queries(need.n_features, n_keys)
        return 8 * (2 * n_keys * n_queries + 3 * (n_keys + n_queries) * (need.n_features + 2))

    def fold(
        self,
        reduction: Reduction,
        state: Any,
        q: QueryBlock,
        k: KeyBlock,
        kernel: Kernel | None = None,
        pairs: PairSource | None = None,
    ) -> State:
        """`state` with the keys of a block folded in."""
        score = score_of(kernel)
        if score is None or is_graded(k):
            return dense.fold(reduction, state, q, k, kernel, pairs)
        columns = present(k)
        k, index = _taken(k, columns), k.start + columns
        if q.n_rows == 0 or k.n_rows == 0:
            return TopKState(*state)
        return _fold(score, state, q, k, index)


def _fold(score: Score, state: Any, q: QueryBlock, k: KeyBlock, index: np.ndarray) -> TopKState:
    from locpipe.engines.ranked.best import Best
    from locpipe.engines.ranked.scorers import EXACT, SINGLE
    from locpipe.engines.ranked.sides import sides_of
    from locpipe.engines.ranked.tiles import fold_sides

    best = Best(state.score.copy(), state.index.copy())
    queries, keys = sides_of(score, q, k, index)
    by_ids = queries.ids.shape[0] > 0

    def allowed(rows: slice, columns: slice) -> np.ndarray | None:
        return allowed_pairs(score, by_ids, q.rows(rows), k.rows(columns))

    level = SINGLE if _by_product(score.metric, int(q.data.shape[1])) else EXACT
    fold_sides(score.metric, level, queries, keys, best, allowed)
    return TopKState(*best)


def _by_product(metric: str, n_features: int) -> bool:
    return metric in _BY_PRODUCT and n_features > _NARROW


def _taken(k: KeyBlock, rows: np.ndarray) -> KeyBlock:
    """Some keys of a block, with the ids and times that they had."""
    if rows.size == k.n_rows:
        return k
    given = {f.name: getattr(k, f.name) for f in fields(k) if f.name != "start"}
    if k.start != UNKNOWN_START:
        given |= {"ids": row_ids(k), "time": row_times(k)}
    cut = {name: None if array is None else array[rows] for name, array in given.items()}
    return KeyBlock(start=UNKNOWN_START, **cut)
