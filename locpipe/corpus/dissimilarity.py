"""From directed counts to dissimilarities: the one door to all between counts and a map.

A matrix of dissimilarities is made a block of rows at a time, so that a flow can spread the
rows; the bits do not depend on how the rows are cut.  Each block comes as ``(delta, weight)``,
what `locpipe.methods.AsymmetricMDS` fits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from locpipe import functions
from locpipe.corpus.map_quality import (
    MapQuality,
    map_quality,
    neighbour_overlap,
    radius_spread,
    ring_warning,
)
from locpipe.corpus.profiles import check_targets, context_profiles, ppmi, row_totals
from locpipe.errors import InputError
from locpipe.graph import Queries

__all__ = [
    "MapQuality",
    "conditional_dissimilarity",
    "context_profiles",
    "map_quality",
    "neighbour_overlap",
    "ppmi",
    "ppmi_dissimilarity",
    "radius_spread",
    "rank_dissimilarity",
    "ring_warning",
]

Floats = NDArray[np.float64]
Cells = tuple[Floats, Floats]


def rank_dissimilarity(
    profiles: ArrayLike, rows: slice, *, n_near: int = 15, far_weight: float = 0.005
) -> Cells:
    """Place of each word among the neighbours of the row's word, for a block of rows.

    Parameters
    ----------
    profiles : (n, n_features)
        From `context_profiles`; Euclidean distances between rows are what is ranked.
    rows : slice
        Rows of the result; ``slice(0, n)`` gives all.
    n_near : int, default 15
        Neighbours that count in full.
    far_weight : float, default 0.005
        Weight of all other words.

    Returns
    -------
    delta : (n_rows, n) float64
        ``rank / (n - 1)``, from 0 for the word itself to 1 for the farthest; equal distances
        stand by ascending index.  Not symmetric: a rare word's nearest neighbour has others
        that are nearer to it.
    weight : (n_rows, n) float64
        1 for the `n_near` nearest, `far_weight` for the rest, 0 for the word itself.

    Raises
    ------
    InputError
        If there are fewer than two profiles, `rows` is out of range, `n_near` is below 1, or
        `far_weight` is not between 0 and 1.

    Notes
    -----
    Distances in many dimensions are all alike, and a map that fits them is a ball or a ring;
    ranks spread them out, and the weights spend the map's two dimensions on neighbours.
    O(n_rows n (n_features + log n)) time, O(n_rows n) memory.

    Examples
    --------
    >>> delta, weight = rank_dissimilarity([[0.0], [1.0], [3.0]], slice(0, 3), n_near=1)
    >>> delta
    array([[0. , 0.5, 1. ],
           [0.5, 0. , 1. ],
           [1. , 0.5, 0. ]])
    >>> weight
    array([[0.   , 1.   , 0.005],
           [1.   , 0.   , 0.005],
           [0.005, 1.   , 0.   ]])
    """
    keys = np.asarray(profiles, dtype=np.float64)
    n = len(keys)
    own = _check_rows(rows, n)
    if n < 2:
        raise InputError(f"ranks need at least two profiles, got {n}")
    if n_near < 1:
        raise InputError(f"n_near must be at least 1, got {n_near}")
    _check_share("far_weight", far_weight)
    _, order = functions.nearest(Queries(keys[rows], ids=own), keys, n - 1, exclude_self=True)
    rank = np.zeros((len(own), n))
    np.put_along_axis(rank, order, np.arange(1.0, n), axis=1)
    weight = np.where(rank <= n_near, 1.0, far_weight)
    weight[np.arange(len(own)), own] = 0.0
    return rank / (n - 1), weight


def conditional_dissimilarity(
    counts: csr_array,
    targets: ArrayLike,
    rows: slice,
    *,
    smoothing: float = 0.5,
    unseen_weight: float = 0.01,
) -> Cells:
    """Surprise at one word after another, ``-log P(j | i)``, for a block of rows.

    Parameters
    ----------
    counts : sparse array (V, V)
        ``counts[i, j]``: how often word j follows word i.
    targets : (n,) int
        The words that make the matrix; all V words enter the totals.
    rows : slice
        Rows of the result.
    smoothing : float, default 0.5
        Added to every count; > 0, and decisive where most counts are 0.
    unseen_weight : float, default 0.01
        Weight of pairs that never occurred.

    Returns
    -------
    delta : (n_rows, n) float64
        ``-log((C_ij + a) / (C_i. + a V))``, in nats.
    weight : (n_rows, n) float64
        1 where the pair was seen, `unseen_weight` elsewhere.

    Raises
    ------
    InputError
        If an argument is out of range.

    Notes
    -----
    Equals ``-PMI_ij - log p_j``: much of it is plain frequency.  On large vocabularies maps of
    it tend to a ring; `rank_dissimilarity` is the better start.

    References
    ----------
    .. [1] Levy, O., Goldberg, Y. and Dagan, I. (2015). TACL 3, 211-225.

    Examples
    --------
    >>> counts = csr_array([[0, 4, 1], [2, 0, 3], [5, 1, 0]])
    >>> delta, weight = conditional_dissimilarity(counts, [0, 1, 2], slice(0, 1))
    >>> delta.round(6), weight
    (array([[2.564949, 0.367725, 1.466337]]), array([[0.01, 1.  , 1.  ]]))
    """
    targets = check_targets(counts, targets)
    if not smoothing > 0:
        raise InputError(f"smoothing must be above 0, got {smoothing}; log 0 is infinite")
    _check_share("unseen_weight", unseen_weight)
    chosen = targets[_check_rows(rows, len(targets))]
    seen = _dense(csr_array(counts), chosen, targets)
    totals = row_totals(counts)[chosen] + smoothing * counts.shape[1]
    return np.log(totals)[:, None] - np.log(seen + smoothing), _seen_weight(seen, unseen_weight)


def ppmi_dissimilarity(
    counts: csr_array,
    targets: ArrayLike,
    rows: slice,
    *,
    context_exponent: float = 0.75,
    unseen_weight: float = 0.01,
) -> Cells:
    """Association turned round, ``exp(-PPMI)``, for a block of rows.

    Parameters
    ----------
    counts : sparse array (V, V)
        ``counts[i, j]``: how often word j follows word i.
    targets : (n,) int
        The words that make the matrix; all V words enter the totals.
    rows : slice
        Rows of the result.
    context_exponent : float, default 0.75
        See `ppmi`.
    unseen_weight : float, default 0.01
        Weight of pairs that never occurred.

    Returns
    -------
    delta : (n_rows, n) float64
        Between 0 and 1: expected over observed count, 1 where chance explains the pair.
    weight : (n_rows, n) float64
        1 where the pair was seen, `unseen_weight` elsewhere.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> counts = csr_array([[0, 4, 1], [2, 0, 3], [5, 1, 0]])
    >>> delta, _ = ppmi_dissimilarity(counts, [0, 1, 2], slice(0, 1), context_exponent=1.0)
    >>> delta.round(6)
    array([[1.      , 0.390625, 1.      ]])
    """
    targets = check_targets(counts, targets)
    _check_share("unseen_weight", unseen_weight)
    chosen = targets[_check_rows(rows, len(targets))]
    information = _dense(ppmi(counts, context_exponent=context_exponent), chosen, targets)
    seen = _dense(csr_array(counts), chosen, targets)
    return np.exp(-information), _seen_weight(seen, unseen_weight)


def _dense(matrix: csr_array, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Floats:
    return np.asarray(matrix[rows][:, columns].toarray(), dtype=np.float64)


def _seen_weight(seen: Floats, unseen_weight: float) -> Floats:
    return np.where(seen > 0, 1.0, unseen_weight)


def _check_rows(rows: slice, n: int) -> NDArray[np.int64]:
    start, stop, step = rows.indices(n)
    if step != 1 or start >= stop or (rows.stop is not None and rows.stop > n):
        raise InputError(f"rows must be a slice within the {n} rows, got {rows}")
    return np.arange(start, stop)


def _check_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise InputError(f"{name} must be between 0 and 1, got {share}")
