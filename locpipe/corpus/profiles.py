"""What stands around a word: its directed contexts, weighted by what they tell about it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csr_array

from locpipe.engines import single_threaded_libraries
from locpipe.errors import InputError

__all__ = ["check_counts", "check_targets", "context_profiles", "ppmi", "row_totals"]

Floats = NDArray[np.float64]


def ppmi(counts: csr_array, *, context_exponent: float = 0.75) -> csr_array:
    """Positive pointwise mutual information of rows with columns.

    Parameters
    ----------
    counts : sparse array (n_rows, n_columns)
        Non-negative; ``counts[i, j]`` says how often j was seen in the place of row i.
    context_exponent : float, default 0.75
        Power of the columns' totals: below 1 it takes weight from pairs with rare columns,
        which chance alone makes look strong; 1 is plain PPMI.

    Returns
    -------
    csr_array (n_rows, n_columns) float64
        ``max(0, log(C_ij / (C_i. p_j)))`` with ``p_j = C_.j^a / sum_j C_.j^a``, in nats;
        nothing stored where the count or the result is 0.

    References
    ----------
    .. [1] Church, K. and Hanks, P. (1990). Word association norms, mutual information, and
       lexicography. Computational Linguistics 16, 22-29.
    .. [2] Levy, O., Goldberg, Y. and Dagan, I. (2015). Improving distributional similarity with
       lessons learned from word embeddings. TACL 3, 211-225, section 3.2.

    Examples
    --------
    >>> counts = csr_array([[0, 4, 1], [2, 0, 3], [5, 1, 0]])
    >>> ppmi(counts, context_exponent=1.0).toarray().round(4)
    array([[0.    , 0.94  , 0.    ],
           [0.    , 0.    , 0.8755],
           [0.6444, 0.    , 0.    ]])
    """
    check_counts(counts)
    seen = sparse.coo_array(counts, dtype=np.float64)
    seen.sum_duplicates()
    seen.eliminate_zeros()
    expected = row_totals(counts)[seen.row] * _context_shares(counts, context_exponent)[seen.col]
    information = np.maximum(np.log(seen.data / expected), 0.0)
    result = csr_array((information, (seen.row, seen.col)), shape=seen.shape)
    result.eliminate_zeros()
    return result


def context_profiles(
    counts: csr_array,
    targets: ArrayLike,
    *,
    n_components: int = 50,
    context_exponent: float = 0.75,
    random_state: int = 0,
) -> Floats:
    """Describe each target word by what stands before it and what stands after it.

    The PPMI of the words that follow and that of the words that precede stand side by side,
    each word's row has length 1, and a truncated SVD brings them to a few numbers.

    Parameters
    ----------
    counts : sparse array (V, V)
        ``counts[i, j]``: how often word j follows word i within the window.
    targets : (n,) int
        The words to describe; all V words are contexts.
    n_components : int, default 50
    context_exponent : float, default 0.75
        See `ppmi`.
    random_state : int, default 0
        Start vector of the SVD.

    Returns
    -------
    (n, min(n_components, n)) float64
        Rows of length 1, so that distances order words as cosines do; a word without any
        informative context has zeros.

    Raises
    ------
    InputError
        If `counts` is not square, a target is out of range, or `n_components` is below 1.

    Notes
    -----
    Right and left contexts are kept apart because word order is what tells a verb of speech
    from the name beside it.  Rows get length 1 *before* the SVD, or the few words with most
    contexts would take all components; components are scaled by the square root of their
    singular values [1]_.  O(nnz n_components) time.

    References
    ----------
    .. [1] Levy, O., Goldberg, Y. and Dagan, I. (2015). Improving distributional similarity with
       lessons learned from word embeddings. TACL 3, 211-225, section 3.3.

    Examples
    --------
    >>> counts = csr_array([[0, 4, 1, 1], [2, 0, 3, 0], [5, 1, 0, 2], [2, 1, 0, 1]])
    >>> profiles = context_profiles(counts, [0, 1, 2], n_components=2)
    >>> profiles.shape, np.linalg.norm(profiles, axis=1).round(6)
    ((3, 2), array([1., 1., 1.]))
    """
    targets = check_targets(counts, targets)
    if n_components < 1:
        raise InputError(f"n_components must be at least 1, got {n_components}")
    sides = [
        ppmi(side, context_exponent=context_exponent)[targets]
        for side in (counts.T.tocsr(), csr_array(counts))
    ]
    contexts = sparse.hstack(sides, format="csr")
    lengths = np.sqrt(row_totals(contexts.multiply(contexts)))
    contexts = sparse.diags_array(_inverse(lengths)) @ contexts
    u, s = _leading_svd(contexts, n_components, random_state)
    profiles = u * np.sqrt(s)
    unit: Floats = profiles * _inverse(np.linalg.norm(profiles, axis=1))[:, None]
    return unit


def check_counts(counts: csr_array) -> None:
    """Refuse what is not a table of counts."""
    if not sparse.issparse(counts) or counts.ndim != 2:
        raise InputError(f"counts must be a 2-d sparse array, got {type(counts).__name__}")
    if counts.nnz and counts.data.min() < 0:
        raise InputError(f"counts must be non-negative, got {counts.data.min()}")
    if counts.sum() == 0:
        raise InputError("counts must have a pair that occurs, got none; give more text")


def check_targets(counts: csr_array, targets: ArrayLike) -> NDArray[np.int64]:
    """Word indices as an array; refuses those that `counts` does not have."""
    check_counts(counts)
    chosen = np.asarray(targets, dtype=np.int64)
    n_words = counts.shape[0]
    if counts.shape[1] != n_words:
        raise InputError(f"counts must be square, words by words, got {counts.shape}")
    if chosen.ndim != 1 or len(chosen) == 0:
        raise InputError(f"targets must be a list of word indices, got shape {chosen.shape}")
    if chosen.min() < 0 or chosen.max() >= n_words:
        raise InputError(
            f"targets must be indices of the {n_words} words, got {chosen.min()} to {chosen.max()}"
        )
    return chosen


def _leading_svd(matrix: csr_array, n_components: int, seed: int) -> tuple[Floats, Floats]:
    """Left vectors and singular values, largest first, signs fixed."""
    k = min(n_components, *matrix.shape)
    with single_threaded_libraries():
        # ARPACK finds at most all but one; a matrix that small is quickly done in full.
        if k < min(matrix.shape) - 1:
            start = np.random.default_rng(seed).standard_normal(min(matrix.shape))
            u, s = sparse.linalg.svds(matrix, k=k, v0=start)[:2]
        else:
            u, s = np.linalg.svd(matrix.toarray(), full_matrices=False)[:2]
    order = np.argsort(-s, kind="stable")[:k]
    u = u[:, order]
    signs = np.sign(np.take_along_axis(u, np.abs(u).argmax(axis=0)[None], axis=0))
    return u * signs, np.asarray(s[order], dtype=np.float64)


def _context_shares(counts: csr_array, exponent: float) -> Floats:
    totals = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel() ** exponent
    shares: Floats = totals / totals.sum()
    return shares


def row_totals(counts: csr_array) -> Floats:
    """Sums of the rows (n_rows,)."""
    return np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()


def _inverse(lengths: Floats) -> Floats:
    """``1 / length``, and 0 for a row of zeros, which stays one."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
