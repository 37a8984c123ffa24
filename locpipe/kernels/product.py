"""Products of kernels: log weights add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.kernels.base import Kernel, KernelSpec
from locpipe.kernels.gaussian import Gaussian

__all__ = ["Product", "multiply"]


@dataclass(frozen=True)
class Product(Kernel):
    """Product of two or more kernels; build it with ``k1 * k2``."""

    factors: tuple[Kernel, ...]

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Sum of the factors' log weights."""
        first, *rest = (factor.log_weights(q, k) for factor in self.factors)
        return sum(rest, start=first)

    def lower(self, n_features: int) -> KernelSpec:
        """Bounded by the product of the bounds; no common profile, no normaliser."""
        specs = [factor.lower(n_features) for factor in self.factors]
        return KernelSpec(log_bound=sum(spec.log_bound for spec in specs))


def multiply(a: Kernel, b: Kernel) -> Kernel:
    """Product of two kernels, simplified: Gaussian precisions add.

    Examples
    --------
    >>> multiply(Gaussian(2.0), Gaussian(2.0)).bandwidth == 2.0 / 2**0.5
    True
    """
    if isinstance(a, Gaussian) and isinstance(b, Gaussian):
        return Gaussian(_combined(a.bandwidth, b.bandwidth))
    return Product(_factors(a) + _factors(b))


def _factors(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.factors if isinstance(kernel, Product) else (kernel,)


def _combined(a: Any, b: Any) -> Any:
    # hypot keeps 1/h^2 from overflowing for tiny bandwidths.
    return 1.0 / np.hypot(1.0 / np.asarray(a), 1.0 / np.asarray(b))
