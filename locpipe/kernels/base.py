"""What a kernel is: log weights between blocks, and what an engine may know of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from locpipe.blocks import Array, KeyBlock, QueryBlock

if TYPE_CHECKING:
    from locpipe.kernels.mapped import Mapped

__all__ = ["Kernel", "KernelSpec"]


@dataclass(frozen=True)
class KernelSpec:
    """What an engine may rely on; anything that it cannot serve goes to ``dense``.

    Attributes
    ----------
    profile : str
        Name of the radial profile, or ``"general"``.
    metric : str
        Distance that the profile is a function of, or ``"none"``.
    scale : tuple of float
        Bandwidth per feature (feature units); empty when there is none.
    support : float
        Largest distance in bandwidths with a positive weight; ``inf`` when unbounded.
    log_bound : float
        No log weight exceeds it.
    log_normalizer : float or None
        Log of the constant that makes the kernel integrate to 1; None when there is none.
    """

    profile: str = "general"
    metric: str = "none"
    scale: tuple[float, ...] = ()
    support: float = inf
    log_bound: float = inf
    log_normalizer: float | None = None


class Kernel(ABC):
    """Who is near whom.  Concrete kernels are frozen, hashable dataclasses of scalars."""

    @abstractmethod
    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Log weights (n_queries, n_keys), float64; ``-inf`` means no neighbour."""

    @abstractmethod
    def lower(self, n_features: int) -> KernelSpec:
        """State what an engine may know, for data of `n_features` columns."""

    def log_row_normalizer(self, q: QueryBlock, k: KeyBlock) -> Array | None:
        """Log normaliser that per-row bandwidths add, broadcast to (n_queries, n_keys)."""
        return None

    def __mul__(self, other: Kernel) -> Kernel:
        """Product of kernels: log weights add."""
        from locpipe.kernels.product import multiply

        return multiply(self, other)

    def on(
        self,
        query: str | Callable[[Array], Array] = "data",
        key: str | Callable[[Array], Array] = "data",
    ) -> Mapped:
        """Look at something other than the coordinates.

        Parameters
        ----------
        query, key : str or module-level function
            Name of a block attribute (``"values"``: bilateral kernels), or a function of the
            data (n, n_features) that gives an array (n, p): two towers.
        """
        from locpipe.kernels.mapped import Mapped

        return Mapped(self, query, key)
