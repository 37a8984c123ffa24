"""Kernels that rank: rows that are equal have equal log weights, wherever a block ends.

A matrix product rounds differently in blocks of other shapes, so duplicates would not tie.
"""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.kernels.base import Kernel, KernelSpec
from locpipe.kernels.dot_product import DotProduct, check_products
from locpipe.kernels.radial import InBandwidths, Radial

__all__ = ["ExactDotProduct", "ExactRadial"]


@dataclass(frozen=True)
class ExactRadial(Kernel):
    """A radial kernel whose distances all come from differences."""

    radial: Radial

    @property
    def tile_arrays(self) -> int:
        """As the kernel."""
        return self.radial.tile_arrays

    @property
    def allows_missing(self) -> bool:
        """As the kernel."""
        return self.radial.allows_missing

    @property
    def symmetric(self) -> bool:
        """Distances are the same both ways."""
        return True

    def nearness(self) -> InBandwidths:
        """As the kernel."""
        return self.radial.nearness()

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """The kernel's profile of exact distances."""
        return self.radial.log_weights_within(q, k, 0.0)

    def log_row_normalizer(self, q: QueryBlock, k: KeyBlock) -> Array | None:
        """As the kernel."""
        return self.radial.log_row_normalizer(q, k)

    def lower(self, n_features: int) -> KernelSpec:
        """As the kernel."""
        return self.radial.lower(n_features)


@dataclass(frozen=True)
class ExactDotProduct(Kernel):
    """Dot products summed feature by feature."""

    dot: DotProduct
    tile_arrays = 2

    @property
    def symmetric(self) -> bool:
        """Products are, and the scale comes last."""
        return True

    def nearness(self) -> DotProduct:
        """As the kernel."""
        return self.dot

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """``scale <q, k>`` (n_queries, n_keys)."""
        xp = array_namespace(q.data, k.data)
        n_features = int(q.data.shape[1])
        total = xp.zeros((q.n_rows, k.n_rows), dtype=xp.float64)
        for j in range(n_features):
            total += q.data[:, j][:, None] * k.data[:, j][None, :]
        scale = self.dot.factor(n_features)
        total *= scale
        return check_products(total, scale * q.data, k.data)

    def lower(self, n_features: int) -> KernelSpec:
        """As the kernel."""
        return self.dot.lower(n_features)
