"""Keys in few dimensions, near ones together, and queries that are sifted through them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from locpipe.blocks import row_slices
from locpipe.engines.ranked.projection import Frame, Shadow
from locpipe.engines.ranked.scorers import product_slack
from locpipe.engines.ranked.shelf import Shelf
from locpipe.engines.ranked.sides import read_only
from locpipe.engines.ranked.sieve import Bound, Limits, Rows, room_for, sift_tile
from locpipe.engines.ranked.sieve_sizes import SAMPLE, TILE_KEYS, TILE_QUERIES
from locpipe.engines.ranked.trial import GATHERED, would_pay
from locpipe.reductions.top_k import TopKState

__all__ = ["Sifted"]

_WIDTHS = (63, 191)
"""Directions of the coarse shadows, which are multiplied, and of the fine ones."""
_PATIENCE = 2**14
"""Keys whose products a query may waste before it is in doubt."""
_PLACED = 8
"""Directions that keys are put in order by."""


@dataclass(frozen=True, eq=False)
class _Tile:
    """Keys that lie near each other, in ascending order; read when the first queries meet it."""

    places: np.ndarray
    index: np.ndarray
    ids: np.ndarray
    _made: list[Any] = field(default_factory=list, init=False, repr=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)

    def made(self, shelf: Shelf, frame: Frame) -> tuple[Rows, np.ndarray, np.ndarray]:
        """The keys, the rows of their coarse shadows, and half of the squares of these."""
        with self._lock:
            if not self._made:
                self._made.extend(self._read(shelf, frame))
        return self._made[0], self._made[1], self._made[2]

    def _read(self, shelf: Shelf, frame: Frame) -> tuple[Rows, np.ndarray, np.ndarray]:
        data = shelf.rows(self.places)
        coarse, fine = frame.shadows(data, _WIDTHS)
        slack, _ = product_slack(np.float32, coarse.rows.shape[1])
        half = (0.5 * (1.0 - slack) * coarse.squares).astype(np.float32)
        return _rows(data, coarse, fine, self.ids, self.index), coarse.rows, half


@dataclass(frozen=True, eq=False)
class Sifted:
    """Keys and their shadows, tile by tile.

    Attributes
    ----------
    shelf : Shelf
    frame : Frame
    tiles : tuple of _Tile
    centres : array (n_tiles, m)
        Mean places of the keys of each tile, on the first few directions.
    """

    shelf: Shelf
    frame: Frame
    tiles: tuple[_Tile, ...]
    centres: np.ndarray

    @classmethod
    def of(cls, shelf: Shelf, k: int) -> Self | None:
        """Put all keys in order; None where leading directions would rule out too few."""
        shelf = shelf.in_order()
        n = shelf.n_keys
        sample = shelf.rows(np.arange(0, n, max(1, n // SAMPLE)))
        frame = Frame.of(sample, _WIDTHS[-1])
        if not would_pay(frame, sample, _WIDTHS, k, n):
            return None
        along = np.concatenate([frame.places(part, _PLACED) for part in shelf.data])
        places = [np.sort(some) for some in _halves(along, np.arange(n))]
        centres = np.array([along[some].mean(axis=0) for some in places])
        index, ids = (np.concatenate(parts) for parts in (shelf.index, shelf.ids))
        tiles = tuple(_Tile(some, index[some], ids[some[: len(ids)]]) for some in places)
        return cls(shelf, frame, tiles, centres)

    def nearest(self, x: np.ndarray, ids: np.ndarray, best: Any) -> np.ndarray:
        """Fold all keys into the best of the queries, in place; which of these are in doubt."""
        x = np.asarray(x, dtype=np.result_type(x, *self.shelf.data))
        doubtful = np.zeros(len(x), dtype=np.bool_)
        along = self.frame.places(x, _PLACED)
        gaps = _squared_gaps(along, self.centres)
        order = np.argsort(gaps.argmin(axis=1), kind="stable")
        for some in (order[part] for part in row_slices(len(x), TILE_QUERIES)):
            found = TopKState(best.score[some], best.index[some])
            tiles = np.argsort(gaps[some].min(axis=0), kind="stable")
            doubtful[some] = self._sift(x[some], ids[some[: len(ids)]], found, tiles)
            best.score[some], best.index[some] = found
        return doubtful

    def _sift(
        self, x: np.ndarray, ids: np.ndarray, best: TopKState, tiles: np.ndarray
    ) -> np.ndarray:
        coarse, fine = self.frame.shadows(x, _WIDTHS)
        q = _rows(x, coarse, fine, ids, ids)
        doubtful: np.ndarray = np.isinf(coarse.error)
        limits = Limits(*best, np.full(len(x), np.inf), np.zeros(len(x)), doubtful)
        room, seen = room_for(TILE_KEYS, best.score.shape[1]), 0
        scores = np.empty(len(x) * TILE_KEYS, dtype=np.float32)
        for tile in tiles:
            k, rows, half = self.tiles[tile].made(self.shelf, self.frame)
            doubtful |= np.isinf(k.errors).any()
            if doubtful.all():
                break
            near = scores[: len(x) * len(half)].reshape(len(x), len(half))
            np.matmul(coarse.rows, rows.T, out=near)
            sift_tile(near, half, q, k, limits, self._bound(x, k), room)
            seen += len(half)
            _give_up(limits, (seen + _PATIENCE) * x.shape[1] / GATHERED)
        return doubtful

    def _bound(self, x: np.ndarray, k: Rows) -> Bound:
        offs = float(k.errors[:, 0].max()), float(k.errors[:, 1].max())
        widths = [1 + min(m, self.frame.basis.shape[1]) for m in _WIDTHS]
        slack, tiny = product_slack(np.float32, widths[0])
        _, least = product_slack(np.float32, x.shape[1])
        whole = _roundoff(x.shape[1], np.result_type(*self.shelf.data))
        fine, scale = _roundoff(widths[1]), self.frame.scale
        return Bound(slack, tiny + 1e-34, scale, fine, whole, least, offs)


def _give_up(limits: Limits, affordable: float) -> None:
    """Leave queries that cost too much to pairs, where all together cost too much."""
    if limits.spent.mean() > affordable:
        limits.doubtful[limits.spent > affordable] = True


def _halves(along: np.ndarray, places: np.ndarray) -> Iterator[np.ndarray]:
    """Cut in the middle of the direction of most variance, until the parts are tiles."""
    if len(places) <= TILE_KEYS:
        yield places
        return
    some = along[places]
    by, middle = some[:, some.var(axis=0).argmax()], len(places) // 2
    order = np.argpartition(by, middle)
    yield from _halves(along, places[order[:middle]])
    yield from _halves(along, places[order[middle:]])


def _squared_gaps(x: np.ndarray, centres: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        both = np.square(x).sum(axis=1)[:, None] + np.square(centres).sum(axis=1)
        gaps: np.ndarray = np.nan_to_num(both - 2.0 * (x @ centres.T))
    return gaps


def _rows(
    data: np.ndarray, coarse: Shadow, fine: Shadow, ids: np.ndarray, index: np.ndarray
) -> Rows:
    errors = np.stack([coarse.error, fine.error], axis=1)
    ids = ids.astype(np.int64)
    return Rows(read_only(data), read_only(fine.rows), coarse.squares, errors, ids, index)


def _roundoff(d: int, dtype: Any = np.float32) -> float:
    """Relative error of squared distances summed in their own dtype, the reference's included."""
    return float(1.1 * (d + 8) * np.finfo(dtype).eps)
