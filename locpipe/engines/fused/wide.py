"""Radial and dot-product kernels of many features: two BLAS products, one compiled pass between.

Each query takes the fastest way that keeps rtol: products in float32, with the few weights in which
rounding would show computed anew from differences; products in float64; differences alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.fused.wide_masks import serves
from locpipe.engines.parts import Parts
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.product import Product
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.log_mass import LogMass
from locpipe.reductions.weighted_mean import WeightedMean

__all__ = ["fold", "refusal", "seconds", "tile_bytes"]


def refusal(parts: Parts, need: Need) -> str | None:
    """What this path does not serve."""
    from locpipe.engines.fused.profiles import knows

    name = type(need.reduction).__name__
    if type(need.reduction) not in (LogMass, WeightedMean):
        return f"sums masses and means over wide data, not {name} (engine='dense' does)"
    if not serves(parts.masks):
        return "knows the library's own masks alone"
    if isinstance(parts.core, DotProduct):
        return None if type(parts.core) is DotProduct else _OTHER_KERNELS
    return None if knows(parts.core) and parts.core.metric == "euclidean" else _OTHER_KERNELS


_OTHER_KERNELS = "knows the library's own kernels of Euclidean distances and dot products alone"


def seconds(parts: Parts, need: Need) -> float:
    """Seconds of one thread."""
    per_pair = 6e-10 + 2.2e-11 * (need.n_features + need.n_outputs)
    return per_pair * need.n_pairs


def tile_bytes(parts: Parts, need: Need) -> int:
    """The tile of weights and the rows beside it."""
    return 8 * 1024 * (1024 + 2 * need.n_features + 2 * need.n_outputs)


def fold(
    parts: Parts, reduction: Reduction, state: Any, q: QueryBlock, k: KeyBlock, rtol: float
) -> State:
    """`state` with the keys of a block folded in."""
    from locpipe.engines.fused.wide_fold import fold_rows
    from locpipe.engines.fused.wide_rows import Rows

    if isinstance(parts.core, DotProduct) and not _in_range(parts.core, q, k):
        return dense.fold(reduction, state, q, k, Product((parts.core, *parts.masks)))
    return fold_rows(state, Rows.of(parts, q, k), rtol)


def _in_range(core: DotProduct, q: QueryBlock, k: KeyBlock) -> bool:
    """Whether all products are numbers by a bound; the reference looks at each, or refuses."""
    factor, d = core.factor(q.data.shape[1]), q.data.shape[1]
    logs = [np.log10(float(np.abs(rows.data).max()) + 1e-300) for rows in (q, k)]
    return bool(sum(logs) + np.log10(abs(factor) * d + 1e-300) < _LARGEST_LOG10)


_LARGEST_LOG10 = 290
