"""Parameters that every estimator shares: a kernel by name or as an object, a bandwidth rule."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import IntegrationWarning, quad

from locpipe import kernels
from locpipe.errors import InputError
from locpipe.kernels import Kernel, Radial
from locpipe.kernels.names import radial_by_name
from locpipe.kernels.radial import log_sphere

__all__ = ["bandwidth_by_rule", "canonical_bandwidth", "resolve_kernel"]

_RULES = ("scott", "silverman")


def resolve_kernel(kernel: str | Kernel, bandwidth: Any, X: Any, sample_weight: Any) -> Kernel:
    """Kernel object of an estimator.

    Parameters
    ----------
    kernel : str or Kernel
        A name (the class name in lower case, or flat, linear, tophat), used with `bandwidth`;
        or an object that carries its own, and then `bandwidth` must be None.
    bandwidth : float, sequence of floats, rule name or None
    X : array (n_samples, n_features)
        What a rule looks at.
    sample_weight : array (n_samples,) or None

    Raises
    ------
    InputError
        For an unknown name or rule, or a bandwidth beside a kernel object.
    """
    if isinstance(kernel, Kernel):
        if bandwidth is not None:
            raise InputError(
                f"a kernel object carries its own bandwidth, got {kernel!r} and "
                f"bandwidth={bandwidth!r}; set bandwidth=None"
            )
        return kernel
    family = radial_by_name(kernel)
    if isinstance(bandwidth, str):
        factor = _relative_to_gaussian(family(1.0), X.shape[1])
        bandwidth = factor * bandwidth_by_rule(bandwidth, X, sample_weight)
    kernel_object = family(bandwidth)
    kernel_object.lower(X.shape[1])
    return kernel_object


def canonical_bandwidth(kernel: Radial, d: int) -> float:
    """Bandwidth at which kernels of any profile smooth alike, ``(R / mu2^2)^(1/(d+4))``.

    Parameters
    ----------
    kernel : Radial
        At bandwidth 1.
    d : int
        Number of features.

    Raises
    ------
    InputError
        If the kernel has no second moment.

    References
    ----------
    Marron and Nolan (1988), canonical kernels for density estimation.
    """
    log_c = kernel.lower(d).log_normalizer or 0.0
    end = kernel.support

    def integral(power: int, of_weight: int) -> float:
        """``int c^(of_weight) S_d r^(d - 1 + power) kappa(r)^of_weight dr``."""

        def integrand(r: float) -> float:
            log_w = float(kernel.log_profile(np.asarray(r * r), d))
            radial = (d - 1 + power) * np.log(r) if r > 0 else (0.0 if d + power == 1 else -np.inf)
            return float(np.exp(of_weight * (log_w + log_c) + log_sphere(d) + radial))

        value, error = quad(integrand, 0, end, limit=400, epsabs=0, epsrel=1e-10)
        return value if error < 1e-6 * value else np.inf

    with np.errstate(under="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", IntegrationWarning)
        roughness, second = integral(0, 2), integral(2, 1) / d
    if not np.isfinite(second):
        raise InputError(
            f"a rule needs a kernel with a second moment, and {type(kernel).__name__} has none; "
            "give bandwidth a number"
        )
    return float((roughness / second**2) ** (1 / (d + 4)))


def _relative_to_gaussian(kernel: Radial, d: int) -> float:
    """What a reference bandwidth for the Gaussian is multiplied by for another kernel."""
    if isinstance(kernel, kernels.Gaussian):
        return 1.0
    return canonical_bandwidth(kernel, d) / canonical_bandwidth(kernels.Gaussian(1.0), d)


def bandwidth_by_rule(rule: str, X: Any, sample_weight: Any = None) -> NDArray[np.float64]:
    """Reference bandwidth per feature.

    Parameters
    ----------
    rule : {"scott", "silverman"}
        ``sd n^(-1/(d+4))``, or the same times ``(4 / (d+2))^(1/(d+4))``, the normal reference,
        for the Gaussian kernel; estimators multiply it by the ratio of canonical bandwidths.
    X : array (n_samples, n_features)
    sample_weight : array (n_samples,), optional
        Then n is the effective number ``(sum w)^2 / sum w^2`` and the deviation is weighted.

    Returns
    -------
    float64 array (n_features,)

    Raises
    ------
    InputError
        For an unknown rule, fewer than two samples, or a constant column.

    References
    ----------
    Scott (1992), *Multivariate Density Estimation*, equation 6.42; Silverman (1986), 4.14.
    SciPy's ``gaussian_kde`` uses the same factors with the full covariance, scikit-learn's
    ``KernelDensity`` without any deviation.
    """
    if rule not in _RULES:
        raise InputError(f"bandwidth must be a number or one of {list(_RULES)}, got {rule!r}")
    n_samples, d = X.shape
    if n_samples < 2:
        raise InputError(f"bandwidth={rule!r} needs at least two samples, got {n_samples}")
    sd, n = _deviation(np.asarray(X, np.float64), sample_weight)
    # Rounding leaves a constant column of large numbers a deviation of a few ulps.
    floor = 8 * np.finfo(np.float64).eps * np.abs(np.asarray(X)).max(axis=0)
    if constant := np.flatnonzero(sd <= floor).tolist():
        raise InputError(
            f"bandwidth={rule!r} needs columns that vary, and column(s) {constant} are constant; "
            "drop them or give bandwidth a number"
        )
    factor = 1.0 if rule == "scott" else (4 / (d + 2)) ** (1 / (d + 4))
    bandwidth: NDArray[np.float64] = factor * sd * n ** (-1 / (d + 4))
    return bandwidth


def _deviation(X: NDArray[np.float64], sample_weight: Any) -> tuple[NDArray[np.float64], float]:
    """Standard deviation per column (unbiased), and the effective number of samples."""
    if sample_weight is None:
        return X.std(axis=0, ddof=1), float(len(X))
    w = np.asarray(sample_weight, np.float64) / np.sum(sample_weight)
    mean = w @ X
    return np.sqrt(w @ (X - mean) ** 2 / (1 - w @ w)), float(1 / (w @ w))
