"""What a pair costs: measured once, shipped, so that plans are the same everywhere."""

from __future__ import annotations

from locpipe.graph.operation import Operation
from locpipe.graph.sizes import Sizes
from locpipe.kernels.base import Kernel
from locpipe.kernels.product import Product
from locpipe.kernels.radial import Radial
from locpipe.reductions.base import Reduction
from locpipe.reductions.local_moments import LocalMoments, exponents
from locpipe.reductions.top_k import TopK

__all__ = ["halves_pay", "seconds_of"]

# Nanoseconds per pair of the dense engine on one thread of a server of 2024 (AMD EPYC), as
# `python benchmarks/costs.py` prints them.  A profile costs what it adds to the distance.
_PROFILE_NS = {
    "dot": 0.3,
    "gaussian": 1.0,
    "uniform": 1.0,
    "exponential": 2.0,
    "cauchy": 2.0,
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
_FEATURE_NS, _PRODUCT_NS = 1.2, 0.05
"""A feature in a distance by differences, and in a matrix product."""
_BY_PRODUCT = range(9, 33)
"""Features of a smooth kernel whose distances mostly come from a matrix product."""
_REDUCTION_NS = {"ArgBest": 0.8, "LogMass": 2.7, "WeightedMean": 2.2, "WeightedSum": 2.0}
_OTHER_REDUCTION_NS = 4.0
_OUTPUT_NS, _BEST_KEY_NS, _MOMENT_NS = 0.06, 0.5, 3.5
_WORTH_HALVING_NS = 10.0
"""Weighing each pair once saves half the kernel, and costs the reduction a transposed tile."""


def seconds_of(op: Operation, sizes: Sizes, n_cores: int) -> float:
    """Seconds that a fold takes on `n_cores` threads."""
    passes = [p for p in (op.first_pass(), op) if p is not None]
    ns = sum(_pair_ns(p, sizes) for p in passes)
    return 1e-9 * sizes.n_pairs * ns / n_cores


def halves_pay(op: Operation, n_features: int) -> bool:
    """Whether weighing each pair of rows among themselves once is worth it."""
    return _kernel_ns(op.kernel, n_features) >= _WORTH_HALVING_NS


def _pair_ns(op: Operation, sizes: Sizes) -> float:
    return _kernel_ns(op.kernel, sizes.n_features) + _reduction_ns(op.reduction, sizes.n_outputs)


def _kernel_ns(kernel: Kernel | None, n_features: int) -> float:
    if kernel is None:
        return _FEATURE_NS * n_features
    if isinstance(kernel, Product):
        return sum(_kernel_ns(factor, n_features) for factor in kernel.factors)
    spec = kernel.lower(n_features)
    profile = _PROFILE_NS.get(spec.profile, _OTHER_PROFILE_NS)
    if spec.metric == "none":
        return profile
    by_product = isinstance(kernel, Radial) and kernel.smooth and n_features in _BY_PRODUCT
    return profile + n_features * (
        _PRODUCT_NS if by_product or spec.metric == "dot" else _FEATURE_NS
    )


def _reduction_ns(reduction: Reduction, n_outputs: int) -> float:
    if isinstance(reduction, TopK):
        return 2.5 + _BEST_KEY_NS * reduction.k
    if isinstance(reduction, LocalMoments):
        n_moments = len(exponents(len(reduction.scale), 2 * reduction.order))
        return _MOMENT_NS * n_moments + _OUTPUT_NS * n_moments * reduction.n_outputs
    name = type(reduction).__name__
    return _REDUCTION_NS.get(name, _OTHER_REDUCTION_NS) + _OUTPUT_NS * n_outputs
