"""Keys in few dimensions, tile by tile, and queries that are sifted through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from locpipe.blocks import row_slices
from locpipe.engines.ranked.best import Best, Rows
from locpipe.engines.ranked.projection import Frame, Shadow
from locpipe.engines.ranked.scorers import product_slack
from locpipe.engines.ranked.sides import read_only
from locpipe.engines.ranked.sieve import LISTED, Bound, Limits, Sides, seed_tile, sift_tile

__all__ = ["TILE_BYTES", "TILE_QUERIES", "Sifted"]

_TILE_KEYS, TILE_QUERIES = 2048, 512
TILE_BYTES = 4 * _TILE_KEYS * TILE_QUERIES + 24 * (LISTED + _TILE_KEYS)
_WIDTHS = (63, 191)
"""Directions of the coarse shadows, which are multiplied, and of the fine ones."""


@dataclass(frozen=True, eq=False)
class Sifted:
    """Keys and their shadows.

    Attributes
    ----------
    frame : Frame
    rows : Rows
    coarse, fine : Shadow
    half : float32 array (n,)
        Half of the squared lengths of the coarse shadows, less their slack.
    bound : Bound
    """

    frame: Frame
    rows: Rows
    coarse: Shadow
    fine: Shadow
    half: np.ndarray
    bound: Bound

    @classmethod
    def of(cls, data: np.ndarray, index: np.ndarray, ids: np.ndarray) -> Self:
        """Project all keys."""
        frame = Frame.of(data, _WIDTHS[-1])
        coarse, fine = frame.shadows(data, _WIDTHS)
        slack, tiny = product_slack(np.float32, coarse.rows.shape[1])
        half = (0.5 * (1.0 - slack) * coarse.squares).astype(np.float32)
        bound = Bound(slack, tiny + 1e-34, frame.scale, _grown(fine.rows), _grown(data))
        return cls(frame, _rows(data, ids, index), coarse, fine, half, bound)

    def nearest(self, x: np.ndarray, ids: np.ndarray, best: Any) -> np.ndarray:
        """Fold all keys into the best of some queries, in place; which of these are in doubt."""
        x = np.asarray(x, dtype=np.result_type(x, self.rows.data))
        coarse, fine = self.frame.shadows(x, _WIDTHS)
        doubtful: np.ndarray = np.isinf(coarse.error) | np.isinf(self.coarse.error).any()
        limits = Limits(np.full(len(x), np.inf), np.zeros((len(x), 3), np.int64), doubtful)
        q, best = _sides(_rows(x, ids, ids), coarse, fine), Best(*best)
        room = np.empty(len(x) * _TILE_KEYS, dtype=np.float32)
        for part in row_slices(len(self.half), _TILE_KEYS):
            if doubtful.all():
                break
            half = self.half[part]
            near = room[: len(x) * len(half)].reshape(len(x), len(half))
            np.matmul(coarse.rows, self.coarse.rows[part].T, out=near)
            k = _sides(_part(self.rows, part), self.coarse.part(part), self.fine.part(part))
            if part.start == 0:
                seed_tile(near, half, q, k, best.score.shape[1], limits)
            sift_tile(near, half, q, k, best, limits, self.bound)
        return doubtful


def _rows(data: np.ndarray, ids: np.ndarray, index: np.ndarray) -> Rows:
    none = np.zeros(len(data), dtype=np.bool_)
    return Rows(read_only(data), none, np.zeros(0), ids.astype(np.int64), index)


def _part(rows: Rows, part: slice) -> Rows:
    ids = rows.ids[part]
    return Rows(rows.data[part], rows.none[part], rows.squares, ids, rows.index[part])


def _sides(rows: Rows, coarse: Shadow, fine: Shadow) -> Sides:
    return Sides(rows, coarse.squares, coarse.error, fine.error, fine.rows)


def _grown(rows: np.ndarray) -> float:
    """Factor on a level that squared distances are compared with, summed in their own dtype."""
    return float(1.0 + 1.1 * (rows.shape[1] + 8) * np.finfo(rows.dtype).eps)
