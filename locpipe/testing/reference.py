"""Oracles: each method as a few plain lines over the whole float64 matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

__all__ = [
    "local_mean_reference",
    "log_density_reference",
    "log_mass_reference",
    "majorization_reference",
    "nearest_reference",
]

Floats = NDArray[np.float64]


def squared_distances_reference(q: ArrayLike, k: ArrayLike, scale: ArrayLike = 1.0) -> Floats:
    """Squared Euclidean distances (n_q, n_k) by the definition; `scale` divides differences."""
    q, k = np.asarray(q, np.float64), np.asarray(k, np.float64)
    squared: Floats = (((q[:, None, :] - k[None, :, :]) / scale) ** 2).sum(axis=2)
    return squared


def log_weights_reference(
    q: ArrayLike, k: ArrayLike, bandwidth: ArrayLike, sample_weight: ArrayLike | None = None
) -> Floats:
    """Gaussian log weights (n_q, n_k): `bandwidth` is one number or one per feature."""
    log_w = -0.5 * squared_distances_reference(q, k, np.asarray(bandwidth, np.float64))
    if sample_weight is None:
        return log_w
    with np.errstate(divide="ignore"):
        return log_w + np.log(np.asarray(sample_weight, np.float64))


def log_mass_reference(
    q: ArrayLike, k: ArrayLike, bandwidth: ArrayLike, sample_weight: ArrayLike | None = None
) -> Floats:
    """``log sum_i w_i`` per query."""
    log_mass: Floats = logsumexp(log_weights_reference(q, k, bandwidth, sample_weight), axis=1)
    return log_mass


def local_mean_reference(
    q: ArrayLike,
    k: ArrayLike,
    values: ArrayLike,
    bandwidth: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """``sum_i w_i v_i / sum_i w_i`` per query."""
    log_w = log_weights_reference(q, k, bandwidth, sample_weight)
    weights = np.exp(log_w - logsumexp(log_w, axis=1, keepdims=True))
    mean: Floats = weights @ np.asarray(values, np.float64)
    return mean


def log_density_reference(
    q: ArrayLike, k: ArrayLike, bandwidth: ArrayLike, sample_weight: ArrayLike | None = None
) -> Floats:
    """Log of the Gaussian kernel density estimate per query."""
    n_keys, d = np.shape(k)
    h = np.broadcast_to(np.asarray(bandwidth, np.float64), (d,))
    total = n_keys if sample_weight is None else np.sum(np.asarray(sample_weight, np.float64))
    log_constant = float(-0.5 * d * np.log(2 * np.pi) - np.log(h).sum() - np.log(total))
    log_density: Floats = log_mass_reference(q, k, bandwidth, sample_weight) + log_constant
    return log_density


def nearest_reference(q: ArrayLike, k: ArrayLike, n: int) -> tuple[Floats, NDArray[np.int64]]:
    """Distances and indices of the n nearest keys, ties by lowest index."""
    distances = np.sqrt(squared_distances_reference(q, k))
    index = np.argsort(distances, axis=1, kind="stable")[:, :n].astype(np.int64)
    return np.take_along_axis(distances, index, axis=1), index


def majorization_reference(
    x: ArrayLike, y: ArrayLike, delta: ArrayLike, weight: ArrayLike | None = None
) -> tuple[Floats, float]:
    """Row update of unfolding and the stress before it (theory: Heiser 1987)."""
    x, y, delta = (np.asarray(a, np.float64) for a in (x, y, delta))
    w = np.ones_like(delta) if weight is None else np.asarray(weight, np.float64)
    w, delta = np.where(np.isnan(delta), 0, w), np.nan_to_num(delta)
    d = np.sqrt(squared_distances_reference(x, y))
    ratio = w * np.divide(delta, d, out=np.zeros_like(d), where=d > 0)
    moved = w @ y + x * ratio.sum(1, keepdims=True) - ratio @ y
    return moved / w.sum(1, keepdims=True), float((w * (delta - d) ** 2).sum())
