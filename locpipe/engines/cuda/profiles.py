"""The library's profiles, by the numbers and parameters that the CUDA sources know."""

from __future__ import annotations

from dataclasses import dataclass

from locpipe.kernels import compact, heavy
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.gaussian import Gaussian
from locpipe.kernels.radial import Radial

__all__ = ["DOT", "UNIFORM", "Profile", "profile_of"]

# In the order of `enum Profile` in profiles.cu.
_NUMBERS: dict[type, int] = {
    Gaussian: 0,
    compact.Epanechnikov: 1,
    compact.Biweight: 2,
    compact.Triweight: 3,
    compact.Tricube: 4,
    compact.Triangular: 5,
    compact.Uniform: 6,
    compact.Cosine: 7,
    heavy.Exponential: 8,
    heavy.Logistic: 9,
    heavy.StudentT: 10,
    heavy.Cauchy: 10,
    DotProduct: 11,
}
UNIFORM, DOT = 6, 11
# Log weights of these move by about as much as u^2 does, so u^2 may come from a matrix product.
_SMOOTH = (0, 9, 10)


@dataclass(frozen=True)
class Profile:
    """A profile and its shape.

    Attributes
    ----------
    number : int
        Its place in ``enum Profile``.
    nu, power : float
        Of ``(1 + u^2 / nu)^-power``; 1 elsewhere.
    """

    number: int
    nu: float = 1.0
    power: float = 1.0

    @property
    def product(self) -> bool:
        """Whether squared distances may come from a matrix product."""
        return self.number in _SMOOTH and self.nu >= 1.0

    @property
    def single(self) -> bool:
        """Whether float has the range for it, and no jump where a rounding changes the sum."""
        return self.number != UNIFORM and 1e-3 <= self.nu <= 1e4


def profile_of(core: Radial | DotProduct, n_features: int) -> Profile | None:
    """The profile of a kernel of the library; None of a user's own, or of another metric."""
    number = _NUMBERS.get(type(core))
    if number is None or (isinstance(core, Radial) and core.metric != "euclidean"):
        return None
    if isinstance(core, heavy.StudentT):
        return Profile(number, core.nu, 0.5 * (core.nu + n_features))
    if isinstance(core, heavy.Cauchy):
        return Profile(number, 1.0, 0.5 * (1 + n_features))
    return Profile(number)
