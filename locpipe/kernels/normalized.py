"""A kernel scaled to integrate to 1 over the queries' space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from locpipe.blocks import Array, KeyBlock, PairSource, QueryBlock
from locpipe.errors import InputError, shown
from locpipe.kernels.base import Kernel, KernelSpec, Ranking

__all__ = ["Normalized"]


@dataclass(frozen=True)
class Normalized(Kernel):
    """`kernel` times its normaliser, per-row bandwidths included: what a density sums."""

    kernel: Kernel

    @property
    def tile_arrays(self) -> int:
        """The inner kernel's weights, the pairs' normalisers and the sum."""
        return max(self.kernel.tile_arrays, 4)

    @property
    def allows_missing(self) -> bool:
        """As the inner kernel."""
        return self.kernel.allows_missing

    @property
    def symmetric(self) -> bool:
        """As the inner kernel."""
        return self.kernel.symmetric

    def ranking(self) -> Ranking | None:
        """As the inner kernel."""
        return self.kernel.ranking()

    def nearness(self) -> Kernel | None:
        """As the inner kernel."""
        return self.kernel.nearness()

    def exact(self) -> Normalized:
        """The inner kernel's, normalised."""
        return Normalized(self.kernel.exact())

    def pair_sources(self) -> tuple[PairSource, ...]:
        """Those of the inner kernel."""
        return self.kernel.pair_sources()

    def with_pair_sources(self, change: Callable[[PairSource], PairSource]) -> Normalized:
        """The kernel with the inner one's sources changed."""
        return Normalized(self.kernel.with_pair_sources(change))

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Log weights plus the log normaliser of each pair."""
        log_w = self.kernel.log_weights(q, k) + self._log_normalizer(int(q.data.shape[1]))
        per_row = self.kernel.log_row_normalizer(q, k)
        return log_w if per_row is None else log_w + per_row

    def lower(self, n_features: int) -> KernelSpec:
        """As the inner kernel, shifted; already normalised."""
        spec, shift = self.kernel.lower(n_features), self._log_normalizer(n_features)
        return replace(spec, log_bound=spec.log_bound + shift, log_normalizer=0.0)

    def _log_normalizer(self, n_features: int) -> float:
        value = self.kernel.lower(n_features).log_normalizer
        if value is None:
            raise InputError(
                f"a density needs a kernel with a normaliser, got {shown(self.kernel)}; "
                "use lp.log_mass for the unnormalised sum"
            )
        return value
