"""Compiled: which keys of a tile may be among the nearest, by bounds that get finer."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from locpipe.engines.ranked.best import Listed, enter, measure
from locpipe.engines.ranked.loops import compiled

__all__ = ["LISTED", "Bound", "Limits", "Sides", "seed_tile", "sift_tile"]

_CHUNK = 16
LISTED = 2**14
"""Keys that are listed before they are measured."""
_GROWN = 1e-9
"""Relative error of levels in float64, amply."""
"""Keys of a row that are measured together."""
_MOST_COARSE, _MOST_FINE = 0.4, 0.12
"""Shares of the keys seen that may pass each bound before pairs do it better."""
_PATIENCE = 4096
_HOPELESS = 0.5
"""Share of a tile that no later limit will bring down enough."""


class Sides(NamedTuple):
    """What a tile has of one side: `Rows` and the shadows' arrays.

    Attributes
    ----------
    rows : Rows
    squares, coarse_error, fine_error : float64 arrays (n,)
    fine : float32 array (n, m + 1)
    """

    rows: Any
    squares: Any
    coarse_error: Any
    fine_error: Any
    fine: Any


class Limits(NamedTuple):
    """What is known of each query.

    Attributes
    ----------
    limit : float64 array (n_queries,)
        What the k-th surrogate does not exceed.
    passed : int64 array (n_queries, 4)
        Keys seen, those that passed the coarse bound, and those that were measured.
    doubtful : bool array (n_queries,)
    """

    limit: Any
    passed: Any
    doubtful: Any


class Bound(NamedTuple):
    """How wrong the bounds may be.

    Attributes
    ----------
    slack, tiny : float
        Of the coarse scores, as in `locpipe.engines.ranked.best.Bound`.
    scale : float
        Of the shadows.
    fine, whole : float
        Factors on squared distances of fine shadows, and of the rows, summed in their dtypes.
    """

    slack: Any
    tiny: Any
    scale: Any
    fine: Any
    whole: Any


@compiled
def seed_tile(near: Any, half: Any, q: Any, k: Any, n_best: Any, limits: Any) -> Any:
    """Limits from the keys of least bound of a tile."""
    by_ids = k.rows.ids.shape[0] > 0
    score, column = np.empty(n_best), np.empty(n_best, np.int64)
    listed = Listed(np.empty(n_best, np.int64), column, np.empty(n_best))
    for i in range(near.shape[0]):
        if limits.doubtful[i]:
            continue
        n: Any = np.int64(0)
        for j in range(near.shape[1]):
            value = np.float64(near[i, j] - half[j])
            if n == n_best and value <= score[n - 1]:
                continue
            if by_ids and k.rows.ids[j] == q.rows.ids[i]:
                continue
            n = min(n + 1, n_best)
            place = n - 1
            while place > 0 and score[place - 1] < value:
                score[place], column[place] = score[place - 1], column[place - 1]
                place -= 1
            score[place], column[place] = value, j
        if n < n_best:
            continue
        listed.row[:] = i
        measure(n, q.rows, k.rows, 1.0, listed)
        limits.limit[i] = min(limits.limit[i], np.max(listed.value))


@compiled
def sift_tile(near: Any, half: Any, q: Any, k: Any, best: Any, limits: Any, bound: Any) -> Any:
    """Fold the keys of a tile into the best of the queries, but for those in doubt."""
    n_rows, n_columns = near.shape
    room = LISTED + n_columns
    listed = Listed(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
    highest = np.empty(-(-n_columns // _CHUNK), dtype=np.float32)
    offs = np.max(k.coarse_error), np.max(k.fine_error)
    n: Any = np.int64(0)
    for i in range(n_rows):
        if not limits.doubtful[i]:
            n = _sift_row(i, n, near[i], half, q, k, best, limits, bound, offs, highest, listed)
        if n > LISTED or i == n_rows - 1:
            measure(n, q.rows, k.rows, 1.0, listed)
            enter(n, k.rows, best, listed)
            n = np.int64(0)


@compiled
def _sift_row(
    i: Any, begin: Any, near: Any, half: Any, q: Any, k: Any, best: Any, limits: Any, bound: Any,
    offs: Any, highest: Any, listed: Any,
) -> Any:  # fmt: skip
    """List what may be among the best of row i from place `begin`; the place after the last."""
    worst = min(limits.limit[i], -best.score[i, best.score.shape[1] - 1])
    coarse = _level(worst, bound.scale, offs[0] + q.coarse_error[i])
    fine = _level(worst, bound.scale, offs[1] + q.fine_error[i])
    floor = 0.5 * ((1.0 - bound.slack) * q.squares[i] - coarse) - bound.tiny
    column = listed.column[begin:]
    n_coarse = _at_least(near, half, floor, highest, column)
    if n_coarse > _HOPELESS * near.shape[0]:
        limits.doubtful[i] = True
        return begin
    n_fine = _within(q.fine[i], k.fine, fine * bound.fine + bound.tiny, column, n_coarse)
    if n_fine > _HOPELESS * near.shape[0]:
        limits.doubtful[i] = True
        return begin
    n = _within(q.rows.data[i], k.rows.data, worst * bound.whole + bound.tiny, column, n_fine)
    if k.rows.ids.shape[0] > 0:
        n = _others(k.rows.ids, q.rows.ids[i], column, n)
    listed.row[begin : begin + n] = i
    limits.doubtful[i] = _count(limits.passed[i], near.shape[0], n_coarse, n_fine)
    return begin + n


@compiled
def _count(passed: Any, seen: Any, n_coarse: Any, n_fine: Any) -> Any:
    """Whether so many passed the bounds that pairs do better."""
    passed[0] += seen
    passed[1] += n_coarse
    passed[2] += n_fine
    many = passed[1] > _MOST_COARSE * passed[0] or passed[2] > _MOST_FINE * passed[0]
    return many and passed[0] >= _PATIENCE


@compiled
def _level(worst: Any, scale: Any, off: Any) -> Any:
    """Squared distance of shadows beyond which the surrogate exceeds `worst` for certain."""
    reach = np.sqrt(worst) * scale * (1.0 + _GROWN) + off
    return reach * reach


@compiled
def _at_least(near: Any, half: Any, floor: Any, highest: Any, column: Any) -> Any:
    """Put columns whose score is at least the floor into `column`; how many."""
    _find_highest(near, half, highest)
    n: Any = 0
    for chunk in range(highest.shape[0]):
        if highest[chunk] < floor:
            continue
        for j in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, near.shape[0])):
            column[n] = j
            n += np.int64(near[j] - half[j] >= floor)
    return n


@partial(compiled, fastmath={"reassoc", "nnan", "nsz"})
def _find_highest(near: Any, half: Any, out: Any) -> Any:
    """The highest score of each chunk; infinity of a last one that is not whole."""
    n = near.shape[0] // _CHUNK
    chunks = near[: n * _CHUNK].reshape(n, _CHUNK)
    halves = half[: n * _CHUNK].reshape(n, _CHUNK)
    for chunk in range(n):
        highest = chunks[chunk, 0] - halves[chunk, 0]
        for c in range(_CHUNK):
            highest = max(highest, chunks[chunk, c] - halves[chunk, c])
        out[chunk] = highest
    if n < out.shape[0]:
        out[n] = np.inf


@compiled
def _within(x: Any, rows: Any, level: Any, column: Any, n: Any) -> Any:
    """Keep the first n columns whose squared distance is at most the level; how many."""
    kept: Any = 0
    for a in range(n):
        j = column[a]
        column[kept] = j
        kept += np.int64(_square(x, rows[j]) <= level)
    return kept


@partial(compiled, fastmath={"reassoc", "contract"})
def _square(x: Any, y: Any) -> Any:
    """Squared distance in the dtype of the rows, summed in any order."""
    total = x[0] - x[0]
    for c in range(x.shape[0]):
        gap = x[c] - y[c]
        total += gap * gap
    return total


@compiled
def _others(ids: Any, own: Any, column: Any, n: Any) -> Any:
    """Keep the first n columns of other ids; how many."""
    kept: Any = 0
    for a in range(n):
        j = column[a]
        column[kept] = j
        kept += np.int64(ids[j] != own)
    return kept
