"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, pi

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.distance import squared_distances
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel, KernelSpec

__all__ = ["Gaussian", "check_bandwidth"]

# A relative error of a weight is the absolute error of its log, half that of the squared
# distance in bandwidths: this keeps the matrix product a hundred times below rtol = 1e-10.
_LOG_TOLERANCE = 2e-12


def check_bandwidth(bandwidth: object) -> float | tuple[float, ...]:
    """A positive finite bandwidth, or one per feature, as hashable floats.

    Raises
    ------
    InputError
        If it is not a positive finite number or a 1-d sequence of them.
    """
    try:
        array = np.asarray(bandwidth, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.asarray(np.nan)
    # Beyond these the squares of distances in bandwidths leave float64.
    in_range = (array >= 1e-150) & (array <= 1e150)
    if array.ndim > 1 or array.size == 0 or not in_range.all():
        raise InputError(
            "bandwidth must be a positive finite number, or one per feature, "
            f"got {bandwidth!r}; per-row bandwidths go into lp.Keys or lp.Queries"
        )
    return float(array) if array.ndim == 0 else tuple(float(h) for h in array)


@dataclass(frozen=True)
class Gaussian(Kernel):
    """Gaussian kernel ``exp(-u^2 / 2)``, with ``u`` the distance in bandwidths.

    Parameters
    ----------
    bandwidth : float or sequence of n_features floats
        Scale (feature units).  Bandwidths that ride in the blocks multiply it.

    Raises
    ------
    InputError
        If a bandwidth is not positive and finite, or their number is not n_features.

    Notes
    -----
    Normaliser ``(2 pi)^(-d/2) / prod(h)``; second moment 1.

    References
    ----------
    Wand and Jones (1995), *Kernel Smoothing*, section 2.7.

    Examples
    --------
    >>> import numpy as np
    >>> from locpipe.blocks import KeyBlock, QueryBlock
    >>> q, k = QueryBlock(np.array([[0.0]])), KeyBlock(np.array([[0.0], [2.0]]))
    >>> np.abs(Gaussian(1.0).log_weights(q, k))
    array([[0., 2.]])
    """

    bandwidth: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))

    def scale(self, n_features: int) -> tuple[float, ...]:
        """Bandwidth per feature."""
        if isinstance(self.bandwidth, float):
            return (self.bandwidth,) * n_features
        if len(self.bandwidth) != n_features:
            raise InputError(
                f"bandwidth must be one number or one per feature ({n_features}), "
                f"got {len(self.bandwidth)} numbers"
            )
        return self.bandwidth

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """``-u^2 / 2`` (n_queries, n_keys)."""
        xp = array_namespace(q.data, k.data)
        h = xp.asarray(self.scale(int(q.data.shape[1])), dtype=xp.float64)
        factor = _row_factor(q, k)
        tolerance = _LOG_TOLERANCE if factor is None else 0.0
        u2 = squared_distances(q.data / h, k.data / h, tolerance=tolerance)
        return -0.5 * u2 if factor is None else -0.5 * u2 / factor / factor

    def log_row_normalizer(self, q: QueryBlock, k: KeyBlock) -> Array | None:
        """``-d log h`` of the per-row bandwidths."""
        factor = _row_factor(q, k)
        xp = array_namespace(q.data)
        return None if factor is None else -q.data.shape[1] * xp.log(factor)

    def lower(self, n_features: int) -> KernelSpec:
        """Smooth, unbounded, at most 1."""
        scale = self.scale(n_features)
        log_normalizer = -0.5 * n_features * log(2 * pi) - sum(map(log, scale))
        return KernelSpec("gaussian", "euclidean", scale, inf, 0.0, log_normalizer)


def _row_factor(q: QueryBlock, k: KeyBlock) -> Array | None:
    """Product of the bandwidths that ride in the blocks, broadcast to (n_queries, n_keys)."""
    if q.bandwidth is None:
        return None if k.bandwidth is None else k.bandwidth[None, :]
    return q.bandwidth[:, None] if k.bandwidth is None else q.bandwidth[:, None] * k.bandwidth
