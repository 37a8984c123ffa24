"""Nearness itself: the score that nearest neighbours are ranked by."""

from __future__ import annotations

from dataclasses import dataclass

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.distance import squared_distances
from locpipe.kernels.base import Kernel, KernelSpec

__all__ = ["Nearness"]


@dataclass(frozen=True)
class Nearness(Kernel):
    """``-distance^2``, formed from differences, so equal distances tie exactly."""

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Negative squared Euclidean distances (n_queries, n_keys)."""
        return -squared_distances(q.data, k.data)

    def lower(self, n_features: int) -> KernelSpec:
        """A score, not a density."""
        return KernelSpec("nearness", "euclidean", (1.0,) * n_features, log_bound=0.0)
