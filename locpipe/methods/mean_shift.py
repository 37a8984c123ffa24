"""MeanShift: every point climbs the density by local means."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from locpipe.errors import InputError
from locpipe.functions import local_mean, log_density, nearest
from locpipe.graph import Keys
from locpipe.graph.inputs import as_keys
from locpipe.kernels import Gaussian, Kernel
from locpipe.methods.resolve import resolve_kernel

__all__ = ["MeanShift"]

Floats = NDArray[np.float64]

_MERGES = ("bandwidth",)


class MeanShift(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Clusters are the basins of the modes of a kernel density estimate.

    Parameters
    ----------
    kernel : str or Kernel, default "gaussian"
        The weight profile; for the Gaussian it is its own shadow, the density climbed.
    bandwidth : float, sequence of n_features floats, "scott", "silverman" or None
        In feature units.  None only with a kernel object.
    merge : {"bandwidth"}
        Modes by density, strongest first; one within a bandwidth of a stronger one is
        dropped; each point belongs to the nearest centre (scikit-learn's rule).
    max_iter : int
        Local means per point at most.
    tol : float
        A point has arrived when its step is below `tol` bandwidths.
    engine : str

    Attributes
    ----------
    cluster_centers_ : float64 array (n_clusters, n_features)
        The modes, densest first.
    labels_ : int64 array (n_samples,)
    mode_density_ : float64 array (n_clusters,)
        Density at the modes, 1 / feature units^n_features.
    n_iter_ : int
    kernel_ : Kernel
    n_features_in_ : int

    Raises
    ------
    InputError
        From `fit`: bad data, weights or parameters.

    Notes
    -----
    The density of a point never falls (Carreira-Perpinan 2007); points that have arrived
    leave the iteration.  O(n_active n_samples n_features) time an iteration.

    References
    ----------
    Fukunaga and Hostetler (1975); Cheng (1995), theorem 1; Comaniciu and Meer (2002).

    Examples
    --------
    >>> import locpipe as lp
    >>> ms = lp.MeanShift(bandwidth=1.0).fit([[0.0], [0.2], [9.0], [9.1], [9.3]])
    >>> print(ms.labels_, ms.cluster_centers_.ravel().round(2))
    [1 1 0 0 0] [9.13 0.1 ]
    """

    def __init__(
        self,
        *,
        kernel: str | Kernel = "gaussian",
        bandwidth: Any = "scott",
        merge: str = "bandwidth",
        max_iter: int = 1000,
        tol: float = 1e-5,
        engine: str = "auto",
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.merge = merge
        self.max_iter = max_iter
        self.tol = tol
        self.engine = engine

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MeanShift:
        """Find the modes and label the samples.

        Parameters
        ----------
        X : array (n_samples, n_features)
            In memory; a Dask array is computed.
        y : ignored
        sample_weight : array (n_samples,), optional
        """
        self._check_parameters()
        rows = as_keys(X, sample_weight=sample_weight)
        if rows.bandwidth is not None:
            raise InputError("MeanShift takes one bandwidth for all rows, got one per row in Keys")
        data = np.asarray(rows.data, np.float64)
        weight = None if rows.sample_weight is None else np.asarray(rows.sample_weight)
        self.kernel_ = resolve_kernel(self.kernel, self.bandwidth, data, weight)
        self.n_features_in_ = data.shape[1]
        points = self._climb(Keys(data, values=data, sample_weight=weight))
        self._merge(points, Keys(data, sample_weight=weight))
        self.labels_ = self.predict(data)
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Nearest mode of each row of X, in bandwidths; int64 (n_queries,)."""
        check_is_fitted(self)
        scale = self._scale()
        X = np.asarray(as_keys(X).data, np.float64)
        labels: NDArray[np.int64] = nearest(X / scale, self.cluster_centers_ / scale, 1)[1][:, 0]
        return labels

    def _check_parameters(self) -> None:
        if self.merge not in _MERGES:
            raise InputError(f"merge must be one of {list(_MERGES)}, got {self.merge!r}")
        if self.max_iter < 1:
            raise InputError(f"max_iter must be at least 1, got {self.max_iter}")
        if not 0 < self.tol < 1:
            raise InputError(f"tol must be between 0 and 1 bandwidths, got {self.tol}")

    def _scale(self) -> Floats:
        if not isinstance(self.kernel_, Gaussian):
            raise InputError(f"MeanShift needs the Gaussian kernel, got {self.kernel_!r}")
        return np.asarray(self.kernel_.scale(self.n_features_in_))

    def _climb(self, keys: Keys) -> Floats:
        points, scale = np.array(keys.data), self._scale()
        active = np.arange(len(points))
        for iteration in range(1, self.max_iter + 1):
            self.n_iter_ = iteration
            mean = local_mean(points[active], keys, kernel=self.kernel_, engine=self.engine)
            moved = np.linalg.norm((mean - points[active]) / scale, axis=1)
            points[active] = mean
            active = active[moved > self.tol]
            if active.size == 0:
                return points
        warnings.warn(
            f"{active.size} of {len(points)} points had not arrived after max_iter="
            f"{self.max_iter} steps; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )
        return points

    def _merge(self, points: Floats, keys: Keys) -> None:
        density = log_density(points, keys, self.kernel_, engine=self.engine)
        scaled = points / self._scale()
        # Points of one basin differ in the last digits, so equal modes are ranked by index.
        remaining = np.lexsort((np.arange(len(points)), -density.round(9)))
        kept = []
        while remaining.size:
            strongest = remaining[0]
            kept.append(strongest)
            distance = np.linalg.norm(scaled[remaining] - scaled[strongest], axis=1)
            remaining = remaining[distance > 1.0]
        self.cluster_centers_ = points[kept]
        self.mode_density_ = np.exp(density[kept])
