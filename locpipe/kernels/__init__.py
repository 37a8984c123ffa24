"""Kernels: who is near whom.  Each gives log weights between a query and a key block."""

from locpipe.kernels.base import Kernel, KernelSpec, Ranking
from locpipe.kernels.compact import (
    Biweight,
    Cosine,
    Epanechnikov,
    Triangular,
    Tricube,
    Triweight,
    Uniform,
)
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.gaussian import Gaussian
from locpipe.kernels.heavy import Cauchy, Exponential, Logistic, StudentT
from locpipe.kernels.mapped import Mapped
from locpipe.kernels.nearest import Nearest
from locpipe.kernels.nearness import Nearness
from locpipe.kernels.normalized import Normalized
from locpipe.kernels.precomputed import Precomputed
from locpipe.kernels.product import Product
from locpipe.kernels.radial import Radial

__all__ = [
    "Biweight",
    "Cauchy",
    "Cosine",
    "DotProduct",
    "Epanechnikov",
    "Exponential",
    "Gaussian",
    "Kernel",
    "KernelSpec",
    "Logistic",
    "Mapped",
    "Nearest",
    "Nearness",
    "Normalized",
    "Precomputed",
    "Product",
    "Radial",
    "Ranking",
    "StudentT",
    "Triangular",
    "Tricube",
    "Triweight",
    "Uniform",
]
