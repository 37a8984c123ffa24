"""What a kernel is: log weights between blocks, and what an engine may know of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from locpipe.blocks import Array, KeyBlock, PairSource, QueryBlock

if TYPE_CHECKING:
    from locpipe.kernels.mapped import Mapped

__all__ = ["Kernel", "KernelSpec", "Ranking", "as_number"]


def as_number(value: object) -> float | None:
    """`value` as a float if it is a finite real number, else None; a bool is no number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer beyond float64
        return None
    return number if isfinite(number) else None


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
        No log weight exceeds it, where no bandwidths ride with the rows.
    log_normalizer : float or None
        Log of the constant that makes the kernel integrate to 1; None when there is none.
    """

    profile: str = "general"
    metric: str = "none"
    scale: tuple[float, ...] = ()
    support: float = inf
    log_bound: float = inf
    log_normalizer: float | None = None


@dataclass(frozen=True)
class Ranking:
    """A first pass that a kernel needs: the `k` best keys of each query under `score`.

    What it finds rides in the query block of the second pass (`QueryBlock.best_score`,
    `kth_score`, `kth_index`).
    """

    k: int
    score: Kernel


class Kernel(ABC):
    """Who is near whom.  Concrete kernels are frozen, hashable dataclasses of scalars."""

    is_mask: ClassVar[bool] = False
    """Whether all weights are 0 or 1, so that it says who may be a neighbour at all."""

    @property
    def tile_arrays(self) -> int:
        """Arrays of the tile's size that `log_weights` holds at once, its result included."""
        return 8

    @property
    def allows_missing(self) -> bool:
        """Whether NaN in the coordinates is a missing value rather than an error."""
        return False

    @property
    def symmetric(self) -> bool:
        """Whether ``K(x, x') = K(x', x)`` for rows that carry the same attributes."""
        return False

    def ranking(self) -> Ranking | None:
        """The first pass over all keys that this kernel needs; None if it needs none."""
        return None

    def nearness(self) -> Kernel | None:
        """A score that grows as the kernel's own distance falls and is never cut off.

        ``empty="nearest"`` ranks by it.  Masks are their own; None where there is no distance.
        """
        return None

    def exact(self) -> Kernel:
        """The kernel that rankings use: equal rows have log weights that are equal to the bit."""
        return self

    def pair_sources(self) -> tuple[PairSource, ...]:
        """What is read per pair; each must have shape (n_queries, n_keys)."""
        return ()

    def with_pair_sources(self, change: Callable[[PairSource], PairSource]) -> Kernel:
        """The kernel with ``change(source)`` in place of each source."""
        return self

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

    def __rmul__(self, other: Any) -> Kernel:
        """What is no kernel is refused on this side too."""
        from locpipe.kernels.product import multiply

        return multiply(other, self)

    def on(
        self,
        query: str | Callable[[Array], Array] = "data",
        key: str | Callable[[Array], Array] = "data",
    ) -> Mapped:
        """Look at something other than the coordinates.

        Parameters
        ----------
        query, key : str or module-level function
            ``"data"``, ``"values"`` (bilateral kernels), ``"time"`` or ``"ids"``; or a function
            of the data (n, n_features) that gives an array (n, p): two towers.

        Raises
        ------
        InputError
            If it is neither.
        """
        from locpipe.kernels.mapped import Mapped

        return Mapped(self, query, key)
