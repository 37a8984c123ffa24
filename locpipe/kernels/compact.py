"""Compact kernels: no weight beyond one bandwidth.

Most are ``(1 - u^a)^b`` on ``u < 1``, whose normaliser is ``a / (S_d B(d/a, b + 1))`` with the
area S_d of the unit sphere and the Beta function (Wand and Jones 1995, section 2.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, lgamma, log, pi
from typing import ClassVar

from array_api_compat import array_namespace

from locpipe.blocks import Array
from locpipe.kernels.radial import Radial, inside, log_sphere

__all__ = [
    "Biweight",
    "Cosine",
    "Epanechnikov",
    "Triangular",
    "Tricube",
    "Triweight",
    "Uniform",
]


def _log_beta_profile(u2: Array, a: int, b: int) -> Array:
    """``b log(1 - u^a)``."""
    xp = array_namespace(u2)
    return inside(u2, lambda s: b * xp.log1p(-(s if a == 2 else s ** (0.5 * a))))


def _log_beta_constant(d: int, a: int, b: int) -> float:
    """Log normaliser of ``(1 - u^a)^b`` at bandwidth 1."""
    log_beta = lgamma(d / a) + lgamma(b + 1) - lgamma(d / a + b + 1)
    return log(a) - log_sphere(d) - log_beta


@dataclass(frozen=True)
class Epanechnikov(Radial):
    """``1 - u^2`` on ``u < 1``: the least mean squared error of a density.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Epanechnikov (1969): least mean squared error of a density among non-negative kernels.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Epanechnikov())).round(6)
    array([0.75])
    """

    support: ClassVar[float] = 1.0

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``log(1 - u^2)``."""
        return _log_beta_profile(u2, 2, 1)

    def log_constant(self, n_features: int) -> float:
        """Log normaliser at bandwidth 1."""
        return _log_beta_constant(n_features, 2, 1)


@dataclass(frozen=True)
class Biweight(Radial):
    """``(1 - u^2)^2`` on ``u < 1``.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Wand and Jones (1995), section 2.7; also called quartic.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Biweight())).round(6)
    array([0.5625])
    """

    support: ClassVar[float] = 1.0

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``2 log(1 - u^2)``."""
        return _log_beta_profile(u2, 2, 2)

    def log_constant(self, n_features: int) -> float:
        """Log normaliser at bandwidth 1."""
        return _log_beta_constant(n_features, 2, 2)


@dataclass(frozen=True)
class Triweight(Radial):
    """``(1 - u^2)^3`` on ``u < 1``.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Wand and Jones (1995), section 2.7.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Triweight())).round(6)
    array([0.421875])
    """

    support: ClassVar[float] = 1.0

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``3 log(1 - u^2)``."""
        return _log_beta_profile(u2, 2, 3)

    def log_constant(self, n_features: int) -> float:
        """Log normaliser at bandwidth 1."""
        return _log_beta_constant(n_features, 2, 3)


@dataclass(frozen=True)
class Tricube(Radial):
    """``(1 - u^3)^3`` on ``u < 1``: the weights of lowess.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Cleveland (1979), section 2.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Tricube())).round(6)
    array([0.669922])
    """

    support: ClassVar[float] = 1.0

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``3 log(1 - u^3)``."""
        return _log_beta_profile(u2, 3, 3)

    def log_constant(self, n_features: int) -> float:
        """Log normaliser at bandwidth 1."""
        return _log_beta_constant(n_features, 3, 3)


@dataclass(frozen=True)
class Triangular(Radial):
    """``1 - u`` on ``u < 1``.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Wand and Jones (1995), section 2.7.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Triangular())).round(6)
    array([0.5])
    """

    support: ClassVar[float] = 1.0

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``log(1 - u)``."""
        return _log_beta_profile(u2, 1, 1)

    def log_constant(self, n_features: int) -> float:
        """Log normaliser at bandwidth 1."""
        return _log_beta_constant(n_features, 1, 1)


@dataclass(frozen=True)
class Uniform(Radial):
    """1 on ``u <= 1``, the edge included: the plain mean over a ball.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Fix and Hodges (1951): the naive estimate.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Uniform())).round(6)
    array([1.])
    """

    support: ClassVar[float] = 1.0

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """0 inside."""
        xp = array_namespace(u2)
        outside = xp.asarray(-inf, dtype=u2.dtype)
        return xp.where(u2 <= 1, xp.zeros((), dtype=u2.dtype), outside)

    def log_constant(self, n_features: int) -> float:
        """Minus the log volume of the unit ball."""
        return log(n_features) - log_sphere(n_features)


@dataclass(frozen=True)
class Cosine(Radial):
    """``cos(pi u / 2)`` on ``u < 1``.

    Parameters and errors as in `Radial`.

    Notes
    -----
    Normaliser in d dimensions: ``1 / (S_d int_0^1 r^(d-1) cos(pi r / 2) dr)``.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> np.exp(lp.log_mass([0.5], [0.0], lp.kernels.Cosine())).round(6)
    array([0.707107])
    """

    support: ClassVar[float] = 1.0

    def log_profile(self, u2: Array, n_features: int) -> Array:
        """``log cos(pi u / 2)``."""
        xp = array_namespace(u2)
        return inside(u2, lambda s: xp.log(xp.cos(0.5 * pi * xp.sqrt(s))))

    def log_constant(self, n_features: int) -> float:
        """``-log(S_d I_{d-1})`` with ``I_m = int_0^1 r^m cos(pi r / 2) dr``."""
        return -log_sphere(n_features) - log(_cosine_moment(n_features - 1))


def _cosine_moment(m: int) -> float:
    """``int_0^1 r^m cos(pi r / 2) dr`` by its power series.

    The recurrence by parts loses a factor of about m^2 / a^2 per step, all digits by m = 20;
    the terms of ``sum_j (-1)^j a^(2j) / ((2j)! (m + 2j + 1))`` stay below 1.3.
    """
    a, term, total = 0.5 * pi, 1.0, 0.0
    for j in range(20):
        total += term / (m + 2 * j + 1)
        term *= -a * a / ((2 * j + 1) * (2 * j + 2))
    return total
