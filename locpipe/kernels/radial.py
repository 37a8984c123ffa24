"""What all radial kernels share: a profile of the distance in bandwidths."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from math import inf, log
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.distance import bounded, squared_distances
from locpipe.errors import InputError, shown
from locpipe.kernels.base import Kernel, KernelSpec
from locpipe.metrics import METRICS, check_metric, metric_of

__all__ = ["InBandwidths", "Radial", "check_bandwidth", "log_sphere"]

# The log of a smooth profile moves by at most half the error of the squared distance, so this
# keeps the matrix product a hundred times below rtol = 1e-10.
_LOG_TOLERANCE = 2e-12

# Products of tiny bandwidths stop here, since 0 / 0 is no distance.
_SMALLEST = 1e-300


def check_bandwidth(bandwidth: object) -> float | tuple[float, ...]:
    """A positive finite bandwidth, or one per feature, as hashable floats.

    Raises
    ------
    InputError
        If it is not a positive finite number or a 1-d sequence of them.
    """
    try:
        array = np.asarray(bandwidth)
    except ValueError:  # a ragged sequence
        array = np.asarray(np.nan)
    array = array.astype(np.float64) if array.dtype.kind in "iuf" else np.asarray(np.nan)
    # Beyond these the squares of distances in bandwidths leave float64.
    in_range = (array >= 1e-150) & (array <= 1e150)
    if array.ndim > 1 or array.size == 0 or not in_range.all():
        raise InputError(
            "bandwidth must be a positive finite number between 1e-150 and 1e150, or one per "
            f"feature, got {shown(bandwidth)}; per-row bandwidths go into lp.Keys or lp.Queries"
        )
    return float(array) if array.ndim == 0 else tuple(float(h) for h in array)


def log_sphere(d: int) -> float:
    """Log of the area of the unit sphere in d dimensions, ``2 pi^(d/2) / Gamma(d/2)``."""
    from math import lgamma, pi

    return log(2.0) + 0.5 * d * log(pi) - lgamma(0.5 * d)


@dataclass(frozen=True)
class Radial(Kernel):
    """A kernel of ``u``, the distance in bandwidths.

    Parameters
    ----------
    bandwidth : float or sequence of n_features floats
        Scale (units of the distance).  Bandwidths that ride in the blocks multiply it.
    metric : {"euclidean", "manhattan", "cosine", "nan-euclidean", "haversine"}
        As in `locpipe.nearest`.  Only the Euclidean kernels have a normaliser.  Under cosine and
        haversine (angles in radians) the bandwidth is one number.

    Raises
    ------
    InputError
        If a bandwidth is not positive and finite, their number is not n_features, or the metric
        is unknown or has no features to scale.
    """

    bandwidth: float | tuple[float, ...] = 1.0
    metric: str = field(default="euclidean", kw_only=True)

    support: ClassVar[float] = inf
    """Largest ``u`` with a positive weight."""
    log_peak: ClassVar[float] = 0.0
    """Log weight at distance 0, which no other exceeds."""
    smooth: ClassVar[bool] = False
    """Whether a small error of ``u^2`` is a small error of the log weight, everywhere."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", check_bandwidth(self.bandwidth))
        if not check_metric(self.metric).scales and not isinstance(self.bandwidth, float):
            raise InputError(
                f"bandwidth must be one number with metric={self.metric!r}, whose distance has no "
                f"features to scale, got {len(self.bandwidth)} numbers"
            )

    @abstractmethod
    def log_profile(self, u2: Array, n_features: int) -> Array:
        """Log weight at squared distances `u2` in bandwidths; ``-inf`` outside the support.

        `u2` is a float64 array (n_queries, n_keys) of the queries' library, ``0 <= u2 <= 1e305``
        for coordinates and bandwidths of any size, never NaN.
        """

    @abstractmethod
    def log_constant(self, n_features: int) -> float | None:
        """Log of the normaliser at bandwidth 1; None if there is none."""

    @property
    def tile_arrays(self) -> int:
        """Distances, or what a profile makes of them; 5 serve every profile here."""
        return max(5, METRICS[self.metric].tile_arrays)

    @property
    def allows_missing(self) -> bool:
        """As the metric says."""
        return METRICS[self.metric].allows_missing

    @property
    def symmetric(self) -> bool:
        """Distances are the same both ways."""
        return True

    def nearness(self) -> InBandwidths:
        """Minus the squared distance in bandwidths."""
        return InBandwidths(self)

    def exact(self) -> Kernel:
        """The same profile of distances from differences; log weights of one's own stay."""
        from locpipe.kernels.exact import ExactRadial

        plain = type(self).log_weights is Radial.log_weights
        return ExactRadial(self) if self.smooth and plain else self

    def scale(self, n_features: int) -> tuple[float, ...]:
        """Bandwidth per feature."""
        if isinstance(self.bandwidth, float):
            return (self.bandwidth,) * n_features
        if len(self.bandwidth) != n_features:
            raise InputError(
                f"bandwidth must be one number or one per feature ({n_features}), got "
                f"{len(self.bandwidth)} numbers; per-row bandwidths go into lp.Keys or lp.Queries"
            )
        return self.bandwidth

    def squared_distances(self, q: QueryBlock, k: KeyBlock, tolerance: float = 0.0) -> Array:
        """Squared distances in bandwidths (n_queries, n_keys).

        At most `locpipe.distance.LARGEST_SQUARE`, however far; infinite where rows with missing
        coordinates share no feature.  With a `tolerance` > 0 wide data may use a matrix product.
        """
        xp, h = array_namespace(q.data, k.data), self.scale(int(q.data.shape[1]))
        rows = not (q.bandwidth is None and k.bandwidth is None)
        # Bandwidths divide last: (3, 4) is at distance 5 to the bit, and those of rows undo others.
        last = max(h)
        scale = tuple(x / last for x in h)
        with np.errstate(over="ignore"):
            u2 = self._unbounded(q.data, k.data, scale, 0.0 if rows else tolerance * last * last)
            none = xp.isinf(u2) if self.allows_missing else None
            factor = row_factor(q, k, last) if rows else last
            if rows or last != 1:
                u2 = self._divided(u2, factor)
        u2 = bounded(u2)
        return u2 if none is None else xp.where(none, xp.asarray(xp.inf, dtype=u2.dtype), u2)

    def _divided(self, squared: Array, factor: Any) -> Array:
        """Squared distances over `factor` squared."""
        if self.support == inf:
            squared /= factor
            squared /= factor
            return squared
        # A root gives back what was squared: what lies on the edge is at distance 1 to the bit.
        u = array_namespace(squared).sqrt(squared)
        u /= factor
        u *= u
        return u

    def _unbounded(self, q: Array, k: Array, scale: tuple[float, ...], tolerance: float) -> Array:
        xp, metric = array_namespace(q, k), metric_of(self.metric, len(scale))
        if not metric.scales:
            return metric.squared(metric.surrogate(q, k))
        h = None if all(x == 1 for x in scale) else xp.asarray(scale, dtype=xp.float64)
        if self.metric == "euclidean":
            return squared_distances(q, k, scale=h, tolerance=tolerance)
        return metric.squared(metric.surrogate(q, k, h))

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Log profile of every pair (n_queries, n_keys)."""
        return self.log_weights_within(q, k, _LOG_TOLERANCE if self.smooth else 0.0)

    def log_weights_within(self, q: QueryBlock, k: KeyBlock, tolerance: float) -> Array:
        """Log profile of squared distances that may be wrong by `tolerance`."""
        xp, n_features = array_namespace(q.data), int(q.data.shape[1])
        u2 = self.squared_distances(q, k, tolerance)
        if not self.allows_missing:
            return self.log_profile(u2, n_features)
        none, u2 = xp.isinf(u2), bounded(u2)
        log_w = self.log_profile(u2, n_features)
        return xp.where(none, xp.asarray(-xp.inf, dtype=u2.dtype), log_w)

    def log_row_normalizer(self, q: QueryBlock, k: KeyBlock) -> Array | None:
        """``-d log h`` of the per-row bandwidths."""
        logs = [array_namespace(h).log(h) for h in (q.bandwidth, k.bandwidth) if h is not None]
        if not logs:
            return None
        total = logs[0][:, None] if q.bandwidth is not None else logs[0][None, :]
        return -q.data.shape[1] * (total if len(logs) == 1 else total + logs[1][None, :])

    def lower(self, n_features: int) -> KernelSpec:
        """The profile by its name, its metric, scale, support and bound."""
        metric_of(self.metric, n_features)
        scale = self.scale(n_features)
        constant = self.log_constant(n_features) if self.metric == "euclidean" else None
        log_normalizer = None if constant is None else constant - sum(map(log, scale))
        name = type(self).__name__.lower()
        return KernelSpec(name, self.metric, scale, self.support, self.log_peak, log_normalizer)


@dataclass(frozen=True)
class InBandwidths(Kernel):
    """Minus the squared distance in bandwidths of a radial kernel, never cut off."""

    radial: Radial

    @property
    def tile_arrays(self) -> int:
        """Those of the distances."""
        return METRICS[self.radial.metric].tile_arrays

    @property
    def allows_missing(self) -> bool:
        """As the kernel."""
        return self.radial.allows_missing

    @property
    def symmetric(self) -> bool:
        """Distances are the same both ways."""
        return True

    def nearness(self) -> InBandwidths:
        """Itself."""
        return self

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """``-u^2`` from differences, so equal distances tie exactly."""
        return -self.radial.squared_distances(q, k)

    def lower(self, n_features: int) -> KernelSpec:
        """A score, not a density."""
        spec = self.radial.lower(n_features)
        return KernelSpec("nearness", spec.metric, spec.scale, log_bound=0.0)


def row_factor(q: QueryBlock, k: KeyBlock, h: float) -> Array:
    """Product of `h` and the bandwidths that ride in the blocks, that of a pair at (i, j)."""
    xp = array_namespace(q.data)
    smallest = xp.asarray(_SMALLEST, dtype=xp.float64)
    factor: Array = h if q.bandwidth is None else (h * q.bandwidth)[:, None]
    factor = factor if k.bandwidth is None else factor * k.bandwidth[None, :]
    return xp.maximum(factor, smallest)


def inside(u2: Array, log_weight: Any) -> Array:
    """``log_weight(u2)`` where ``u2 < 1``, and ``-inf`` elsewhere, without a warning."""
    xp = array_namespace(u2)
    within = u2 < 1
    safe = xp.where(within, u2, xp.zeros((), dtype=u2.dtype))
    return xp.where(within, log_weight(safe), xp.asarray(-xp.inf, dtype=u2.dtype))
