"""Methods: scikit-learn estimators, each a kernel, a reduction and a short loop."""

from locpipe.methods.asymmetric_mds import AsymmetricMDS
from locpipe.methods.kernel_density import KernelDensity
from locpipe.methods.mean_shift import MeanShift

__all__ = ["AsymmetricMDS", "KernelDensity", "MeanShift"]
