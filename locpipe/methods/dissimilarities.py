"""Dissimilarities, checked at the door, and their symmetric and skew parts."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locpipe.blocks import ArrayPairs
from locpipe.errors import InputError

__all__ = [
    "as_cells",
    "as_floats",
    "check_real",
    "check_seed",
    "check_whole",
    "symmetric_and_skew",
]

Floats = NDArray[np.float64]

LARGEST = 1e300
"""Largest dissimilarity: a map somewhat wider than that still has finite coordinates."""


def as_cells(D: ArrayLike, weight: ArrayLike | None = None) -> ArrayPairs:
    """Checked dissimilarities and weights.

    Parameters
    ----------
    D : (m, n)
        Non-negative; NaN is missing, and so is a masked cell of a masked array.
    weight : (m, n), optional
        Non-negative; a masked weight is 0.

    Returns
    -------
    ArrayPairs
        float64; cells without weight and missing ones count nothing.

    Raises
    ------
    InputError
        If D is not a matrix, has a negative or infinite value or one above 1e300, is 0
        throughout, or has a row or column without a cell that counts; if the weights do not fit
        D, or are negative or not finite; if either is complex, or not numbers.

    Examples
    --------
    >>> as_cells([[0.0, 2.0], [float("nan"), 0.0]]).shape
    (2, 2)
    """
    delta = as_floats(D, "dissimilarities")
    if delta.ndim != 2 or 0 in delta.shape:
        raise InputError(
            f"dissimilarities must be a matrix with rows and columns, got shape {delta.shape}"
        )
    _refuse(delta < 0, delta, "dissimilarities must be non-negative")
    _refuse(np.isinf(delta), delta, "dissimilarities must be finite, or NaN where missing")
    _refuse(delta > LARGEST, delta, f"dissimilarities must be at most {LARGEST}; divide them all")
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
    delta = as_floats(D, "dissimilarities")
    if delta.ndim != 2 or delta.shape[0] != delta.shape[1]:
        raise InputError(
            f"dissimilarities must be square to have a skew part, got shape {delta.shape}"
        )
    return (delta + delta.T) / 2, (delta - delta.T) / 2


def check_seed(seed: object) -> None:
    """Refuse seeds that do not repeat a fit."""
    check_whole("random_state", seed, least=0)


def check_whole(name: str, value: object, *, least: int) -> None:
    """Refuse all but whole numbers from `least`; True is not 1, and 2.0 may be a slip."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")


def check_real(name: str, value: object, least: float, below: float = math.inf) -> None:
    """Refuse all but numbers from `least` to less than `below`."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_real and least <= value < below):  # type: ignore[operator]
        span = f"{least} or more" if below == math.inf else f"from {least} to below {below}"
        raise InputError(f"{name} must be a number {span}, got {value!r}")


def as_floats(array: ArrayLike, name: str, *, masked: float = math.nan) -> Floats:
    """An array of float64, `masked` where the array is masked; complex and text are refused."""
    try:
        given = _with_mask(array)
        is_real = given.dtype.kind in "biufO"
        floats: Floats = (
            np.ma.filled(given.astype(np.float64, copy=False), masked) if is_real else np.empty(0)
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, rows of one length: {error}") from None
    if not is_real:
        raise InputError(f"{name} must be real numbers, got {given.dtype}; convert them first")
    return floats


def _with_mask(array: ArrayLike) -> NDArray[np.generic]:
    rows = array if isinstance(array, list | tuple) else ()
    # numpy drops the masks of rows in a list.
    if isinstance(array, np.ma.MaskedArray) or any(
        isinstance(row, np.ma.MaskedArray) for row in rows
    ):
        return np.ma.asarray(array)
    return np.asarray(array)


def _as_weights(weight: ArrayLike, shape: tuple[int, ...]) -> Floats:
    weights = as_floats(weight, "weights", masked=0.0)
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
