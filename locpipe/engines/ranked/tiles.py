"""The pairs of a fold, tile by tile, each scored as cheaply as its data allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from locpipe.blocks import row_slices
from locpipe.engines.ranked.best import Best
from locpipe.engines.ranked.scorers import scorer
from locpipe.engines.ranked.sides import Side

__all__ = ["fold_sides", "tile_keys", "tile_queries"]

_TILE_PAIRS = 2**21
_MOST_KEYS, _MOST_QUERIES = 4096, 1024
_MOST_NUMBERS = 2**22


def tile_keys(n_features: int) -> int:
    """Keys of a tile, at most."""
    return min(_MOST_KEYS, max(256, _MOST_NUMBERS // max(1, n_features)))


def tile_queries(n_features: int, n_keys: int) -> int:
    """Queries of a tile of so many keys."""
    by_pairs, by_features = _TILE_PAIRS // max(1, n_keys), _MOST_NUMBERS // max(1, n_features)
    return max(64, min(_MOST_QUERIES, by_pairs, by_features))


def fold_sides(
    metric: str,
    level: int,
    q: Side,
    k: Side,
    best: Best,
    allowed: Callable[[slice, slice], np.ndarray | None],
) -> None:
    """Fold the keys into the best of the queries, in place.

    It starts with the scores of `level`, and goes on with better ones once these leave too much
    in doubt.  `allowed` gives the pairs of a tile that masks allow.
    """
    n_queries, d = q.data.shape
    key_slices = _even(k.data.shape[0], tile_keys(d))
    n_columns = key_slices[0].stop
    step = tile_queries(d, n_columns)
    room = np.empty(min(step, n_queries) * n_columns)
    for columns in key_slices:
        keys = k.rows(columns)
        scores = scorer(level, metric, keys, q)
        for rows in row_slices(n_queries, step):
            part = Best(best.score[rows], best.index[rows])
            pairs, done = (q.rows(rows), part, allowed(rows, columns)), 0
            while (done := scores.fold(*pairs, done, room)) < rows.stop - rows.start:
                level += 1
                scores = scorer(level, metric, keys, q)


def _even(n: int, most: int) -> list[slice]:
    """Slices of at most `most` rows and about the same length."""
    return list(row_slices(n, -(-n // -(-n // most))))
