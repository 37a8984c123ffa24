"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import ClassVar

from locpipe.blocks import Array
from locpipe.kernels.radial import Radial

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian(Radial):
    """Gaussian kernel ``exp(-u^2 / 2)``, with ``u`` the distance in bandwidths.

    Parameters
    ----------
    bandwidth : float or sequence of n_features floats
        Scale (units of the distance).  Bandwidths that ride in the blocks multiply it.
    metric : str
        As in `Radial`.

    Raises
    ------
    InputError
        If a bandwidth is not positive and finite, or their number is not n_features.

    Notes
    -----
    Normaliser ``(2 pi)^(-d/2) / prod(h)``; second moment 1.

    References
    ----------
    Wand and Jones (1995), *Kernel Smoothing*, section 2.7.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> from locpipe.blocks import KeyBlock, QueryBlock
    >>> q, k = QueryBlock(np.array([[0.0]])), KeyBlock(np.array([[0.0], [2.0]]))
    >>> np.abs(lp.kernels.Gaussian(1.0).log_weights(q, k))
    array([[0., 2.]])
    """

    smooth: ClassVar[bool] = True

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``-u^2 / 2``."""
        return -0.5 * u2

    def log_constant(self, n_features: int) -> float:
        """``-(d/2) log(2 pi)``."""
        return -0.5 * n_features * log(2 * pi)
