"""The dot-product kernel of attention."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.distance import LARGEST_SQUARE
from locpipe.errors import InputError, shown
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
            raise InputError(f"scale must be a finite number or None, got {shown(self.scale)}")
        object.__setattr__(self, "scale", scale)

    @property
    def symmetric(self) -> bool:
        """Products are."""
        return True

    def nearness(self) -> DotProduct:
        """Itself: the larger the product, the nearer."""
        return self

    def exact(self) -> Kernel:
        """Products summed feature by feature."""
        from locpipe.kernels.exact import ExactDotProduct

        return ExactDotProduct(self)

    def factor(self, n_features: int) -> float:
        """The scale, or its default."""
        return 1 / sqrt(n_features) if self.scale is None else self.scale

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """``scale <q, k>`` (n_queries, n_keys).

        Raises
        ------
        InputError
            If a product exceeds 1e305 in size.
        """
        xp = array_namespace(q.data, k.data)
        scaled = self.factor(int(q.data.shape[1])) * q.data
        return check_products(scaled @ xp.permute_dims(k.data, (1, 0)), scaled, k.data)

    def lower(self, n_features: int) -> KernelSpec:
        """A product of coordinates: no distance, no bound."""
        return KernelSpec("dot", "dot", (self.factor(n_features),) * n_features)


def check_products(products: Array, scaled: Array, keys: Array) -> Array:
    """The products, once it is sure that differences of them are numbers.

    Raises
    ------
    InputError
        If one exceeds 1e305 in size.
    """
    xp = array_namespace(products)
    if 0 in products.shape:
        return products
    # No product exceeds this bound, which costs a look at the rows instead of all pairs.
    bound = float(xp.max(xp.abs(scaled))) * float(xp.max(xp.abs(keys))) * keys.shape[1]
    if not bound <= LARGEST_SQUARE and not bool(xp.all(xp.abs(products) <= LARGEST_SQUARE)):
        raise InputError(
            f"scale times a dot product must be at most {LARGEST_SQUARE:g} in size, got more; "
            "take a smaller scale or other units"
        )
    return products
