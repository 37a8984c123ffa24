"""Kernel density estimation."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from locpipe.blocks import Array
from locpipe.errors import InputError
from locpipe.functions import log_density
from locpipe.graph import Keys
from locpipe.graph.inputs import as_keys
from locpipe.kernels import Gaussian, Kernel
from locpipe.methods.resolve import resolve_kernel

__all__ = ["KernelDensity"]


class KernelDensity(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel density estimate with exact normalisation.

    Parameters
    ----------
    kernel : str or Kernel, default "gaussian"
        A name, used with `bandwidth`; or an object that carries its own bandwidth, and then
        `bandwidth` must be None.
    bandwidth : float, sequence of n_features floats, "scott", "silverman" or None
        In feature units; the rules give one per feature.
    engine : str

    Attributes
    ----------
    kernel_ : Kernel
        The kernel in force, its bandwidth resolved.
    bandwidth_ : float or tuple of float
        The bandwidth in force.
    n_features_in_ : int

    Raises
    ------
    InputError
        From `fit`: bad data or weights, an unknown kernel or rule, a constant column under a rule.

    Notes
    -----
    `fit` keeps the data; `score_samples` costs O(n_queries n_samples n_features) time and one
    tile of memory, and is lazy on Dask arrays.

    References
    ----------
    Silverman (1986); Wand and Jones (1995), section 4.2.

    Examples
    --------
    >>> import locpipe as lp
    >>> kde = lp.KernelDensity(bandwidth=0.8).fit([[0.0], [1.0], [3.0]])
    >>> print(kde.score_samples([[0.5]]).round(6))
    [-1.291978]
    """

    def __init__(
        self, *, kernel: str | Kernel = "gaussian", bandwidth: Any = "scott", engine: str = "auto"
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.engine = engine

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDensity:
        """Keep the data and settle the bandwidth.

        Parameters
        ----------
        X : array (n_samples, n_features) or Keys
            Bandwidths in `Keys` multiply the bandwidth: the sample-point estimate.
        y : ignored
        sample_weight : array (n_samples,), optional
            Non-negative.
        """
        keys = as_keys(X, sample_weight=sample_weight)
        weight = keys.sample_weight
        self.kernel_ = resolve_kernel(self.kernel, self.bandwidth, keys.data, weight)
        self.bandwidth_ = getattr(self.kernel_, "bandwidth", None)
        self.n_features_in_ = int(keys.data.shape[1])
        self._keys = Keys(keys.data, sample_weight=weight, bandwidth=keys.bandwidth)
        return self

    def score_samples(self, X: Any) -> Array:
        """Log density at each row of X, shape (n_queries,); lazy if X is a Dask array."""
        check_is_fitted(self)
        return log_density(X, self._keys, self.kernel_, engine=self.engine)

    def score(self, X: Any, y: Any = None) -> float:
        """Sum of the log densities of X."""
        log_densities = self.score_samples(X)
        return float(array_namespace(log_densities).sum(log_densities))

    def sample(self, n_samples: int = 1, random_state: int | None = 0) -> Array:
        """Draw from the estimate, shape (n_samples, n_features).

        Parameters
        ----------
        n_samples : int
        random_state : int or None
            Seed; the draw does not depend on how the data is chunked.
        """
        check_is_fitted(self)
        if not isinstance(self.kernel_, Gaussian):
            raise InputError(f"sampling needs the Gaussian kernel, got {self.kernel_!r}")
        if n_samples < 1:
            raise InputError(f"n_samples must be at least 1, got {n_samples}")
        rng = np.random.default_rng(random_state)
        X = np.asarray(self._keys.data)
        weight = self._keys.sample_weight
        share = None if weight is None else np.asarray(weight) / np.sum(np.asarray(weight))
        chosen = rng.choice(len(X), n_samples, p=share)
        noise = rng.normal(size=(n_samples, X.shape[1])) * self.kernel_.scale(X.shape[1])
        if self._keys.bandwidth is not None:
            noise *= np.asarray(self._keys.bandwidth)[chosen, None]
        return (X[chosen] + noise).astype(X.dtype)
