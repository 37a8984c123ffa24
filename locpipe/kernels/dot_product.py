"""The dot-product kernel of attention."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel, KernelSpec, as_number

__all__ = ["DotProduct"]


@dataclass(frozen=True)
class DotProduct(Kernel):
    """``exp(scale <q, k>)``: a local mean under it is softmax attention.

    Parameters
    ----------
    scale : float, optional
        Factor on the products; default ``1 / sqrt(n_features)``, as in attention.

    Raises
    ------
    InputError
        If `scale` is not a finite number.

    Notes
    -----
    ``exp(-|q - k|^2 / 2 h^2) = exp(-|q|^2 / 2 h^2) exp(<q, k> / h^2 - |k|^2 / 2 h^2)``: the factor
    of the query alone cancels in a mean, so with keys of equal norm this is the Gaussian kernel
    with ``h = 1 / sqrt(scale)``.  Unbounded, so it has no normaliser.

    References
    ----------
    Vaswani et al. (2017), equation 1; Tsai et al. (2019), attention as a kernel smoother.

    Examples
    --------
    >>> import locpipe as lp
    >>> kernel = lp.kernels.DotProduct(scale=1.0)
    >>> print(lp.local_mean([[1000.0]], [[1.0], [0.999]], [10.0, 20.0], kernel).round(6))
    [12.689414]
    """

    scale: float | None = None
    tile_arrays = 1

    def __post_init__(self) -> None:
        if self.scale is None:
            return
        scale = as_number(self.scale)
        if scale is None:
            raise InputError(f"scale must be a finite number or None, got {self.scale!r}")
        object.__setattr__(self, "scale", scale)

    @property
    def symmetric(self) -> bool:
        """Products are."""
        return True

    def nearness(self) -> DotProduct:
        """Itself: the larger the product, the nearer."""
        return self

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """``scale <q, k>`` (n_queries, n_keys)."""
        xp = array_namespace(q.data, k.data)
        scale = 1 / sqrt(q.data.shape[1]) if self.scale is None else self.scale
        return (scale * q.data) @ xp.permute_dims(k.data, (1, 0))

    def lower(self, n_features: int) -> KernelSpec:
        """A product of coordinates: no distance, no bound."""
        scale = 1 / sqrt(n_features) if self.scale is None else self.scale
        return KernelSpec("dot", "dot", (scale,) * n_features)
