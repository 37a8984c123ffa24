"""The key of largest log weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.reductions.base import NO_KEY, Reduction, full

__all__ = ["ArgBest", "ArgBestState"]


class ArgBestState(NamedTuple):
    """Best score (n,) and the global index of its key (n,) int64."""

    score: Array
    index: Array


@dataclass(frozen=True)
class ArgBest(Reduction):
    """The key of largest log weight per query, the lowest index of equals.

    Finalizes to ``(score, index)``, each (n_queries,); without a neighbour ``-inf`` and -1.
    """

    ranks: ClassVar[bool] = True

    @property
    def tile_arrays(self) -> int:
        """Nothing of the tile's size but what libraries may need."""
        return 1

    def init(self, q: QueryBlock) -> ArgBestState:
        """No key yet."""
        xp = array_namespace(q.data)
        return ArgBestState(
            full(q, (), float("-inf")), xp.full((q.n_rows,), NO_KEY, dtype=xp.int64)
        )

    def update(
        self, state: Any, log_w: Any, q: QueryBlock, k: KeyBlock, pair: Tile | None = None
    ) -> ArgBestState:
        """Keep the better of the old and the tile's best."""
        xp = array_namespace(log_w)
        score = xp.max(log_w, axis=1)
        index = xp.astype(xp.argmax(log_w, axis=1), xp.int64) + k.start
        none = xp.asarray(NO_KEY, dtype=xp.int64)
        return self.merge(state, ArgBestState(score, xp.where(score > -xp.inf, index, none)))

    def merge(self, a: Any, b: Any) -> ArgBestState:
        """Better score; of equals the lower index."""
        xp = array_namespace(a.score)
        take_b = (b.score > a.score) | ((b.score == a.score) & (b.index < a.index))
        return ArgBestState(xp.where(take_b, b.score, a.score), xp.where(take_b, b.index, a.index))

    def finalize(self, state: Any, empty: float) -> tuple[Array, Array]:
        """Score and index; no key is -1."""
        xp = array_namespace(state.index)
        missing = state.index == NO_KEY
        return state.score, xp.where(missing, xp.asarray(-1, dtype=xp.int64), state.index)
