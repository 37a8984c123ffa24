"""The functions that most users call: local mean, density, nearest neighbours.

Queries and keys are arrays (NumPy or Dask; 1-d means one feature), or `lp.Queries` and `lp.Keys`
with per-row attributes; keys may also be a `KeySource` that reads a store block by block, or come
from `lp.prepare`.
Arrays in memory give an array in memory; any Dask array among them gives a lazy Dask array, and
then nothing is computed here.
"""

from __future__ import annotations

from math import nan
from typing import Any, Unpack

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array
from locpipe.errors import InputError, shown
from locpipe.graph import Keys, KeySource
from locpipe.graph.fold import fold_checked
from locpipe.graph.inputs import as_queries, as_result
from locpipe.graph.prepare import checked_keys, prepared_of
from locpipe.kernels import Kernel, Nearness, Normalized
from locpipe.kernels.masks import ExcludeSelf
from locpipe.metrics import METRICS, metric_of
from locpipe.options import Checked, Run, check_run
from locpipe.reductions import LogMass, Reduction, TopK, WeightedMean

__all__ = ["Run", "fold", "local_mean", "log_density", "log_mass", "nearest"]


def local_mean(
    queries: Any,
    keys: Any,
    values: Any = None,
    kernel: Kernel | None = None,
    *,
    sample_weight: Any = None,
    **run: Unpack[Run],
) -> Array:
    """Kernel-weighted mean of the values around each query.

    Parameters
    ----------
    queries : array (n_queries, n_features) or (n_queries,), NumPy or Dask, or Queries
    keys : array (n_keys, n_features) or (n_keys,), NumPy or Dask, or Keys, KeySource, PreparedKeys
    values : array (n_keys, n_outputs) or (n_keys,)
        Leave it out where the keys carry theirs.
    kernel : Kernel
        Required; give it by name where `values` is left out.
    sample_weight : array (n_keys,), optional
        Non-negative weights.
    **run
        Options of all functions (`lp.functions.Run`): engine, rtol, memory_limit, n_threads,
        empty.

    Returns
    -------
    array (n_queries, n_outputs), or (n_queries,) for 1-d values
        Array kind and dtype of the queries; integers give float64.  A result that is too large
        for that dtype is refused, never infinite.

    Raises
    ------
    InputError
        If shapes disagree, data is not finite, a weight is negative or all are 0, or a result
        does not fit the dtype of the queries.

    Notes
    -----
    ``sum_i w_i v_i / sum_i w_i`` with ``w_i = sample_weight_i K(q, k_i)``, summed in the log
    domain in float64: a query far off the data gets the value of its nearest key, never 0/0.
    O(n_queries n_keys (n_features + n_outputs)) time; memory is one tile of pairs.

    References
    ----------
    Nadaraya (1964); Watson (1964); Song (2026), section 2.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> x, y = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0, 5.0])
    >>> print(lp.local_mean([1.5], x, y, lp.kernels.Gaussian(1.0))[0].round(6))
    2.323238
    """
    options = check_run(run)
    _check_values(values)
    kernel, missing = check_kernel(kernel), _allows_missing(kernel)
    queries, prepared = as_queries(queries, allow_missing=missing), prepared_of(keys)
    keys = keys_of(keys, values, sample_weight, allow_missing=missing)
    n_outputs, flat = outputs_of(keys)
    (mean,) = fold_checked(
        WeightedMean(n_outputs), queries, keys, kernel, prepared=prepared, **options
    )
    mean = mean[:, 0] if flat else mean
    return as_result(mean, queries)


def log_mass(
    queries: Any, keys: Any, kernel: Kernel, *, sample_weight: Any = None, **run: Unpack[Run]
) -> Array:
    """Log of the total weight around each query, not normalised.

    Parameters
    ----------
    queries, keys, sample_weight, **run
        As in `local_mean`.
    kernel : Kernel

    Returns
    -------
    array (n_queries,)
        ``log sum_i sample_weight_i K(q, k_i)``; ``-inf`` with no neighbour.

    Raises
    ------
    InputError
        As `local_mean`.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> log_mass = lp.log_mass([[0.0]], np.zeros((10, 1)), lp.kernels.Gaussian(1.0))
    >>> print(np.exp(log_mass).round(6))
    [10.]
    """
    options = check_run(run)
    kernel, missing = check_kernel(kernel), _allows_missing(kernel)
    queries, prepared = as_queries(queries, allow_missing=missing), prepared_of(keys)
    keys = keys_of(keys, None, sample_weight, allow_missing=missing)
    options = _never_empty(options)
    log_total = fold_checked(LogMass(), queries, keys, kernel, prepared=prepared, **options)[0]
    return as_result(log_total, queries)


