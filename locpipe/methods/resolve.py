"""Parameters that every estimator shares: a kernel by name or as an object, a bandwidth rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from locpipe.errors import InputError
from locpipe.kernels import Gaussian, Kernel

__all__ = ["bandwidth_by_rule", "resolve_kernel"]

_KERNELS = {"gaussian": Gaussian}
_RULES = ("scott", "silverman")


def resolve_kernel(kernel: str | Kernel, bandwidth: Any, X: Any, sample_weight: Any) -> Kernel:
    """Kernel object of an estimator.

    Parameters
    ----------
    kernel : str or Kernel
        A name, used with `bandwidth`; or an object that carries its own, and then
        `bandwidth` must be None.
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
    if not isinstance(kernel, str) or kernel not in _KERNELS:
        raise InputError(f"kernel must be one of {sorted(_KERNELS)} or an object, got {kernel!r}")
    if isinstance(bandwidth, str):
        bandwidth = bandwidth_by_rule(bandwidth, X, sample_weight)
    kernel_object = _KERNELS[kernel](bandwidth)
    kernel_object.lower(X.shape[1])
    return kernel_object


def bandwidth_by_rule(rule: str, X: Any, sample_weight: Any = None) -> NDArray[np.float64]:
    """Reference bandwidth per feature.

    Parameters
    ----------
    rule : {"scott", "silverman"}
        ``sd n^(-1/(d+4))``, or the same times ``(4 / (d+2))^(1/(d+4))``, the normal reference.
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
