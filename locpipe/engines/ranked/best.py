"""Compiled: from scores that may be a little wrong to the k best keys that are right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locpipe.engines.fused.compiled import as_written
from locpipe.engines.ranked.loops import at_least, compiled, found_in, inlined

__all__ = ["Best", "Bound", "Pairs", "Room", "Rows", "fold_tile", "room_for"]

_TRIAL_ROWS = 16
"""Rows before it is judged whether scores are good enough."""
_LIST = 2**14
"""Pairs that are listed before they are measured."""
_LANES, _FEATURES = 8, 256


_ALONE = np.zeros(1, dtype=np.int64)


class Rows(NamedTuple):
    """Rows of one side of a tile.

    Attributes
    ----------
    data : array (n, n_features)
        What exact distances are formed from.
    none : bool array (n,)
        Rows without a direction: at surrogate distance 1 from all.
    squares : float64 array (n,)
        Squared lengths, centred and scaled as those that were multiplied.
    ids : int64 array (n,)
        Identities, or of no rows where pairs of equal ids are kept.
    index : int64 array (n,)
        Global index of each key; not read of queries.
    """

    data: Any
    none: Any
    squares: Any
    ids: Any
    index: Any


class Pairs(NamedTuple):
    """Scores of a tile: ``near - half`` is half of minus the squared distance, but for the query.

    Attributes
    ----------
    near : float array (n_queries, n_keys)
        ``-inf`` where a key is no neighbour.
    half : array (n_keys,) of the same dtype
    """

    near: Any
    half: Any


class Bound(NamedTuple):
    """How wrong scores may be, and in which unit they come.

    Attributes
    ----------
    slack : float
        Error of a scaled squared distance, as a factor on the sum of the two squared lengths.
    tiny : float
        Error that remains where the lengths are 0.
    weight : float
        Scaled squared distance per surrogate.
    factor : float
        Surrogate per squared distance of `Rows.data`.
    exact : bool
        Whether scores are the surrogates themselves.
    """

    slack: float
    tiny: float
    weight: float
    factor: float
    exact: bool


class Best(NamedTuple):
    """The k best so far of each query, best first: what `fold_tile` updates.

    Attributes
    ----------
    score : float64 array (n_queries, k)
    index : int64 array (n_queries, k)
    """

    score: Any
    index: Any


class Listed(NamedTuple):
    """Pairs that may be among the best, row after row, columns ascending.

    Attributes
    ----------
    row, column : int64 arrays (room,)
    value : float64 array (room,)
        What the surrogate does not exceed; once measured, the surrogate.
    """

    row: Any
    column: Any
    value: Any


class Room(NamedTuple):
    """What rows are worked on in; made once, as making arrays takes Numba seconds to compile.

    Attributes
    ----------
    listed : Listed
    found : Found
    squares : float64 array (lanes, features)
    sums : float64 array (lanes,)
    """

    listed: Any
    found: Any
    squares: Any
    sums: Any


def room_for(n_keys: int) -> Room:
    """Room for tiles of so many keys, at most."""
    room = _LIST + n_keys
    listed = Listed(np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room))
    return Room(listed, found_in(n_keys), np.zeros((_LANES, _FEATURES)), np.zeros(_LANES))


@compiled
def fold_tile(
    q: Any, k: Any, pairs: Any, bound: Any, best: Any, first: Any, most: Any, room: Any
) -> Any:
    """Fold the keys of a tile into the queries from row `first`; the first row that was not done.

    It stops early where more than `most` exact distances per row were needed: then scores of
    more digits are worth their price.

    Notes
    -----
    A key stays out only if the lower bound of its surrogate exceeds an upper bound of the k-th;
    all others are measured, so errors of scores cost time and never change the result.
    """
    n_rows = pairs.near.shape[0]
    doubtful = 0
    begin = first
    while begin < n_rows:
        n: Any = np.int64(0)
        stop = begin
        while stop < n_rows and n <= _LIST:
            n = _list_row(stop, n, q, k, pairs, bound, best, room.listed, room.found)
            stop += 1
            if stop - first >= _TRIAL_ROWS and doubtful + n > most * (stop - first):
                break
        if not bound.exact:
            _measure(n, q, k, bound.factor, room)
        _enter(n, k, best, room.listed)
        doubtful += n
        if stop - first >= _TRIAL_ROWS and doubtful > most * (stop - first):
            return stop
        begin = stop
    return n_rows


@as_written
def _list_row(
    i: Any, begin: Any, q: Any, k: Any, pairs: Any, bound: Any, best: Any, listed: Any, found: Any
) -> Any:
    """List what may be among the best of row i from place `begin`; the place after the last."""
    # Each use of an array in a tuple counts its references, so the loop takes none from there.
    near, half, square, squares = pairs.near[i], pairs.half, q.squares[i], k.squares
    by_ids, ids, index, exact = k.ids.shape[0] > 0, k.ids, k.index, bound.exact
    own = q.ids[i] if by_ids else np.int64(0)
    row, column, value = listed.row, listed.column, listed.value
    n_best = best.score.shape[1]
    tie, last = -best.score[i, n_best - 1], best.index[i, n_best - 1]
    floor = _floor(tie, square, bound)
    n, room = begin, begin + 2 * n_best + 64
    for a in range(at_least(near, half, near.dtype.type(floor), found)):
        j = found.column[a]
        score = np.float64(near[j] - half[j])
        if score < floor or score == -np.inf or (by_ids and ids[j] == own):
            continue
        if exact and -score == tie and index[j] > last:
            continue
        row[n], column[n], value[n] = i, j, _upper(score, square, squares[j], bound)
        n += 1
        if n == room:
            floor = _floor(_kth(value[begin:n], best.score[i]), square, bound)
            n = _keep(begin, n, near, half, floor, listed)
            room = max(room, 2 * n - begin)  # ties: only measuring tells them apart
    if n > begin + 1:
        floor = _floor(_kth(value[begin:n], best.score[i]), square, bound)
        n = _keep(begin, n, near, half, floor, listed)
    return n


@as_written
def _floor(worst: Any, square: Any, bound: Any) -> Any:
    """Score below which the surrogate exceeds `worst` for certain."""
    return 0.5 * ((1.0 - bound.slack) * square - worst * bound.weight) - bound.tiny


@as_written
def _upper(score: Any, q_square: Any, k_square: Any, bound: Any) -> Any:
    """What the surrogate of a pair does not exceed."""
    lower = (1.0 - bound.slack) * q_square - 2.0 * score
    total = lower + 2.0 * bound.slack * (q_square + k_square) + 2.0 * bound.tiny
    return total / bound.weight


@as_written
def _kth(values: Any, score: Any) -> Any:
    """The k-th least of some values and the k of a row's best so far."""
    order, a, b = _order(values), 0, 0
    for _ in range(score.shape[0] - 1):
        if b < order.shape[0] and values[order[b]] < -score[a]:
            b += 1
        else:
            a += 1
    return min(-score[a], values[order[b]]) if b < order.shape[0] else -score[a]


