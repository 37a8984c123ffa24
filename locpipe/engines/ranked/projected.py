"""The engine ``pruned`` of wide rankings: a few leading directions rule out most keys."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_ids, row_slices
from locpipe.engines.base import Need
from locpipe.engines.ranked.measured import is_graded, present
from locpipe.engines.ranked.score import score_of
from locpipe.reductions.base import State
from locpipe.reductions.top_k import TopK, TopKState

__all__ = ["RankedProjected"]

_LEAST_FEATURES, _LEAST_KEYS, _MOST_NEIGHBOURS = 256, 10_000, 64
_NO_IDS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Shelf:
    """Keys as they came; they are projected when the first query asks.

    Attributes
    ----------
    data : tuple of float arrays (n_i, n_features)
    index, ids : tuples of int64 arrays (n_i,)
        `ids` of no rows where pairs of equal ids are kept.
    left : bool
        Whether all is left to pairs: weights take part in the score, or ids are no integers.
    """

    data: tuple[np.ndarray, ...]
    index: tuple[np.ndarray, ...]
    ids: tuple[np.ndarray, ...]
    left: bool = False
    _made: list[Any] = field(default_factory=list, init=False, repr=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)

    def __reduce__(self) -> Any:
        return Shelf, (self.data, self.index, self.ids, self.left)

    def merge(self, other: Shelf) -> Shelf:
        """The keys of both."""
        return Shelf(
            self.data + other.data,
            self.index + other.index,
            self.ids + other.ids,
            self.left or other.left,
        )

    def made(self) -> Any:
        """All keys, projected."""
        from locpipe.engines.ranked.sifted import Sifted

        with self._lock:
            if not self._made:
                whole = [np.concatenate(parts) for parts in (self.data, self.index, self.ids)]
                self._made.append(Sifted.of(*whole))
        return self._made[0]


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
    query_rows: ClassVar[int] = 2**12

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """What is no ranking of wide rows by the Euclidean distance."""
        score, reduction = score_of(need.kernel), need.reduction
        if need.library != "numpy":
            return f"takes NumPy arrays, got {need.library}"
        if type(reduction) is not TopK:
            return f"ranks by TopK, got {type(reduction).__name__}"
        if score is None or score.masks or need.has_pairs:
            return "ranks by one distance, with no mask but ExcludeSelf"
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

        Where they do not, it is that of the pairs, of the projection and of a few tiles.
        """
        n, d = need.n_keys + need.n_queries, need.n_features
        return float(1e-9 * (6.0 * need.n_pairs + 14.0 * n * d + 0.3 * d**3))

    @classmethod
    def build(cls, need: Need) -> Self:
        """The engine of a ranking."""
        score, reduction = score_of(need.kernel), need.reduction
        if score is None or not isinstance(reduction, TopK):
            raise TypeError("a need that was refused")
        return cls(reduction.k, score.exclude_self)

    def tile_bytes(self, need: Need) -> int:
        """Scores of a tile, its list, and the projected queries."""
        from locpipe.engines.ranked.sifted import TILE_BYTES, TILE_QUERIES

        return TILE_BYTES + 8 * TILE_QUERIES * (2 * need.n_features + 512)

    def summary_bytes(self, need: Need) -> int:
        """Rows as they came, twice while they are put together, and projected ones."""
        return need.n_keys * (16 * need.n_features + 1200) + 16 * need.n_features**2

    def summarise(self, k: KeyBlock) -> Shelf:
        """The keys of a block."""
        columns = present(k)
        index, ids = k.start + columns, _NO_IDS
        if self.exclude_self:
            ids = np.asarray(row_ids(k))[columns]
        return Shelf((_floats(k.data[columns]),), (index,), (ids,), is_graded(k) or not _whole(ids))

    def merge(self, a: Shelf, b: Shelf) -> Shelf:
        """The keys of both."""
        return a.merge(b)

    def evaluate(self, summary: Shelf, q: QueryBlock) -> tuple[State, Array]:
        """The k nearest of each query, and which are left to pairs."""
        from locpipe.engines.ranked.sifted import TILE_QUERIES

        state, doubtful = TopK(self.k).init(q), np.ones(q.n_rows, dtype=np.bool_)
        ids = np.asarray(row_ids(q)) if self.exclude_self else _NO_IDS
        if summary.left or not _whole(ids) or q.n_rows == 0 or not sum(map(len, summary.data)):
            return state, doubtful
        for rows in row_slices(q.n_rows, TILE_QUERIES):
            some = TopKState(state.score[rows], state.index[rows])
            doubtful[rows] = summary.made().nearest(_floats(q.data[rows]), ids[rows], some)
        return state, doubtful


def _floats(x: np.ndarray) -> np.ndarray:
    """Rows in float32 or float64."""
    return np.asarray(x, dtype=np.float32 if x.dtype == np.float32 else np.float64)


def _whole(ids: np.ndarray) -> bool:
    return bool(np.can_cast(ids.dtype, np.int64))
