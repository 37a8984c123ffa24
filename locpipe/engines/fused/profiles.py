"""What compiled loops need to know of each radial kernel of the library."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from locpipe.kernels.base import Kernel
from locpipe.kernels.compact import (
    Biweight,
    Cosine,
    Epanechnikov,
    Triangular,
    Tricube,
    Triweight,
    Uniform,
)
from locpipe.kernels.gaussian import Gaussian
from locpipe.kernels.heavy import Cauchy, Exponential, Logistic, StudentT

__all__ = ["Profile", "knows", "profile_of"]

_COMPACT = (Biweight, Cosine, Epanechnikov, Triangular, Tricube, Triweight, Uniform)
_COSTS = (Cauchy, Exponential, Gaussian, Logistic, StudentT)
_LOG2_E = 1 / log(2.0)


@dataclass(frozen=True)
class Profile:
    """A weight as a function of ``x = unit u^2``.

    Attributes
    ----------
    name : str
    has_cost : bool
        Whether the weight is ``2^-cost(x)``; else it is computed as it is.
    unit : float
        What makes x the number that the formula is shortest in.
    power : float
        Factor of the cost.
    log_peak : float
        Log weight at distance 0, left out of the cost.
    """

    name: str
    has_cost: bool
    unit: float = 1.0
    power: float = 1.0
    log_peak: float = 0.0

    @property
    def bare(self) -> Profile:
        """The formula without its numbers: what code depends on."""
        return Profile(self.name, self.has_cost)


def knows(kernel: Kernel) -> bool:
    """Whether this is a kernel of the library itself; a subclass may change its profile."""
    return type(kernel) in (*_COMPACT, *_COSTS)


def profile_of(kernel: Kernel, n_features: int) -> Profile:
    """The profile of a kernel that `knows` knows."""
    name = type(kernel).__name__.lower()
    if isinstance(kernel, Gaussian):
        return Profile(name, True, 0.5 * _LOG2_E)
    if isinstance(kernel, Exponential):
        return Profile(name, True, _LOG2_E**2)
    if isinstance(kernel, Logistic):
        return Profile(name, True, _LOG2_E**2, log_peak=kernel.log_peak)
    if isinstance(kernel, Cauchy | StudentT):
        nu = kernel.nu if isinstance(kernel, StudentT) else 1.0
        return Profile("studentt", True, 1 / nu, 0.5 * (nu + n_features))
    return Profile(name, False)
