"""Compiled: which keys of a tile may be among the nearest, by bounds that get finer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locpipe.engines.fused.compiled import as_written, in_any_order
from locpipe.engines.ranked.loops import (
    at_least,
    compiled,
    found_in,
    inlined,
    measure_in_order,
)

__all__ = ["Bound", "Limits", "Room", "Rows", "room_for", "sift_tile"]

_GROWN = 1e-9
"""Relative error of levels in float64, amply."""
_SEEDS, _MANY = 2, 4
"""Keys that a limit is found from, and those within the coarse bound from which it is found by the
fine one again; per neighbour wanted."""


class Rows(NamedTuple):
    """What a tile has of one side.

    Attributes
    ----------
    data : array (n, n_features)
    fine : float32 array (n, m + 1)
        Fine shadows.
    squares : float64 array (n,)
        Squared lengths of the coarse shadows.
    errors : float64 array (n, 2)
        Of the coarse shadows and the fine ones.
    ids : int64 array (n,)
        Or of no rows where pairs of equal ids are kept.
    index : int64 array (n,)
        Global index of each key, ascending; not read of queries.
    """

    data: Any
    fine: Any
    squares: Any
    errors: Any
    ids: Any
    index: Any


class Limits(NamedTuple):
    """What is known of each query.

    Attributes
    ----------
    score, index : arrays (n_queries, k)
        The best so far, best first.
    limit : float64 array (n_queries,)
        What the k-th surrogate does not exceed.
    spent : float64 array (n_queries,)
        Features of single pairs that were looked at.
    doubtful : bool array (n_queries,)
        Queries to be left out.
    """

    score: Any
    index: Any
    limit: Any
    spent: Any
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
        Relative errors of squared distances of fine shadows, and of the rows.
    least : float
        What the latter may lose to underflow.
    offs : pair of float
        The largest errors of the keys' shadows.
    """

    slack: Any
    tiny: Any
    scale: Any
    fine: Any
    whole: Any
    least: Any
    offs: Any


class Room(NamedTuple):
    """What a row is worked on in; made once, as making arrays takes Numba seconds to compile.

    Attributes
    ----------
    found : Found
        Candidates.
    value : float64 array (n_keys,)
        Their squared distances, or what goes with these.
    some, others : int64 arrays
        A few of them.
    least, squares : float64 arrays
        Of these.
    """

    found: Any
    value: Any
    some: Any
    others: Any
    least: Any
    squares: Any


def room_for(n_keys: int, n_best: int) -> Room:
    """Room for tiles of so many keys, at most."""
    few = _SEEDS * n_best
    some, others = np.empty(few, dtype=np.int64), np.empty(few, dtype=np.int64)
    return Room(found_in(n_keys), np.empty(n_keys + 1), some, others, np.empty(few), np.empty(few))


@compiled
def sift_tile(near: Any, half: Any, q: Any, k: Any, limits: Any, bound: Any, room: Any) -> Any:
    """Fold the keys of a tile into the best of the queries, but for those in doubt."""
    column, value = room.found.column, room.value
    for i in range(near.shape[0]):
        if not limits.doubtful[i]:
            n = _candidates(i, near[i], half, q, k, limits, bound, room)
            measure_in_order(q.data[i], k.data, column, value, n)
            _enter(limits.score[i], limits.index[i], k.index, column, value, n)


@inlined
def _candidates(
    i: Any, near: Any, half: Any, q: Any, k: Any, limits: Any, bound: Any, room: Any
) -> Any:
    """Put columns that may be among the best of row i into their room; how many."""
    x, x_fine, score = q.data[i], q.fine[i], limits.score[i]
    n_best, own = score.shape[0], q.ids[i] if k.ids.shape[0] > 0 else 0
    column, value = room.found.column, room.value
    worst = min(limits.limit[i], -score[n_best - 1])
    if worst == np.inf:
        n = _bounds(own, near, half, k.ids, column, value)
        worst = _limit(x, k.data, n_best, n, bound, room)
    level = _level(worst, bound.scale, bound.offs[0] + q.errors[i, 0])
    floor = 0.5 * ((1.0 - bound.slack) * q.squares[i] - level) - bound.tiny
    floor -= 2.0**-22 * abs(floor)  # so it rounds to no more
    n = _others(own, k.ids, column, at_least(near, half, np.float32(floor), room.found))
    limits.spent[i] += n * x_fine.shape[0]
    _measure(x_fine, k.fine, column, value, n)
    if n > _MANY * n_best:
        worst = min(worst, _limit(x, k.data, n_best, n, bound, room))
    level = _level(worst, bound.scale, bound.offs[1] + q.errors[i, 1])
    n = _keep(level * (1.0 + bound.fine) + bound.tiny, column, value, n)
    limits.spent[i] += n * x.shape[0]
    _measure(x, k.data, column, value, n)
    n = _keep(worst * (1.0 + bound.whole) + bound.least, column, value, n)
    limits.limit[i] = worst
    return _keep(_kth(score, bound, n, room), column, value, n)


