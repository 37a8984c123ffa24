"""Distances by name: a surrogate that is cheap to rank by, and the step to the distance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import pi

from array_api_compat import array_namespace

from locpipe.blocks import Array
from locpipe.distance import bounded, difference, squared_distances
from locpipe.errors import InputError, shown

__all__ = ["LARGEST_LATITUDE", "METRICS", "Metric", "check_metric", "metric_of"]


@dataclass(frozen=True)
class Metric:
    """A distance between rows.

    Attributes
    ----------
    surrogate : callable (queries, keys) -> array (n_queries, n_keys)
        Grows with the distance; +inf where there is none, so such a pair is never chosen.  Where
        bandwidths scale the distance, an optional third argument (n_features,) divides the
        differences of the coordinates.
    distance, squared : callable (surrogate) -> array
        The distance, and its square.
    scales : bool
        Whether dividing the differences of coordinates by a bandwidth divides the distance by it.
    n_features : int or None
        Features that the rows must have, or None for any number.
    allows_missing : bool
        Whether NaN is a missing value rather than an error.
    tile_arrays : int
        Arrays (n_queries, n_keys) that its functions hold at once, their results included.
    """

    surrogate: Callable[..., Array]
    distance: Callable[[Array], Array]
    squared: Callable[[Array], Array]
    scales: bool = True
    n_features: int | None = None
    allows_missing: bool = False
    tile_arrays: int = 3


def check_metric(name: object) -> Metric:
    """The metric of a name.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    if not isinstance(name, str) or name not in METRICS:
        raise InputError(f"metric must be one of {sorted(METRICS)}, got {shown(name)}")
    return METRICS[name]


def metric_of(name: str, n_features: int) -> Metric:
    """The metric of a name, for rows of so many features.

    Raises
    ------
    InputError
        If the name is unknown or the number of features does not fit.
    """
    metric = check_metric(name)
    if metric.n_features not in (None, n_features):
        raise InputError(
            f"metric={name!r} needs rows of {metric.n_features} features, got {n_features}"
        )
    return metric


LARGEST_LATITUDE = 0.5 * pi + 1e-6
"""Radians; float32 rounds a pole outwards."""


def _euclidean(q: Array, k: Array, scale: Array | None = None) -> Array:
    return squared_distances(q, k, scale=scale)


def _manhattan(q: Array, k: Array, scale: Array | None = None) -> Array:
    xp = array_namespace(q, k)
    total = xp.abs(difference(q, k, 0, scale))
    for j in range(1, q.shape[1]):
        total += xp.abs(difference(q, k, j, scale))
    return total


def _cosine(q: Array, k: Array) -> Array:
    """``1 - cos`` as half the squared difference of unit rows: parallel rows are at exactly 0.

    A row of zeros has no direction; it is at distance 1 from all, like an orthogonal one.
    """
    xp = array_namespace(q, k)
    (unit_q, zero_q), (unit_k, zero_k) = _unit(q), _unit(k)
    half = 0.5 * squared_distances(unit_q, unit_k)
    return xp.where(zero_q[:, None] | zero_k[None, :], xp.ones((), dtype=half.dtype), half)


def _unit(rows: Array) -> tuple[Array, Array]:
    xp = array_namespace(rows)
    # Scaled first: squares of tiny or huge entries would leave the range.
    largest = xp.max(xp.abs(rows), axis=1, keepdims=True)
    zero = largest == 0
    scaled = rows / xp.where(zero, xp.ones((), dtype=rows.dtype), largest)
    # One feature after the other: the bits do not depend on how many rows the block has.
    total = scaled[:, 0] * scaled[:, 0]
    for j in range(1, rows.shape[1]):
        total += scaled[:, j] * scaled[:, j]
    length = xp.sqrt(total)[:, None]
    return scaled / xp.where(zero, xp.ones((), dtype=rows.dtype), length), zero[:, 0]


def _nan_euclidean(q: Array, k: Array, scale: Array | None = None) -> Array:
    """Squared distance over the shared features, times all over shared (Dixon 1979).

    Infinite only where no feature is shared.
    """
    xp = array_namespace(q, k)
    shared = xp.zeros((q.shape[0], k.shape[0]), dtype=q.dtype)
    total = xp.zeros(shared.shape, dtype=q.dtype)
    for j in range(q.shape[1]):
        gap = difference(q, k, j, scale)
        absent = xp.isnan(gap)
        gap[absent] = 0.0
        gap *= gap
        total += gap
        shared += xp.astype(~absent, q.dtype)
    none = shared == 0
    total *= q.shape[1] / xp.where(none, xp.ones((), dtype=q.dtype), shared)
    return xp.where(none, xp.asarray(xp.inf, dtype=q.dtype), bounded(total))


def _haversine(q: Array, k: Array) -> Array:
    """``sin^2`` of half the angle between (latitude, longitude) rows in radians."""
    xp = array_namespace(q, k)
    latitude = xp.sin(0.5 * (q[:, 0][:, None] - k[:, 0][None, :]))
    longitude = xp.sin(0.5 * (q[:, 1][:, None] - k[:, 1][None, :]))
    shrink = xp.cos(q[:, 0])[:, None] * xp.cos(k[:, 0])[None, :]
    return latitude * latitude + shrink * longitude * longitude


def _root(surrogate: Array) -> Array:
    return array_namespace(surrogate).sqrt(surrogate)


def _same(surrogate: Array) -> Array:
    return surrogate


def _angle(surrogate: Array) -> Array:
    xp = array_namespace(surrogate)
    return 2 * xp.asin(xp.sqrt(xp.clip(surrogate, 0, 1)))


def _square(surrogate: Array) -> Array:
    return surrogate * surrogate


def _squared_angle(surrogate: Array) -> Array:
    return _square(_angle(surrogate))


METRICS: Mapping[str, Metric] = {
    "euclidean": Metric(_euclidean, _root, _same),
    "manhattan": Metric(_manhattan, _same, _square),
    "cosine": Metric(_cosine, _same, _square, scales=False),
    "nan-euclidean": Metric(_nan_euclidean, _root, _same, allows_missing=True, tile_arrays=6),
    "haversine": Metric(
        _haversine, _angle, _squared_angle, scales=False, n_features=2, tile_arrays=5
    ),
}
