"""The pairs of a fold, tile by tile, each scored as cheaply as its data allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from locpipe.blocks import row_slices
from locpipe.engines.ranked.best import Best
from locpipe.engines.ranked.scorers import scorer
from locpipe.engines.ranked.sides import Side
from locpipe.engines.ranked.tile_sizes import tile_keys, tile_queries

__all__ = ["fold_sides"]


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