@inlined
def _level(worst: Any, scale: Any, off: Any) -> Any:
    """Squared distance of shadows beyond which the surrogate exceeds `worst` for certain."""
    reach = np.sqrt(worst) * scale * (1.0 + _GROWN) + off
    return reach * reach


@as_written
def _bounds(own: Any, near: Any, half: Any, ids: Any, column: Any, value: Any) -> Any:
    """Put all columns but those of equal ids into `column`, and what their bounds go with."""
    n: Any = np.int64(0)
    for j in range(near.shape[0]):
        column[n], value[n] = j, half[j] - near[j]
        n += np.int64(ids.shape[0] == 0 or ids[j] != own)
    return n


@as_written
def _limit(x: Any, rows: Any, n_best: Any, n: Any, bound: Any, room: Any) -> Any:
    """What the k-th surrogate does not exceed, from those of the first n columns of least value.

    Infinite of too few.
    """
    if n < n_best:
        return np.inf
    some, squares = room.some, room.squares
    n = _least(_SEEDS * n_best, room.found.column, room.value, n, some, room.least)
    _measure(x, rows, some, squares, n)
    n = _least(n_best, some, squares, n, room.others, room.least)
    return room.least[n - 1] * (1.0 + bound.whole) + bound.least


@as_written
def _least(most: Any, column: Any, value: Any, n: Any, some: Any, least: Any) -> Any:
    """Put those of the first n columns that have least values into `some`; how many."""
    found = 0
    for a in range(n):
        new = value[a]
        if found == most and new >= least[found - 1]:
            continue
        found = min(found + 1, most)
        b = found - 1
        while b > 0 and least[b - 1] > new:
            least[b], some[b] = least[b - 1], some[b - 1]
            b -= 1
        least[b], some[b] = new, column[a]
    return found


@as_written
def _kth(score: Any, bound: Any, n: Any, room: Any) -> Any:
    """The value beyond which a key is not among the best k, nor ties with the k-th."""
    n_best, least = score.shape[0], room.least
    last = -score[n_best - 1]
    n = _least(n_best, room.found.column, room.value, n, room.some, least)
    for new in range(1, n + 1):
        upper = least[new - 1] * (1.0 + bound.whole) + bound.least
        last = min(last, upper if new == n_best else max(upper, -score[n_best - new - 1]))
    return last * (1.0 + bound.whole) + bound.least


@as_written
def _measure(x: Any, rows: Any, column: Any, value: Any, n: Any) -> Any:
    """Squared distances of the first n columns."""
    for a in range(n):
        value[a] = _square(x, rows, column[a])


@in_any_order
def _square(x: Any, rows: Any, j: Any) -> Any:
    """Squared distance of row j in the dtype of the rows, summed in any order."""
    total = x[0] - x[0]
    for c in range(x.shape[0]):
        gap = x[c] - rows[j, c]
        total += gap * gap
    return total


@as_written
def _keep(level: Any, column: Any, value: Any, n: Any) -> Any:
    """Keep the first n columns whose value is at most the level; how many."""
    kept: Any = np.int64(0)
    for a in range(n):
        column[kept], value[kept] = column[a], value[a]
        kept += np.int64(value[kept] <= level)
    return kept


@as_written
def _others(own: Any, ids: Any, column: Any, n: Any) -> Any:
    """Keep the first n columns of other ids; how many."""
    if ids.shape[0] == 0:
        return n
    kept: Any = np.int64(0)
    for a in range(n):
        column[kept] = column[a]
        kept += np.int64(ids[column[a]] != own)
    return kept


@as_written
def _enter(score: Any, index: Any, key_index: Any, column: Any, value: Any, n: Any) -> Any:
    """Put the first n columns into the best by (score descending, index ascending)."""
    for a in range(n):
        new, number = -value[a], key_index[column[a]]
        place = score.shape[0]
        while place > 0 and (
            new > score[place - 1] or (new == score[place - 1] and number < index[place - 1])
        ):
            place -= 1
        for b in range(score.shape[0] - 1, place, -1):
            score[b], index[b] = score[b - 1], index[b - 1]
        if place < score.shape[0]:
            score[place], index[place] = new, number