@as_written
def _order(values: Any) -> Any:
    """Places of the values in ascending order, equal ones as they stand: a merge sort.

    That of NumPy takes Numba seconds to compile.
    """
    n = values.shape[0]
    order, spare = np.arange(n), np.empty(n, dtype=np.int64)
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            _merge_runs(values, order, spare, low, min(low + width, n), min(low + 2 * width, n))
        order, spare = spare, order
        width *= 2
    return order


@inlined
def _merge_runs(values: Any, order: Any, out: Any, low: Any, middle: Any, high: Any) -> Any:
    a, b = low, middle
    for place in range(low, high):
        if a < middle and (b >= high or values[order[a]] <= values[order[b]]):
            out[place] = order[a]
            a += 1
        else:
            out[place] = order[b]
            b += 1


@as_written
def _keep(begin: Any, end: Any, near: Any, half: Any, floor: Any, listed: Any) -> Any:
    """Drop what is below the floor from a part of the list; the place after the last."""
    n = begin
    for a in range(begin, end):
        j = listed.column[a]
        if np.float64(near[j] - half[j]) >= floor:
            listed.row[n], listed.column[n] = listed.row[a], j
            listed.value[n] = listed.value[a]
            n += 1
    return n


@as_written
def _measure(n: Any, q: Any, k: Any, factor: Any, room: Any) -> Any:
    """Surrogates of the first n pairs by differences, features summed in ascending order.

    Sums of `_LANES` pairs advance together: one alone would wait for each addition.
    """
    d, listed, squares, sums = q.data.shape[1], room.listed, room.squares, room.sums
    for a in range(0, n, _LANES):
        sums[:] = 0.0
        for start in range(0, d, _FEATURES):
            width = min(_FEATURES, d - start)
            for lane in range(min(_LANES, n - a)):
                i, j = listed.row[a + lane], listed.column[a + lane]
                x, y = q.data[i, start : start + width], k.data[j, start : start + width]
                _square_gaps(x, y, squares[lane, :width])
            _add_in_order(squares[:, :width], sums)
        for lane in range(min(_LANES, n - a)):
            none = q.none[listed.row[a + lane]] or k.none[listed.column[a + lane]]
            listed.value[a + lane] = 1.0 if none else factor * sums[lane]


@as_written
def _square_gaps(x: Any, y: Any, out: Any) -> Any:
    for c in range(out.shape[0]):
        gap = np.float64(x[c]) - np.float64(y[c])
        out[c] = gap * gap


@as_written
def _add_in_order(squares: Any, sums: Any) -> Any:
    s0, s1, s2, s3 = sums[0], sums[1], sums[2], sums[3]
    s4, s5, s6, s7 = sums[4], sums[5], sums[6], sums[7]
    for c in range(squares.shape[1]):
        s0 += squares[0, c]
        s1 += squares[1, c]
        s2 += squares[2, c]
        s3 += squares[3, c]
        s4 += squares[4, c]
        s5 += squares[5, c]
        s6 += squares[6, c]
        s7 += squares[7, c]
    sums[0], sums[1], sums[2], sums[3] = s0, s1, s2, s3
    sums[4], sums[5], sums[6], sums[7] = s4, s5, s6, s7


@as_written
def _enter(n: Any, k: Any, best: Any, listed: Any) -> Any:
    """Merge the first n pairs of the list, measured, into the best of their rows."""
    begin = 0
    while begin < n:
        i, end = listed.row[begin], begin + 1
        while end < n and listed.row[end] == i:
            end += 1
        values = listed.value[begin:end]
        # Columns ascend, so a stable order puts the lowest index first.
        order = _order(values) if end > begin + 1 else _ALONE
        _merge(best.score[i], best.index[i], values, k.index, listed.column[begin:end], order)
        begin = end


@as_written
def _merge(score: Any, index: Any, values: Any, key_index: Any, column: Any, order: Any) -> Any:
    """Best of both lists by (score descending, index ascending), in place."""
    old_score, old_index = score.copy(), index.copy()
    a, b = 0, 0
    for place in range(score.shape[0]):
        new = False
        if b < order.shape[0] and values[order[b]] < np.inf:
            value, number = -values[order[b]], key_index[column[order[b]]]
            new = value > old_score[a] or (value == old_score[a] and number < old_index[a])
        if new:
            score[place], index[place] = value, number
            b += 1
        else:
            score[place], index[place] = old_score[a], old_index[a]
            a += 1
