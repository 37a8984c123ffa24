"""Oracles of kernels: log weights of the whole matrix by the formulas of the books."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.kernels import (
    DotProduct,
    Kernel,
    Mapped,
    Nearest,
    Normalized,
    Precomputed,
    Product,
    Radial,
    StudentT,
)
from locpipe.kernels.masks import Causal, ExcludeSelf, Window

__all__ = ["distances_reference", "kernel_reference"]

Floats = Any
"""A float64 array."""

PROFILES: Mapping[str, Callable[[Floats, int], Floats]] = {
    "Gaussian": lambda u, d: -(u**2) / 2,
    "Epanechnikov": lambda u, d: np.log(np.maximum(1 - u**2, 0)),
    "Biweight": lambda u, d: 2 * np.log(np.maximum(1 - u**2, 0)),
    "Triweight": lambda u, d: 3 * np.log(np.maximum(1 - u**2, 0)),
    "Tricube": lambda u, d: 3 * np.log(np.maximum(1 - u**3, 0)),
    "Triangular": lambda u, d: np.log(np.maximum(1 - u, 0)),
    "Uniform": lambda u, d: np.log(np.where(u <= 1, 1.0, 0.0)),
    "Cosine": lambda u, d: np.log(np.where(u < 1, np.cos(np.pi / 2 * np.minimum(u, 1)), 0)),
    "Exponential": lambda u, d: -u,
    "Logistic": lambda u, d: -2 * np.logaddexp(u / 2, -u / 2),
    "Cauchy": lambda u, d: -(1 + d) / 2 * np.log1p(u**2),
}
"""Log profiles of ``u``, the distance in bandwidths, in d dimensions."""


def kernel_reference(kernel: Kernel, q: QueryBlock, k: KeyBlock) -> Floats:
    """Log weights (n_queries, n_keys) of any kernel that locpipe ships, sample weights left out.

    Queries and keys are whole: ids, times and places count from their first rows.
    """
    with np.errstate(divide="ignore"):
        for kind, formula in _FORMULAS.items():
            if isinstance(kernel, kind):
                return formula(kernel, q, k)
    raise NotImplementedError(f"no reference for {kernel!r}")


def distances_reference(metric: str, q: Floats, k: Floats, scale: Floats = 1.0) -> Floats:
    """Distances (n_queries, n_keys) by the definition of the metric.

    `scale`, one number or one per feature, divides the differences; of angles it divides the
    distance.
    """
    if metric in ("cosine", "haversine"):
        return _angles(metric, q, k) / scale
    gap = (q[:, None, :] - k[None, :, :]) / scale
    if metric == "euclidean":
        return np.sqrt((gap**2).sum(2))
    if metric == "manhattan":
        return np.abs(gap).sum(2)
    shared = ~np.isnan(gap)
    with np.errstate(invalid="ignore", divide="ignore"):
        squared = np.nansum(gap**2, axis=2) * gap.shape[2] / shared.sum(2)
    return np.sqrt(np.where(shared.any(2), squared, np.inf))


def _angles(metric: str, q: Floats, k: Floats) -> Floats:
    if metric == "cosine":
        length = np.outer(np.linalg.norm(q, axis=1), np.linalg.norm(k, axis=1))
        return 1 - np.divide(q @ k.T, length, out=np.zeros_like(length), where=length > 0)
    half = np.sin((q[:, None, :] - k[None, :, :]) / 2) ** 2
    across = np.cos(q[:, 0])[:, None] * np.cos(k[:, 0])[None, :]
    return 2 * np.arcsin(np.sqrt(half[..., 0] + across * half[..., 1]))


def _radial(kernel: Any, q: QueryBlock, k: KeyBlock) -> Floats:
    d = q.data.shape[1]
    u = distances_reference(kernel.metric, q.data, k.data, np.asarray(kernel.bandwidth))
    u = u if q.bandwidth is None else u / q.bandwidth[:, None]
    u = u if k.bandwidth is None else u / k.bandwidth[None, :]
    if isinstance(kernel, StudentT):
        return -(kernel.nu + d) / 2 * np.log1p(u**2 / kernel.nu)
    return PROFILES[type(kernel).__name__](u, d)


def _dot(kernel: Any, q: QueryBlock, k: KeyBlock) -> Floats:
    scale = q.data.shape[1] ** -0.5 if kernel.scale is None else kernel.scale
    return scale * (q.data @ k.data.T)


def _nearest(kernel: Any, q: QueryBlock, k: KeyBlock, allowed: Floats | float = 0.0) -> Floats:
    distance = distances_reference(kernel.metric, q.data, k.data)
    distance = np.where(np.isneginf(allowed), np.inf, distance)
    if k.log_sample_weight is not None:
        distance = np.where(np.isneginf(k.log_sample_weight), np.inf, distance)
    rank = np.argsort(np.argsort(distance, axis=1, kind="stable"), axis=1)
    among = (rank < kernel.k) & (distance < np.inf)
    last = np.where(among, distance, 0).max(axis=1, keepdims=True)
    return np.where(among, _nearest_weights(kernel, distance, last, q.data.shape[1]), -np.inf)


def _nearest_weights(kernel: Any, distance: Floats, last: Floats, d: int) -> Floats:
    if kernel.weights == "uniform":
        return np.zeros_like(distance)
    if kernel.weights == "distance":
        exact = distance == 0
        with np.errstate(divide="ignore"):
            inverse = -np.log(np.where(exact, 1.0, distance))
        return np.where(exact, 0.0, np.where(exact.any(1, keepdims=True), -np.inf, inverse))
    u = np.divide(distance, last, out=np.zeros_like(distance), where=last > 0)
    u = np.minimum(u, 1e100) / kernel.weights.bandwidth
    return PROFILES[type(kernel.weights).__name__](u, d)


def _product(kernel: Any, q: QueryBlock, k: KeyBlock) -> Floats:
    masks = [f for f in kernel.factors if f.is_mask]
    others = [f for f in kernel.factors if not f.is_mask]
    allowed = sum((kernel_reference(f, q, k) for f in masks), np.zeros((q.n_rows, k.n_rows)))
    total = allowed
    for factor in others:
        ranked = isinstance(factor, Nearest)
        log_w = _nearest(factor, q, k, allowed) if ranked else kernel_reference(factor, q, k)
        total = total + log_w
    return total


def _mapped(kernel: Any, q: QueryBlock, k: KeyBlock) -> Floats:
    seen = [
        view(block.data) if callable(view) else getattr(block, view)
        for block, view in ((q, kernel.query), (k, kernel.key))
    ]
    seen_q, seen_k = (data if data.ndim == 2 else data[:, None] for data in seen)
    return kernel_reference(kernel.kernel, replace(q, data=seen_q), replace(k, data=seen_k))


def _normalized(kernel: Any, q: QueryBlock, k: KeyBlock) -> Floats:
    d, log_w = q.data.shape[1], kernel_reference(kernel.kernel, q, k)
    log_w = log_w + kernel.kernel.lower(d).log_normalizer
    log_w = log_w if q.bandwidth is None else log_w - d * np.log(q.bandwidth)[:, None]
    return log_w if k.bandwidth is None else log_w - d * np.log(k.bandwidth)[None, :]


def _mask(allowed: Any) -> Floats:
    return np.where(allowed, 0.0, -np.inf)


def _ids(block: Any) -> Any:
    return np.arange(block.n_rows) if block.ids is None else block.ids


def _lag(q: QueryBlock, k: KeyBlock) -> Any:
    t_q, t_k = (np.arange(b.n_rows) if b.time is None else b.time for b in (q, k))
    return t_q[:, None] - t_k[None, :]


_FORMULAS: Mapping[Any, Callable[[Any, QueryBlock, KeyBlock], Any]] = {
    Radial: _radial,
    DotProduct: _dot,
    Nearest: _nearest,
    Product: _product,
    Mapped: _mapped,
    Normalized: _normalized,
    Precomputed: lambda kernel, q, k: np.log(kernel.pairs.tile(slice(None), slice(None))[0]),
    ExcludeSelf: lambda _, q, k: _mask(_ids(q)[:, None] != _ids(k)[None, :]),
    Causal: lambda kernel, q, k: _mask(_lag(q, k) >= -kernel.offset),
    Window: lambda kernel, q, k: _mask((_lag(q, k) >= 0) & (_lag(q, k) < kernel.width)),
}
