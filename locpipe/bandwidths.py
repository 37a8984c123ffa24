"""Bandwidths per row: wide where the data is thin.

They ride in `locpipe.Keys` or `locpipe.Queries` as factors on the kernel's bandwidth.  In keys
they give the sample-point estimate, which is a density; in queries the balloon estimate, which
does not integrate to 1.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from array_api_compat import array_namespace, is_dask_array

from locpipe.blocks import Array
from locpipe.errors import InputError, shown
from locpipe.functions import Run, local_mean, log_density, nearest
from locpipe.graph import Keys, Queries
from locpipe.graph.prepare import checked_keys
from locpipe.kernels import Kernel
from locpipe.kernels.base import as_number
from locpipe.kernels.masks import Causal

__all__ = ["abramson_bandwidths", "neighbour_bandwidths"]

_EVERYONE = Causal(2**62)
"""Every key is a neighbour of every query, with weight 1."""


def abramson_bandwidths(
    keys: Any,
    kernel: Kernel,
    *,
    sample_weight: Any = None,
    clip: tuple[float, float] = (0.1, 10.0),
    **run: Unpack[Run],
) -> Array:
    """Factors on a bandwidth that shrink it where a pilot density is high.

    Parameters
    ----------
    keys : array (n_keys, n_features) or (n_keys,), NumPy or Dask, or Keys, PreparedKeys
        Not keys that stay in a store, since they are the queries too: give those as Dask arrays
        (``dask.array.from_zarr``).
    kernel : Kernel
        Of the pilot; one with a normaliser.
    sample_weight : array (n_keys,), optional
        Non-negative weights, of the pilot and of the geometric mean.
    clip : (low, high)
        Bounds of the factors, ``0 < low <= 1 <= high``: in the tails they are unbounded.  They are
        applied last, so where they act the geometric mean of the factors is no longer 1.
    **run
        As in `locpipe.log_density`.

    Returns
    -------
    array (n_keys,)
        Dtype of the keys.  A Dask array, lazy, if the keys are one; nothing is computed here.

    Raises
    ------
    InputError
        As `locpipe.log_density`; if `clip` does not hold 1, or the keys stay in a store.

    Notes
    -----
    ``lambda_i = (f(x_i) / g)^(-1/2)`` with the pilot density f and the weighted geometric mean g
    of ``f(x_i)``, in the log domain.  O(n_keys^2 n_features) time.

    References
    ----------
    Abramson (1982); Silverman (1986), section 5.3.

    Examples
    --------
    The sample-point estimate with the pilot's kernel:

    >>> import numpy as np, locpipe as lp
    >>> x, kernel = np.array([0.0, 1.0, 3.0]), lp.kernels.Gaussian(0.8)
    >>> factors = lp.abramson_bandwidths(x, kernel)
    >>> print(factors.round(6))
    [0.950496 0.936773 1.123092]
    >>> print(np.exp(lp.log_density([0.5], lp.Keys(x, bandwidth=factors), kernel)).round(6))
    [0.286005]
    """
    low, high = _checked_clip(clip)
    keys = _rows_of(keys, sample_weight)
    log_f = log_density(Queries(keys.data), keys, kernel, **run)
    xp = array_namespace(log_f)
    # Only keys of weight 0 can be where the pilot is 0, and they have no part in the mean.
    known = xp.where(xp.isfinite(log_f), log_f, xp.zeros_like(log_f))
    weighted = Keys(keys.data, values=known, sample_weight=keys.sample_weight)
    log_g = local_mean([0.0], weighted, kernel=_EVERYONE)
    factors = xp.exp(xp.clip(0.5 * (log_g - log_f), float(np.log(low)), float(np.log(high))))
    return xp.astype(factors, keys.data.dtype)


def _rows_of(keys: Any, sample_weight: Any) -> Keys:
    """Keys whose rows can be queries."""
    rows = checked_keys(keys, None, sample_weight)
    if not isinstance(rows, Keys):
        raise InputError(
            "keys must be arrays, NumPy or Dask, since each row is a query too, got a source "
            "that is read block by block; for a Zarr array take dask.array.from_zarr"
        )
    return rows


def neighbour_bandwidths(
    queries: Any,
    k: int,
    keys: Any = None,
    *,
    metric: str = "euclidean",
    floor: float = 1e-3,
    **run: Unpack[Run],
) -> Array:
    """Distance of each row to its k-th nearest neighbour.

    Parameters
    ----------
    queries : array (n_queries, n_features) or (n_queries,), NumPy or Dask, or Queries
    k : int
        Between 1 and the number of rows that can be neighbours.
    keys : array (n_keys, n_features), NumPy or Dask, or Keys, optional
        Where neighbours are looked for; default: the queries themselves, a row not counting as
        its own neighbour.
    metric : str
        As in `locpipe.nearest`.
    floor : float
        Distances below this fraction of the median positive distance are raised to it: duplicates
        are at distance 0, which is no bandwidth.
    **run
        As in `locpipe.nearest`.

    Returns
    -------
    array (n_queries,)
        Positive, dtype of the queries; rounded up by 4 units in the last place, so that the k-th
        neighbour is inside a ball of this radius.  A Dask array, lazy, if queries or keys are
        one; the median is then taken by one task over all n_queries distances.

    Raises
    ------
    InputError
        As `locpipe.nearest`; if `floor` is not between 0 and 1; if no distance is positive, or
        a row has fewer than k neighbours (weights of 0, equal ids, no feature in common).

    Notes
    -----
    O(n_queries n_keys n_features) time.

    References
    ----------
    Breiman, Meisel and Purcell (1977); Loftsgaarden and Quesenberry (1965); Terrell and Scott
    (1992); Zelnik-Manor and Perona (2004), equation 5.

    Examples
    --------
    The Loftsgaarden-Quesenberry density ``k / (n V_d r_k^d)``, a balloon estimate with a ball:

    >>> import numpy as np, locpipe as lp
    >>> x, q = np.array([0.0, 1.0, 2.0, 4.0, 8.0]), np.array([3.1])
    >>> r = lp.neighbour_bandwidths(q, 2, x)
    >>> print(np.exp(lp.log_density(lp.Queries(q, bandwidth=r), x, lp.kernels.Uniform())).round(6))
    [0.181818]

    The sample-point estimate, each key with its own scale:

    >>> s = lp.neighbour_bandwidths(x, 2)
    >>> print(np.exp(lp.log_density(q, lp.Keys(x, bandwidth=s), lp.kernels.Gaussian(0.5))).round(6))
    [0.095684]

    Local scaling ``exp(-d^2 / (s_i s_j))``: the root of s rides on both sides.

    >>> root, kernel = np.sqrt(s), lp.kernels.Gaussian(2**-0.5)
    >>> q_rows, k_rows = lp.Queries(x, bandwidth=root), lp.Keys(x, bandwidth=root)
    >>> print(lp.log_mass(q_rows, k_rows, kernel).round(6))
    [0.717216 0.81675  0.931224 0.714811 0.382545]
    """
    fraction = as_number(floor)
    if fraction is None or not 0 < fraction < 1:
        raise InputError(f"floor must be a number between 0 and 1, got {shown(floor)}")
    rows = queries if isinstance(queries, Queries) else Queries(queries)
    others = Keys(rows.data, ids=rows.ids) if keys is None else keys
    distances, _ = nearest(rows, others, k, metric=metric, exclude_self=keys is None, **run)
    kth: Any = distances[:, -1]
    if not is_dask_array(kth):
        return _raised(kth, fraction)
    whole = kth.rechunk(-1).map_blocks(_raised, fraction, dtype=kth.dtype, meta=kth._meta)
    return whole.rechunk(kth.chunks)


def _raised(distances: Array, floor: float) -> Array:
    """Distances rounded up, and none below the floor."""
    xp, limits = array_namespace(distances), array_namespace(distances).finfo(distances.dtype)
    if distances.shape[0] == 0:
        return distances
    wide = xp.astype(distances, xp.float64)  # a fraction of a float16 may be 0 in float16
    up, least = 1 + 4 * float(limits.eps), float(limits.smallest_normal) * float(limits.eps)
    _check_finite(wide * up <= float(limits.max))
    positive = wide[wide > 0]
    if positive.shape[0] == 0:
        raise InputError(
            "bandwidths from neighbours need rows at some distance, and every k-th neighbour is a "
            "duplicate; take a larger k or one bandwidth for all"
        )
    ordered = xp.sort(positive)
    median = 0.5 * (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2])
    return xp.astype(xp.maximum(wide * up, median * floor) + least, distances.dtype)


def _check_finite(finite: Array) -> None:
    xp = array_namespace(finite)
    if not bool(xp.all(finite)):
        row = int(xp.argmin(xp.astype(finite, xp.uint8)))
        raise InputError(
            f"bandwidths from neighbours must be finite, got inf for row {row}: fewer than k rows "
            "can be its neighbours; take a smaller k"
        )


def _checked_clip(clip: object) -> tuple[float, float]:
    bounds = [as_number(bound) for bound in clip] if isinstance(clip, tuple | list) else []
    match bounds:
        case [float(low), float(high)] if 0 < low <= 1 <= high:
            return low, high
    raise InputError(f"clip must be (low, high) with 0 < low <= 1 <= high, got {shown(clip)}")
