"""Kernels with unbounded support and tails heavier than the Gaussian's."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Any, ClassVar

from array_api_compat import array_namespace

from locpipe.blocks import Array
from locpipe.errors import InputError
from locpipe.kernels.base import as_number
from locpipe.kernels.radial import Radial, log_sphere

__all__ = ["Cauchy", "Exponential", "Logistic", "StudentT"]


@dataclass(frozen=True)
class Exponential(Radial):
    """``exp(-u)``.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Schoenberg (1938): positive definite in every dimension.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Exponential())).round(6)
    array([0.606531])
    """

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``-u``."""
        xp = array_namespace(u2)
        return -xp.sqrt(u2)

    def log_constant(self, n_features: int) -> float:
        """``-log(S_d Gamma(d))``."""
        return -log_sphere(n_features) - lgamma(n_features)


@dataclass(frozen=True)
class Logistic(Radial):
    """``1 / (4 cosh^2(u / 2))``, the logistic density in one dimension; 1/4 at distance 0.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Normaliser in d dimensions: ``1 / (S_d Gamma(d) eta(d - 1))``, the Dirichlet eta function.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Logistic())).round(6)
    array([0.235004])
    """

    log_peak: ClassVar[float] = -log(4.0)

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``-u - 2 log(1 + exp(-u))``: no overflow at any distance."""
        xp = array_namespace(u2)
        u = xp.sqrt(u2)
        return -u - 2 * xp.log1p(xp.exp(-u))

    def log_constant(self, n_features: int) -> float:
        """``-log(S_d Gamma(d) eta(d - 1))`` with the Dirichlet eta function."""
        return -log_sphere(n_features) - lgamma(n_features) - log(_eta(n_features - 1))


@dataclass(frozen=True, init=False)
class StudentT(Radial):
    """``(1 + u^2 / nu)^(-(nu + d) / 2)`` in d dimensions: the multivariate t density.

    Parameters
    ----------
    nu : float
        Degrees of freedom, > 0; 1 gives `Cauchy`.
    bandwidth : float or sequence of n_features floats
    metric : str
        As for any radial kernel.

    Raises
    ------
    InputError
        If `nu` is not positive and finite, or a bandwidth or the metric is bad.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.StudentT(3.0))).round(6)
    array([0.852071])
    """

    nu: float = 1.0

    def __init__(self, nu: float, bandwidth: Any = 1.0, *, metric: str = "euclidean") -> None:
        degrees = as_number(nu)
        if degrees is None or degrees <= 0:
            raise InputError(f"nu must be a positive finite number, got {nu!r}")
        given = {"nu": degrees, "bandwidth": bandwidth, "metric": metric}
        for name, value in given.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``-(nu + d)/2 log(1 + u^2 / nu)``."""
        xp = array_namespace(u2)
        return -0.5 * (self.nu + n_features) * xp.log1p(u2 / self.nu)

    def log_constant(self, n_features: int) -> float:
        """``log Gamma((nu+d)/2) - log Gamma(nu/2) - (d/2) log(nu pi)``."""
        half = 0.5 * self.nu
        return lgamma(half + 0.5 * n_features) - lgamma(half) - 0.5 * n_features * log(self.nu * pi)


@dataclass(frozen=True)
class Cauchy(Radial):
    """``(1 + u^2)^(-(1 + d) / 2)`` in d dimensions: the multivariate Cauchy density.

    The plain ``1 / (1 + u^2)`` has no normaliser for d >= 2.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Normaliser in d dimensions: ``Gamma((d + 1) / 2) / pi^((d + 1) / 2)``.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Cauchy())).round(6)
    array([0.8])
    """

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``-(1 + d)/2 log(1 + u^2)``."""
        xp = array_namespace(u2)
        return -0.5 * (1 + n_features) * xp.log1p(u2)

    def log_constant(self, n_features: int) -> float:
        """``log Gamma((d+1)/2) - (d+1)/2 log pi``."""
        half = 0.5 * (n_features + 1)
        return lgamma(half) - half * log(pi)


def _eta(s: int) -> float:
    """Dirichlet eta ``sum (-1)^(n-1) n^-s``: 1/2 at 0, log 2 at 1, towards 1."""
    from scipy.special import zeta

    if s == 0:
        return 0.5
    return log(2.0) if s == 1 else float(-zeta(s) * (2.0 ** (1 - s) - 1))
