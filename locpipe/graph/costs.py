"""What a pair costs: measured once, shipped, so that plans are the same everywhere."""

from __future__ import annotations

from locpipe.graph.operation import Operation
from locpipe.kernels.base import Kernel
from locpipe.kernels.product import Product
from locpipe.reductions.base import Reduction

__all__ = ["seconds_of"]

# Nanoseconds per pair on one thread, as measured by `python benchmarks/costs.py`.
KERNEL_NS = {"general": 3.0}
FEATURE_NS = 1.0
OUTPUT_NS = 0.2
REDUCTION_NS = {"WeightedMean": 3.0, "LogMass": 3.0, "TopK": 10.0}
OTHER_NS = 4.0


def seconds_of(op: Operation, n_pairs: int, n_features: int, n_outputs: int, n_cores: int) -> float:
    """Seconds that a fold takes on `n_cores` threads."""
    passes = [p for p in (op.first_pass(), op) if p is not None]
    ns = sum(_pair_ns(p, n_features, n_outputs) for p in passes)
    return 1e-9 * n_pairs * ns / n_cores


def _pair_ns(op: Operation, n_features: int, n_outputs: int) -> float:
    return _kernel_ns(op.kernel, n_features) + _reduction_ns(op.reduction, n_outputs)


def _kernel_ns(kernel: Kernel | None, n_features: int) -> float:
    if kernel is None:
        return 0.0
    if isinstance(kernel, Product):
        return sum(_kernel_ns(factor, n_features) for factor in kernel.factors)
    profile = kernel.lower(n_features).profile
    return KERNEL_NS.get(profile, KERNEL_NS["general"]) + FEATURE_NS * n_features


def _reduction_ns(reduction: Reduction, n_outputs: int) -> float:
    return REDUCTION_NS.get(type(reduction).__name__, OTHER_NS) + OUTPUT_NS * n_outputs
