"""What all radial kernels share: a profile of the distance in bandwidths."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import inf, log
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.distance import squared_distances
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel, KernelSpec

__all__ = ["Radial", "check_bandwidth", "log_sphere"]

# The log of a smooth profile moves by at most half the error of the squared distance, so this
# keeps the matrix product a hundred times below rtol = 1e-10.
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


def log_sphere(d: int) -> float:
    """Log of the area of the unit sphere in d dimensions, ``2 pi^(d/2) / Gamma(d/2)``."""
    from math import lgamma, pi

    return log(2.0) + 0.5 * d * log(pi) - lgamma(0.5 * d)


@dataclass(frozen=True)
class Radial(Kernel):
    """A kernel of ``u``, the Euclidean distance in bandwidths.

    Parameters
    ----------
    bandwidth : float or sequence of n_features floats
        Scale (feature units).  Bandwidths that ride in the blocks multiply it.

    Raises
    ------
    InputError
        If a bandwidth is not positive and finite, or their number is not n_features.
    """

    bandwidth: float | tuple[float, ...] = 1.0

    support: ClassVar[float] = inf
    """Largest ``u`` with a positive weight."""
    log_peak: ClassVar[float] = 0.0
    """Log weight at distance 0, which no other exceeds."""
    smooth: ClassVar[bool] = False
    """Whether a small error of ``u^2`` is a small error of the log weight, everywhere."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))

    @abstractmethod
    def log_profile(self, u2: Array, n_features: int) -> Array:
        """Log weight at squared distances `u2` in bandwidths; ``-inf`` outside the support."""

    @abstractmethod
    def log_constant(self, n_features: int) -> float | None:
        """Log of the normaliser at bandwidth 1; None if there is none."""

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
        """Log profile of every pair (n_queries, n_keys)."""
        xp = array_namespace(q.data, k.data)
        n_features = int(q.data.shape[1])
        h = xp.asarray(self.scale(n_features), dtype=xp.float64)
        factor = row_factor(q, k)
        tolerance = _LOG_TOLERANCE if self.smooth and factor is None else 0.0
        u2 = squared_distances(q.data / h, k.data / h, tolerance=tolerance)
        return self.log_profile(u2 if factor is None else u2 / factor / factor, n_features)

    def log_row_normalizer(self, q: QueryBlock, k: KeyBlock) -> Array | None:
        """``-d log h`` of the per-row bandwidths."""
        factor = row_factor(q, k)
        xp = array_namespace(q.data)
        return None if factor is None else -q.data.shape[1] * xp.log(factor)

    def lower(self, n_features: int) -> KernelSpec:
        """The profile by its name, its scale, support and bound."""
        scale, constant = self.scale(n_features), self.log_constant(n_features)
        log_normalizer = None if constant is None else constant - sum(map(log, scale))
        name = type(self).__name__.lower()
        return KernelSpec(name, "euclidean", scale, self.support, self.log_peak, log_normalizer)


def row_factor(q: QueryBlock, k: KeyBlock) -> Array | None:
    """Product of the bandwidths that ride in the blocks, broadcast to (n_queries, n_keys)."""
    if q.bandwidth is None:
        return None if k.bandwidth is None else k.bandwidth[None, :]
    return q.bandwidth[:, None] if k.bandwidth is None else q.bandwidth[:, None] * k.bandwidth


def inside(u2: Array, log_weight: Any) -> Array:
    """``log_weight(u2)`` where ``u2 < 1``, and ``-inf`` elsewhere, without a warning."""
    xp = array_namespace(u2)
    within = u2 < 1
    safe = xp.where(within, u2, xp.zeros((), dtype=u2.dtype))
    return xp.where(within, log_weight(safe), xp.asarray(-xp.inf, dtype=u2.dtype))