def log_density(
    queries: Any, keys: Any, kernel: Kernel, *, sample_weight: Any = None, **run: Unpack[Run]
) -> Array:
    """Log of the kernel density estimate at each query.

    Parameters
    ----------
    queries, keys, sample_weight, **run
        As in `local_mean`.  Bandwidths that ride in `Keys` give the sample-point estimate,
        in `Queries` the balloon estimate.
    kernel : Kernel
        One with a normaliser.

    Returns
    -------
    array (n_queries,)
        ``log( sum_i w_i c prod(h)^-1 K(q, k_i) / sum_i w_i )``, in log of 1 / feature
        units^n_features; positive values are right where the density exceeds 1.

    Raises
    ------
    InputError
        As `local_mean`, and if the kernel has no normaliser.

    References
    ----------
    Silverman (1986), *Density Estimation*, equation 4.1.

    Examples
    --------
    >>> import locpipe as lp
    >>> print(lp.log_density([[100.0]], [[0.0], [1.0]], lp.kernels.Gaussian(1.0))[0].round(6))
    -4902.112086
    """
    options, prepared = _never_empty(check_run(run)), prepared_of(keys)
    queries, keys = as_queries(queries), keys_of(keys, None, sample_weight)
    log_total, _, key_weight = fold_checked(
        LogMass(), queries, keys, Normalized(check_kernel(kernel)), prepared=prepared, **options
    )
    xp = array_namespace(log_total)
    return as_result(log_total - xp.log(key_weight), queries)


def nearest(
    queries: Any,
    keys: Any,
    k: int,
    *,
    metric: str = "euclidean",
    exclude_self: bool = False,
    **run: Unpack[Run],
) -> tuple[Array, Array]:
    """The k nearest keys of each query, exactly.

    Parameters
    ----------
    queries, keys, **run
        As in `local_mean`.  Sample weights have no part in a distance: a key of weight 0 is no
        neighbour, and all others are alike.
    k : int
        Between 1 and the number of keys (less 1 with `exclude_self`).
    metric : {"euclidean", "manhattan", "cosine", "nan-euclidean", "haversine"}
        Cosine distance is ``1 - cos``, and 1 from a row of zeros to all.  With nan-euclidean,
        NaN is a missing value: squared distances over shared features, times all over shared;
        rows that share none are no neighbours (index -1, distance infinite).  Haversine takes
        (latitude, longitude) in radians and gives the angle in radians.
    exclude_self : bool
        Leave out the key with the query's own id.  Rows are told apart by their index, so for
        some of the rows alone (a fold of cross-validation) give their ids too:
        ``lp.Queries(x[rows], ids=rows)``.

    Returns
    -------
    distances : array (n_queries, k)
        Ascending, in feature units, dtype of the queries.  Infinite where fewer than k keys can
        be neighbours of a query.
    indices : int64 array (n_queries, k)
        Equal distances stand by ascending key index, whatever the chunking; -1 where the distance
        is infinite.

    Raises
    ------
    InputError
        If k is out of range, shapes disagree, or data is not finite.

    Notes
    -----
    Distances are formed from differences in float64.  O(n_queries n_keys n_features) time;
    memory is one tile of pairs.

    Examples
    --------
    >>> import locpipe as lp
    >>> distances, indices = lp.nearest([[0.0, 0.0]], [[1, 0], [0, 1], [-1, 0], [0, -1]], k=2)
    >>> print(distances, indices)
    [[1. 1.]] [[0 1]]
    """
    options, prepared = _never_empty(check_run(run)), prepared_of(keys)
    allow_missing = metric in METRICS and METRICS[metric].allows_missing
    queries = as_queries(queries, allow_missing=allow_missing)
    keys = keys_of(keys, None, None, allow_missing=allow_missing)
    found = metric_of(metric, int(queries.data.shape[1]))
    best = best_keys(k, keys, exclude_self)
    kernel = Nearness(metric) * ExcludeSelf() if exclude_self else Nearness(metric)
    score, index = fold_checked(
        best, queries, keys, kernel, prepared=prepared, weights_as_mask=True, **options
    )
    xp = array_namespace(score)
    distance = xp.where(index < 0, xp.inf, found.distance(xp.abs(score)))
    return as_result(distance, queries), index


