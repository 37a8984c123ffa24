"""Radial kernels by name: the class name in lower case, and what others call them."""

from __future__ import annotations

from collections.abc import Mapping

from locpipe.errors import InputError, shown
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
from locpipe.kernels.heavy import Cauchy, Exponential, Logistic
from locpipe.kernels.radial import Radial

__all__ = ["RADIAL", "radial_by_name"]

_NAMED: tuple[type[Radial], ...] = (
    Biweight,
    Cauchy,
    Cosine,
    Epanechnikov,
    Exponential,
    Gaussian,
    Logistic,
    Triangular,
    Tricube,
    Triweight,
    Uniform,
)
RADIAL: Mapping[str, type[Radial]] = {kernel.__name__.lower(): kernel for kernel in _NAMED} | {
    "flat": Uniform,
    "linear": Triangular,
    "tophat": Uniform,
}


def radial_by_name(name: object) -> type[Radial]:
    """The class of a name.

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> radial_by_name("tricube")(2.0)
    Tricube(bandwidth=2.0, metric='euclidean')
    """
    if not isinstance(name, str) or name not in RADIAL:
        raise InputError(f"kernel must be one of {sorted(RADIAL)} or an object, got {shown(name)}")
    return RADIAL[name]
