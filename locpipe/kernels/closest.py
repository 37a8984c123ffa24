"""The one nearest key, under any score."""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, block_span
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel, KernelSpec, Ranking

__all__ = ["Closest"]


@dataclass(frozen=True)
class Closest(Kernel):
    """Weight 1 on the key of largest `score`, the lowest index of equals: ``empty="nearest"``."""

    score: Kernel

    @property
    def allows_missing(self) -> bool:
        """As the score."""
        return self.score.allows_missing

    def ranking(self) -> Ranking:
        """One key under the score."""
        return Ranking(1, self.score)

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """0 at the key that the first pass found, ``-inf`` elsewhere."""
        if q.kth_index is None:
            raise InputError("the closest key is found by a first pass over all keys; use lp.fold")
        xp, span = array_namespace(q.data), block_span(k)
        index = xp.arange(span.start, span.stop, dtype=xp.int64)
        chosen = index[None, :] == q.kth_index[:, None]
        minus_inf = xp.asarray(-xp.inf, dtype=xp.float64)
        return xp.where(chosen, xp.zeros((), dtype=xp.float64), minus_inf)

    def lower(self, n_features: int) -> KernelSpec:
        """At most 1; what the score checks is checked."""
        self.score.lower(n_features)
        return KernelSpec(log_bound=0.0)
