"""Radial and dot-product kernels of many features: products of rows and keys, weights, products.

Each query takes the fastest way that keeps rtol: all in float32, where what rounding may have done
is added up and found small; all in float64; differences alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from locpipe.blocks import KeyBlock, QueryBlock, row_slices
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.fused.wide_masks import serves
from locpipe.engines.parts import EXTREME, Parts, is_extreme
from locpipe.kernels.dot_product import DotProduct
from locpipe.kernels.gaussian import Gaussian
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
    if is_extreme(parts.core, need.n_features):
        return EXTREME
    return None if knows(parts.core) and parts.core.metric == "euclidean" else _OTHER_KERNELS


_OTHER_KERNELS = "knows the library's own kernels of Euclidean distances and dot products alone"


def seconds(parts: Parts, need: Need) -> float:
    """Seconds of one thread, by the products and by what the pass between them takes."""
    bandwidths = need.attributes & {"queries.bandwidth", "keys.bandwidth"}
    linear = isinstance(parts.core, DotProduct | Gaussian) and not bandwidths
    doubly = need.rtol < SINGLE_FROM
    first = _FEATURE_NS[doubly or not linear] * need.n_features
    second = _FEATURE_NS[doubly] * need.n_outputs
    return 1e-9 * (_PASS_NS[linear, doubly] + first + second) * need.n_pairs


SINGLE_FROM = 5e-7
"""The least rtol for which weights are kept in float32."""

# Nanoseconds per pair on one thread of a server of 2023 (Xeon, AVX-512).
_FEATURE_NS = {False: 0.014, True: 0.031}
"""A column of a product, in float32 and in float64."""
_PASS_NS = {(True, False): 0.55, (True, True): 1.2, (False, False): 4.6, (False, True): 5.5}
"""What remains, by whether logs of weights are products, and by whether all is in float64."""


def tile_bytes(parts: Parts, need: Need) -> int:
    """Tiles of logs and weights, and the rows of a part made ready, in float64."""
    row, columns = 8 * need.n_features, 8 * _padded(need.n_outputs) + 8
    n_keys = min(need.n_keys, max(_KEY_BYTES // (row + 8 * need.n_outputs), _KEY_ROWS))
    n_queries = min(need.n_queries, _QUERIES)
    return 2 * n_keys * (row + columns) + n_queries * (2 * row + 3 * columns) + _TILE_BYTES


def _padded(n_columns: int) -> int:
    """Columns of values, in whole panels where they are many."""
    return n_columns if n_columns <= 4 else -(-n_columns // 32) * 32


_KEY_BYTES = 16 * 2**20
"""Keys come in blocks of up to this size."""
_KEY_ROWS = 4096
"""Or of so many."""
_QUERIES = 4096
_TILE_BYTES = 12 * 512 * 2048


def fold(
    parts: Parts, reduction: Reduction, state: Any, q: QueryBlock, k: KeyBlock, rtol: float
) -> State:
    """`state` with the keys of a block folded in."""
    from locpipe.engines.fused.wide_fold import fold_rows
    from locpipe.engines.fused.wide_rows import Rows

    if isinstance(parts.core, DotProduct) and not _in_range(parts.core, q, k):
        return dense.fold(reduction, state, q, k, parts.kernel)
    folded = [
        fold_rows(reduction, dense.take_rows(state, part), Rows.of(parts, q.rows(part), k), rtol)
        for part in row_slices(q.n_rows, _QUERIES)
    ]
    return folded[0] if len(folded) == 1 else dense.concat_rows(folded)


def _in_range(core: DotProduct, q: QueryBlock, k: KeyBlock) -> bool:
    """Whether all products are numbers by a bound; the reference looks at each, or refuses."""
    factor, d = core.factor(q.data.shape[1]), q.data.shape[1]
    logs = [np.log10(float(np.abs(rows.data).max()) + 1e-300) for rows in (q, k)]
    return bool(sum(logs) + np.log10(abs(factor) * d + 1e-300) < _LARGEST_LOG10)


_LARGEST_LOG10 = 290
