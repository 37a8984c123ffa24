"""Nearness itself: the score that nearest neighbours are ranked by."""

from __future__ import annotations

from dataclasses import dataclass

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.kernels.base import Kernel, KernelSpec
from locpipe.metrics import METRICS, check_metric, metric_of

__all__ = ["Nearness"]


@dataclass(frozen=True)
class Nearness(Kernel):
    """Minus a surrogate of the distance, formed from differences, so equal distances tie exactly.

    Parameters
    ----------
    metric : str
        A name in `locpipe.metrics.METRICS`.
    """

    metric: str = "euclidean"

    def __post_init__(self) -> None:
        check_metric(self.metric)

    @property
    def tile_arrays(self) -> int:
        """Those of the distances."""
        return METRICS[self.metric].tile_arrays

    @property
    def allows_missing(self) -> bool:
        """As the metric says."""
        return METRICS[self.metric].allows_missing

    @property
    def symmetric(self) -> bool:
        """Distances are the same both ways."""
        return True

    def nearness(self) -> Nearness:
        """Itself."""
        return self

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Negative surrogate distances (n_queries, n_keys)."""
        return -metric_of(self.metric, int(q.data.shape[1])).surrogate(q.data, k.data)

    def lower(self, n_features: int) -> KernelSpec:
        """A score, not a density."""
        metric_of(self.metric, n_features)
        return KernelSpec("nearness", self.metric, (1.0,) * n_features, log_bound=0.0)
