"""Products of kernels: log weights add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from locpipe.blocks import Array, KeyBlock, PairSource, QueryBlock
from locpipe.errors import InputError, shown
from locpipe.kernels.base import Kernel, KernelSpec, Ranking
from locpipe.kernels.gaussian import Gaussian

__all__ = ["Product", "multiply"]


@dataclass(frozen=True)
class Product(Kernel):
    """Product of two or more kernels; build it with ``k1 * k2``.

    At most one factor may rank (`Nearest`).  It ranks the keys that the masks among the other
    factors allow; factors that are no masks weigh the k keys found, and do not choose them.
    """

    factors: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        n_ranked = sum(factor.ranking() is not None for factor in self.factors)
        if n_ranked > 1:
            raise InputError(
                f"a product may have one factor that ranks all keys (Nearest), got {n_ranked}; "
                "keep one and weigh its neighbours by kernels without a first pass"
            )

    @property
    def tile_arrays(self) -> int:
        """The sum so far beside the factor at work."""
        return 1 + max(factor.tile_arrays for factor in self.factors)

    @property
    def allows_missing(self) -> bool:
        """Whether every factor does."""
        return all(factor.allows_missing for factor in self.factors)

    @property
    def symmetric(self) -> bool:
        """Whether every factor is."""
        return all(factor.symmetric for factor in self.factors)

    def ranking(self) -> Ranking | None:
        """The ranking factor's, among the keys that the masks allow."""
        rankings = [found for f in self.factors if (found := f.ranking()) is not None]
        if not rankings:
            return None
        masks = [factor for factor in self.factors if factor.is_mask]
        return replace(rankings[0], score=reduce(multiply, masks, rankings[0].score))

    def nearness(self) -> Kernel | None:
        """Product of the factors' nearness; a factor without one is its own score."""
        scores = [factor.nearness() for factor in self.factors]
        if all(s is None or f.is_mask for s, f in zip(scores, self.factors, strict=True)):
            return None
        return Product(tuple(s or f for s, f in zip(scores, self.factors, strict=True)))

    def exact(self) -> Product:
        """Product of the factors' exact kernels."""
        return Product(tuple(factor.exact() for factor in self.factors))

    def pair_sources(self) -> tuple[PairSource, ...]:
        """Those of all factors."""
        return tuple(source for factor in self.factors for source in factor.pair_sources())

    def with_pair_sources(self, change: Callable[[PairSource], PairSource]) -> Product:
        """The product with the sources of every factor changed."""
        return Product(tuple(factor.with_pair_sources(change) for factor in self.factors))

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Sum of the factors' log weights."""
        total = self.factors[0].log_weights(q, k)
        for factor in self.factors[1:]:
            total = total + factor.log_weights(q, k)
        return total

    def lower(self, n_features: int) -> KernelSpec:
        """Bounded by the product of the bounds; no common profile, no normaliser."""
        specs = [factor.lower(n_features) for factor in self.factors]
        metrics = {spec.metric for spec in specs} - {"none"}
        metric = metrics.pop() if len(metrics) == 1 else "mixed" if metrics else "none"
        return KernelSpec(metric=metric, log_bound=sum(spec.log_bound for spec in specs))


def multiply(a: Kernel, b: Kernel) -> Kernel:
    """Product of two kernels, simplified: precisions of Euclidean Gaussians add.

    Raises
    ------
    InputError
        If one is no kernel, both rank, or the Gaussians are for other numbers of features.

    Examples
    --------
    >>> multiply(Gaussian(2.0), Gaussian(2.0)).bandwidth == 2.0 / 2**0.5
    True
    """
    for factor in (a, b):
        if not isinstance(factor, Kernel):
            raise InputError(
                f"a kernel can be multiplied by another kernel only, got {shown(factor)}; "
                "constants cancel in a mean, and weights of keys go into sample_weight"
            )
    if _is_gaussian(a) and _is_gaussian(b):
        return Gaussian(_combined(a.bandwidth, b.bandwidth))  # type: ignore[attr-defined]
    return Product(_factors(a) + _factors(b))


def _is_gaussian(kernel: Kernel) -> bool:
    # A subclass may have a profile of its own.
    return type(kernel) is Gaussian and kernel.metric == "euclidean"


def _factors(kernel: Kernel) -> tuple[Kernel, ...]:
    return kernel.factors if isinstance(kernel, Product) else (kernel,)


def _combined(a: Any, b: Any) -> Any:
    if np.ndim(a) == np.ndim(b) == 1 and len(a) != len(b):
        raise InputError(
            "Gaussians that are multiplied must have bandwidths of as many features, "
            f"got {len(a)} and {len(b)}"
        )
    # hypot keeps 1/h^2 from overflowing for tiny bandwidths.
    return 1.0 / np.hypot(1.0 / np.asarray(a), 1.0 / np.asarray(b))
