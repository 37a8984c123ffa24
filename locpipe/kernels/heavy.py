"""Kernels with unbounded support and tails heavier than the Gaussian's."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, log1p, pi
from typing import Any, ClassVar

from array_api_compat import array_namespace

from locpipe.blocks import Array
from locpipe.errors import InputError, shown
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
        Degrees of freedom, between 1e-300 and 1e300; 1 gives `Cauchy`.
    bandwidth : float or sequence of n_features floats
    metric : str
        As for any radial kernel.

    Raises
    ------
    InputError
        If `nu` is missing or out of range, or a bandwidth or the metric is bad.

    Notes
    -----
    The log of the normaliser is right to about d units of 1e-16 at any `nu`: for large `nu` the
    two log-gammas of about ``nu log nu`` are subtracted term by term of their Stirling series.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.StudentT(3.0))).round(6)
    array([0.852071])
    """

    nu: float = 1.0

    def __init__(
        self, nu: float | None = None, bandwidth: Any = 1.0, *, metric: str = "euclidean"
    ) -> None:
        degrees = as_number(nu)
        if degrees is None or not 1e-300 <= degrees <= 1e300:
            raise InputError(
                "nu must be a positive finite number of degrees of freedom between 1e-300 and "
                f"1e300, such as StudentT(3.0), got {shown(nu)}"
            )
        given = {"nu": degrees, "bandwidth": bandwidth, "metric": metric}
        for name, value in given.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``-(nu + d)/2 log(1 + u^2 / nu)``."""
        xp = array_namespace(u2)
        return -0.5 * (self.nu + n_features) * self._log1p_over_nu(xp, u2)

    def _log1p_over_nu(self, xp: Any, u2: Array) -> Array:
        """``log(1 + u^2 / nu)``, also where the fraction leaves float64."""
        if self.nu >= 1e-3:
            return xp.log1p(u2 / self.nu)
        # From here on the 1 is below the last place, and logs of factors add.
        far = xp.asarray(1e20 * self.nu, dtype=u2.dtype)
        beyond = xp.log(xp.maximum(u2, far)) - log(1e20 * self.nu)
        return xp.log1p(xp.minimum(u2, far) / self.nu) + beyond

    def log_constant(self, n_features: int) -> float:
        """``log Gamma((nu+d)/2) - log Gamma(nu/2) - (d/2) log(nu pi)``."""
        half, more = 0.5 * self.nu, 0.5 * n_features
        if half < _STIRLING_FROM:
            return lgamma(half + more) - lgamma(half) - more * log(self.nu * pi)
        ratio = log1p(more / half)
        correction = _stirling_rest(half + more) - _stirling_rest(half)
        return (half * ratio - more) + (more - 0.5) * ratio - more * log(2 * pi) + correction


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


_STIRLING_FROM = 10.0


def _stirling_rest(x: float) -> float:
    """``log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2``, to 1e-14 from 10 on."""
    terms = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
    return sum(term / x ** (2 * i + 1) for i, term in enumerate(terms) if x < 1e16 or i == 0)


def _eta(s: int) -> float:
    """Dirichlet eta ``sum (-1)^(n-1) n^-s``: 1/2 at 0, log 2 at 1, towards 1."""
    from scipy.special import zeta

    if s == 0:
        return 0.5
    return log(2.0) if s == 1 else float(-zeta(s) * (2.0 ** (1 - s) - 1))