def fold(
    reduction: Reduction,
    queries: Any,
    keys: Any,
    kernel: Kernel | None = None,
    pairs: Any = None,
    **run: Unpack[Run],
) -> tuple[Array, ...]:
    """Fold all keys into each query under a kernel: what every other function is made of.

    Parameters
    ----------
    reduction : Reduction
        What is kept, from `lp.reductions` or your own.
    queries, keys
        As in `local_mean`; values and weights ride in `Keys`.
    kernel : Kernel, optional
        Who is near whom; not needed by reductions that work on `pairs` alone.
    pairs : array (n_queries, n_keys), NumPy or Dask, scipy.sparse matrix, or PairSource, optional
        Data per pair.
    **run
        Options, as in `local_mean`.

    Returns
    -------
    tuple of float64 arrays
        What the reduction finalizes to, of the kind of the queries; lazy and chunked as they
        are if queries, keys or pairs are Dask arrays.

    Raises
    ------
    InputError
        As `local_mean`; if the reduction needs a kernel, pairs or values and there are none, or
        was made for another number of features or outputs.

    Examples
    --------
    >>> import locpipe as lp
    >>> score, index = lp.fold(
    ...     lp.reductions.ArgBest(), [0.9], [0.0, 1.0], lp.kernels.Gaussian(1.0)
    ... )
    >>> index
    array([1])
    """
    options = check_run(run)
    check_reduction(reduction)
    kernel = None if kernel is None else check_kernel(kernel)
    missing = _allows_missing(kernel)
    queries, prepared = as_queries(queries, allow_missing=missing), prepared_of(keys)
    keys = keys_of(keys, None, None, allow_missing=missing)
    return fold_checked(reduction, queries, keys, kernel, pairs, prepared=prepared, **options)


def best_keys(k: Any, keys: Keys | KeySource, exclude_self: bool = False) -> TopK:
    """The reduction that keeps the best k keys.

    Raises
    ------
    InputError
        If there are not so many.
    """
    n_keys = keys.n_keys if isinstance(keys, KeySource) else keys.data.shape[0]
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number of at least 1, got {shown(k)}")
    if k > n_keys - exclude_self:
        raise InputError(
            f"k must be at most the number of keys that can be neighbours "
            f"({max(0, n_keys - exclude_self)}), got {k}"
        )
    return TopK(int(k))


def check_reduction(reduction: Any) -> None:
    """Refuse what is no reduction.

    Raises
    ------
    InputError
        Saying what came.
    """
    if not isinstance(reduction, Reduction):
        raise InputError(
            "reduction must be a reduction object such as lp.reductions.WeightedMean(1), got "
            f"{shown(reduction)}"
        )


def check_kernel(kernel: Any) -> Kernel:
    """A kernel, and nothing else.

    Raises
    ------
    InputError
        If it is something else.
    """
    if not isinstance(kernel, Kernel):
        raise InputError(
            f"kernel must be a kernel object such as lp.kernels.Gaussian(1.0), got {shown(kernel)}"
        )
    return kernel


def _check_values(values: Any) -> None:
    """Refuse a kernel in the place of values, which come before it."""
    if isinstance(values, Kernel):
        raise InputError(
            f"values must be an array, one row per key, got the kernel {type(values).__name__}; "
            "the third argument is values, so give the kernel fourth or by name (kernel=...)"
        )


def _allows_missing(kernel: Kernel | None) -> bool:
    """Whether NaN in the coordinates is a missing value under this kernel."""
    return kernel is not None and kernel.allows_missing


def keys_of(
    keys: Any, values: Any, sample_weight: Any, *, allow_missing: bool = False
) -> Keys | KeySource:
    """Checked keys."""
    return checked_keys(keys, values, sample_weight, allow_missing=allow_missing)


def _never_empty(options: Checked) -> Checked:
    """The options of results that say by themselves that there was no neighbour."""
    return {**options, "empty": nan}


def outputs_of(keys: Keys | KeySource) -> tuple[int, bool]:
    """Number of values per key, and whether they came 1-d."""
    if isinstance(keys, KeySource):
        n_outputs = keys.n_outputs
    else:
        shape = None if keys.values is None else keys.values.shape
        if shape is not None and len(shape) == 1:
            return 1, True
        if shape is not None and shape[1] == 0:
            raise InputError(f"values must have at least one column, got shape {tuple(shape)}")
        n_outputs = None if shape is None else int(shape[1])
    if n_outputs is None:
        raise InputError("a local mean needs values, one row per key, got none")
    return n_outputs, bool(getattr(keys, "values_are_flat", False))
