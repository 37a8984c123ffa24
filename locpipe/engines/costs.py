"""What a pair costs the dense engine: measured once, shipped, so plans are the same everywhere."""

from __future__ import annotations

from locpipe.kernels.base import Kernel
from locpipe.kernels.nearest import Nearest
from locpipe.kernels.nearness import Nearness
from locpipe.kernels.product import Product
from locpipe.kernels.radial import Radial
from locpipe.reductions.base import Reduction
from locpipe.reductions.gather import Gather
from locpipe.reductions.local_moments import LocalMoments, exponents
from locpipe.reductions.top_k import TopK

__all__ = ["kernel_ns", "reduction_ns"]

# Nanoseconds per pair of the dense engine on one thread of a server of 2024 (AMD EPYC), as
# `python benchmarks/costs.py` prints them.  A profile costs what it adds to the distance.
_PROFILE_NS = {
    "dot": 0.3,
    "gaussian": 1.0,
    "uniform": 5.0,
    "exponential": 2.0,
    "cauchy": 4.0,
    "studentt": 3.0,
    "nearness": 0.5,
    "epanechnikov": 14.0,
    "biweight": 16.0,
    "triweight": 18.0,
    "triangular": 14.0,
    "logistic": 14.0,
    "cosine": 20.0,
    "tricube": 24.0,
}
_OTHER_PROFILE_NS = 4.0
_FEATURE_NS, _FAR_FEATURE_NS, _PRODUCT_NS = 1.6, 0.01, 0.1
"""A feature in a distance by differences, what each feature beyond 64 adds to it (columns of wide
rows lie far apart), and a feature in a matrix product."""
_FAR, _FARTHEST = 64, 256
_METRIC_FACTORS = {"nan-euclidean": 1.4}
_BY_PRODUCT = range(9, 33)
"""Features of a smooth Euclidean kernel whose distances mostly come from a matrix product."""
_RANKED_NS, _PROFILE_OF_RANKED = 10.0, 0.8
"""Who is among the k nearest, and the share of its profile's cost that remains."""
_REDUCTION_NS = {
    "ArgBest": 1.2,
    "LogMass": 3.5,
    "WeightedMean": 3.0,
    "WeightedSum": 3.0,
    "WeightedVariance": 4.0,
}
_OTHER_REDUCTION_NS = 4.0
_OUTPUT_NS, _OUTPUT_NS_OF_VARIANCE, _MOMENT_NS = 0.06, 2.8, 2.0
_BEST_NS, _BEST_KEY_NS = 6.5, 0.55
_GATHER_NS, _GATHERED_KEY_NS, _GATHERED_NUMBER_NS = 9.0, 0.65, 0.03


def kernel_ns(kernel: Kernel | None, n_features: int) -> float:
    """Nanoseconds per pair that the log weights take."""
    if kernel is None:
        return _FEATURE_NS * n_features
    if isinstance(kernel, Product):
        return sum(kernel_ns(factor, n_features) for factor in kernel.factors)
    if isinstance(kernel, Nearest):
        of_profile = 0.0 if kernel.weights == "uniform" else _weights_ns(kernel.weights)
        distance = kernel_ns(Nearness(kernel.metric), n_features)
        return distance + _RANKED_NS + _PROFILE_OF_RANKED * of_profile
    spec = kernel.lower(n_features)
    profile = _PROFILE_NS.get(spec.profile, _OTHER_PROFILE_NS)
    if spec.metric == "none":
        return profile
    smooth = isinstance(kernel, Radial) and kernel.smooth and spec.metric == "euclidean"
    if spec.metric == "dot" or (smooth and n_features in _BY_PRODUCT):
        return profile + n_features * _PRODUCT_NS
    far = max(0, min(n_features, _FARTHEST) - _FAR)
    factor = _METRIC_FACTORS.get(spec.metric, 1.0)
    return profile + n_features * factor * (_FEATURE_NS + _FAR_FEATURE_NS * far)


def _weights_ns(weights: str | Radial) -> float:
    if isinstance(weights, str):
        return _OTHER_PROFILE_NS
    return _PROFILE_NS.get(weights.lower(1).profile, _OTHER_PROFILE_NS)


def reduction_ns(reduction: Reduction, n_outputs: int) -> float:
    """Nanoseconds per pair that the reduction takes."""
    if isinstance(reduction, TopK):
        return _BEST_NS + _BEST_KEY_NS * reduction.k
    if isinstance(reduction, Gather):
        width = reduction.n_features + reduction.n_outputs
        return _GATHER_NS + reduction.k * (_GATHERED_KEY_NS + _GATHERED_NUMBER_NS * width)
    if isinstance(reduction, LocalMoments):
        n_moments = len(exponents(len(reduction.scale), 2 * reduction.order))
        return _MOMENT_NS * n_moments + _OUTPUT_NS * n_moments * reduction.n_outputs
    name = type(reduction).__name__
    per_output = _OUTPUT_NS_OF_VARIANCE if name == "WeightedVariance" else _OUTPUT_NS
    return _REDUCTION_NS.get(name, _OTHER_REDUCTION_NS) + per_output * n_outputs
