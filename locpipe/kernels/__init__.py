"""Kernels: who is near whom.  Each gives log weights between a query and a key block."""

from locpipe.kernels.base import Kernel, KernelSpec
from locpipe.kernels.gaussian import Gaussian
from locpipe.kernels.mapped import Mapped
from locpipe.kernels.nearness import Nearness
from locpipe.kernels.normalized import Normalized
from locpipe.kernels.product import Product

__all__ = ["Gaussian", "Kernel", "KernelSpec", "Mapped", "Nearness", "Normalized", "Product"]
