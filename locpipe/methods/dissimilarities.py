"""Dissimilarities, checked at the door, and their symmetric and skew parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locpipe.blocks import ArrayPairs
from locpipe.errors import InputError

__all__ = ["as_cells", "check_seed", "symmetric_and_skew"]

Floats = NDArray[np.float64]


def as_cells(D: ArrayLike, weight: ArrayLike | None = None) -> ArrayPairs:
    """Checked dissimilarities and weights.

    Parameters
    ----------
    D : (m, n)
        Non-negative; NaN is missing.
    weight : (m, n), optional
        Non-negative.

    Returns
    -------
    ArrayPairs
        float64; cells without weight and missing ones count nothing.

    Raises
    ------
    InputError
        If D is not a matrix, has a negative or infinite value, is 0 throughout, or has a row or
        column without a cell that counts; if the weights do not fit D, or are negative or not
        finite.

    Examples
    --------
    >>> as_cells([[0.0, 2.0], [float("nan"), 0.0]]).shape
    (2, 2)
    """
    delta = _as_floats(D, "dissimilarities")
    if delta.ndim != 2 or 0 in delta.shape:
        raise InputError(
            f"dissimilarities must be a matrix with rows and columns, got shape {delta.shape}"
        )
    _refuse(delta < 0, delta, "dissimilarities must be non-negative")
    _refuse(np.isinf(delta), delta, "dissimilarities must be finite, or NaN where missing")
    weights = None if weight is None else _as_weights(weight, delta.shape)
    counts = ~np.isnan(delta) if weights is None else ~np.isnan(delta) & (weights > 0)
    for axis, line in ((1, "row"), (0, "column")):
        if len(empty := np.flatnonzero(~counts.any(axis=axis))):
            raise InputError(
                f"every {line} must have a dissimilarity that is neither missing nor of weight 0, "
                f"but {line} {empty[0]} has none; drop it"
            )
    if not delta[counts].any():
        raise InputError("dissimilarities must not all be 0: there is nothing to map")
    return ArrayPairs(delta, weights)


def symmetric_and_skew(D: ArrayLike) -> tuple[Floats, Floats]:
    """Split a square matrix into what a symmetric map could show, and what it could not.

    Parameters
    ----------
    D : (n, n)

    Returns
    -------
    symmetric, skew : (n, n) float64
        ``(D + D^T) / 2`` and ``(D - D^T) / 2``; they sum to D, and so do their squared norms
        to that of D.

    Raises
    ------
    InputError
        If D is not square.

    References
    ----------
    .. [1] Gower, J. C. (1977). The analysis of asymmetry and orthogonality. In Recent
       Developments in Statistics, 109-123.

    Examples
    --------
    >>> symmetric_and_skew([[0, 2], [5, 0]])[1]
    array([[ 0. , -1.5],
           [ 1.5,  0. ]])
    """
    delta = _as_floats(D, "dissimilarities")
    if delta.ndim != 2 or delta.shape[0] != delta.shape[1]:
        raise InputError(
            f"dissimilarities must be square to have a skew part, got shape {delta.shape}"
        )
    return (delta + delta.T) / 2, (delta - delta.T) / 2


def check_seed(seed: object) -> None:
    """Refuse seeds that do not repeat a fit."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"random_state must be a whole number of at least 0, got {seed!r}")


def _as_floats(array: ArrayLike, name: str) -> Floats:
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, rows of one length: {error}") from None


def _as_weights(weight: ArrayLike, shape: tuple[int, ...]) -> Floats:
    weights = _as_floats(weight, "weights")
    if weights.shape != shape:
        raise InputError(
            f"weights must have the shape of the dissimilarities {shape}, got {weights.shape}"
        )
    _refuse(~(np.isfinite(weights) & (weights >= 0)), weights, "weights must be finite and >= 0")
    return weights


def _refuse(bad: NDArray[np.bool_], array: Floats, rule: str) -> None:
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise InputError(f"{rule}, got {array[i, j]} in row {i}, column {j}")
