"""A kernel taken apart into what compiled loops know: a core, a factor, masks."""

from __future__ import annotations

from dataclasses import dataclass

from locpipe.kernels.base import Kernel
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.masks import Mask
from locpipe.kernels.normalized import Normalized
from locpipe.kernels.product import Product
from locpipe.kernels.radial import Radial

__all__ = ["EXTREME", "Parts", "is_extreme", "take_apart"]


@dataclass(frozen=True)
class Parts:
    """A kernel as ``exp(log_factor) core prod(masks)``.

    Attributes
    ----------
    core : Radial or DotProduct
    log_factor : float
        Log of a constant factor, such as a normaliser.
    per_row : bool
        Whether bandwidths that ride in rows add ``-d log h`` of theirs.
    masks : tuple of Mask
    """

    core: Radial | DotProduct
    log_factor: float = 0.0
    per_row: bool = False
    masks: tuple[Mask, ...] = ()

    @property
    def kernel(self) -> Kernel:
        """The kernel that they make: a constant factor is always that of a normaliser."""
        core = Normalized(self.core) if self.per_row else self.core
        return Product((core, *self.masks)) if self.masks else core


def take_apart(kernel: Kernel | None, n_features: int) -> Parts | None:
    """The parts of a kernel; None of one that is not made of them.

    Examples
    --------
    >>> import locpipe as lp
    >>> parts = take_apart(lp.kernels.Gaussian(2.0) * lp.masks.Causal(), 3)
    >>> parts.core, parts.masks
    (Gaussian(bandwidth=2.0, metric='euclidean'), (Causal(offset=0),))
    """
    if isinstance(kernel, Normalized):
        inner = take_apart(kernel.kernel, n_features)
        constant = kernel.kernel.lower(n_features).log_normalizer
        if inner is None or constant is None:
            return None
        return Parts(inner.core, inner.log_factor + constant, True, inner.masks)
    if isinstance(kernel, Radial | DotProduct):
        return Parts(kernel)
    if not isinstance(kernel, Product):
        return None
    masks = tuple(factor for factor in kernel.factors if isinstance(factor, Mask))
    cores = [factor for factor in kernel.factors if not isinstance(factor, Mask)]
    if len(cores) != 1:
        return None
    inner = take_apart(cores[0], n_features)
    return inner and Parts(inner.core, inner.log_factor, inner.per_row, inner.masks + masks)


EXTREME = "takes bandwidths between 1e-100 and 1e100, and nu between 1e-3 and 1e6"
"""What engines say that refuse extremes."""


def is_extreme(core: Radial | DotProduct, n_features: int) -> bool:
    """Whether a bandwidth or a number of degrees of freedom leaves no room for sums and squares.

    Examples
    --------
    >>> import locpipe as lp
    >>> is_extreme(lp.kernels.Gaussian(1e-150), 2), is_extreme(lp.kernels.StudentT(3.0), 2)
    (True, False)
    """
    if isinstance(core, DotProduct):
        return False
    scale, nu = core.scale(n_features), getattr(core, "nu", 1.0)
    return min(scale) < 1e-100 or max(scale) > 1e100 or not 1e-3 <= nu <= 1e6
