"""Compiled: from scores that may be a little wrong to the k best keys that are right."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locpipe.engines.fused.compiled import as_written
from locpipe.engines.ranked.loops import at_least, compiled, found_in, inlined, measure_in_order

__all__ = ["Best", "Bound", "Pairs", "Room", "Rows", "fold_tile", "room_for"]

_TRIAL_ROWS = 16
"""Rows before it is judged whether scores are good enough."""


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


class Room(NamedTuple):
    """What a row is worked on in; made once, as making arrays takes Numba seconds to compile.

    Attributes
    ----------
    found : Found
        Columns of scores that reach a floor.
    column : int64 array (n_keys,)
        Those that may be among the best, ascending.
    value : float64 array (n_keys,)
        What their surrogates do not exceed; once measured, the surrogates.
    order, spare : int64 arrays (n_keys,)
    score, index : arrays (k,)
    """

    found: Any
    column: Any
    value: Any
    order: Any
    spare: Any
    score: Any
    index: Any


def room_for(n_keys: int, n_best: int) -> Room:
    """Room for tiles of so many keys, at most."""
    column, order, spare = (np.empty(n_keys, np.int64) for _ in range(3))
    best = np.empty(n_best), np.empty(n_best, np.int64)
    return Room(found_in(n_keys), column, np.empty(n_keys), order, spare, *best)


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
    column, value, doubtful = room.column, room.value, 0
    for i in range(first, pairs.near.shape[0]):
        n = _list_row(i, q, k, pairs, bound, best, room)
        if not bound.exact:
            measure_in_order(q.data[i], k.data, column, value, n)
            _in_units(bound.factor, q.none[i], k.none, column, value, n)
        _enter(best.score[i], best.index[i], k.index, n, room)
        doubtful += n
        n_done = i + 1 - first
        if n_done >= _TRIAL_ROWS and doubtful > most * n_done:
            return i + 1
    return pairs.near.shape[0]


@inlined
def _list_row(i: Any, q: Any, k: Any, pairs: Any, bound: Any, best: Any, room: Any) -> Any:
    """List what may be among the best of row i; how many."""
    # Each use of an array in a tuple counts its references, so the loop takes none from there.
    near, half, square, squares = pairs.near[i], pairs.half, q.squares[i], k.squares
    by_ids, ids, index, exact = k.ids.shape[0] > 0, k.ids, k.index, bound.exact
    own = q.ids[i] if by_ids else np.int64(0)
    score, found, column, value = best.score[i], room.found.column, room.column, room.value
    n_best = score.shape[0]
    tie, last = -score[n_best - 1], best.index[i, n_best - 1]
    floor = _floor(tie, square, bound)
    n: Any = np.int64(0)
    full = 2 * n_best + 64
    for a in range(at_least(near, half, near.dtype.type(floor), room.found)):
        j = found[a]
        proposed = np.float64(near[j] - half[j])
        if proposed < floor or proposed == -np.inf or (by_ids and ids[j] == own):
            continue
        if exact and -proposed == tie and index[j] > last:
            continue
        column[n], value[n] = j, _upper(proposed, square, squares[j], bound)
        n += 1
        if n == full:
            floor = _floor(_kth(score, n, room), square, bound)
            n = _keep(n, near, half, floor, room)
            full = max(full, 2 * n)  # ties: only measuring tells them apart
    floor = _floor(_kth(score, n, room), square, bound)
    return _keep(n, near, half, floor, room)


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
def _kth(score: Any, n: Any, room: Any) -> Any:
    """The k-th least of the first n values and the k of a row's best so far."""
    value, order, a, b = room.value, _order(n, room.value, room.order, room.spare), 0, 0
    for _ in range(score.shape[0] - 1):
        if b < n and value[order[b]] < -score[a]:
            b += 1
        else:
            a += 1
    return min(-score[a], value[order[b]]) if b < n else -score[a]


@as_written
def _order(n: Any, values: Any, order: Any, spare: Any) -> Any:
    """Places of the first n values in ascending order, equal ones as they stand: a merge sort.

    That of NumPy takes Numba seconds to compile.
    """
    for a in range(n):
        order[a] = a
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
def _keep(n: Any, near: Any, half: Any, floor: Any, room: Any) -> Any:
    """Drop what is below the floor from the first n of the list; how many are left."""
    column, value = room.column, room.value
    kept: Any = np.int64(0)
    for a in range(n):
        j = column[a]
        column[kept], value[kept] = j, value[a]
        kept += np.int64(np.float64(near[j] - half[j]) >= floor)
    return kept


@as_written
def _in_units(factor: Any, none: Any, nones: Any, column: Any, value: Any, n: Any) -> Any:
    """Surrogates from the first n squared distances; 1 where a row has no direction."""
    for a in range(n):
        value[a] = 1.0 if none or nones[column[a]] else factor * value[a]


@as_written
def _enter(score: Any, index: Any, key_index: Any, n: Any, room: Any) -> Any:
    """Merge the first n of the list into the best by (score descending, index ascending)."""
    if n == 0:
        return
    column, value, old_score, old_index = room.column, room.value, room.score, room.index
    # Columns ascend, so a stable order puts the lowest index first.
    order = _order(n, value, room.order, room.spare)
    for place in range(score.shape[0]):
        old_score[place], old_index[place] = score[place], index[place]
    a, b = 0, 0
    for place in range(score.shape[0]):
        new = False
        if b < n and value[order[b]] < np.inf:
            proposed, number = -value[order[b]], key_index[column[order[b]]]
            equal = proposed == old_score[a]
            new = proposed > old_score[a] or (equal and number < old_index[a])
        if new:
            score[place], index[place] = proposed, number
            b += 1
        else:
            score[place], index[place] = old_score[a], old_index[a]
            a += 1
