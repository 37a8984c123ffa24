"""A kernel scaled to integrate to 1 over the queries' space."""

from __future__ import annotations

from dataclasses import dataclass, replace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel, KernelSpec

__all__ = ["Normalized"]


@dataclass(frozen=True)
class Normalized(Kernel):
    """`kernel` times its normaliser, per-row bandwidths included: what a density sums."""

    kernel: Kernel

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
                f"a density needs a kernel with a normaliser, got {self.kernel!r}; "
                "use lp.log_mass for the unnormalised sum"
            )
        return value
