"""Radial kernels of few features: compiled loops over pairs, nothing stored per pair.

Float32 first where rtol allows it.  Rows whose weights lie so far out that rounding of the
distances shows are done again in float64, those that underflow there with a shift of their own.
"""

from __future__ import annotations

from math import comb
from typing import Any

from locpipe.blocks import KeyBlock, QueryBlock, row_slices
from locpipe.engines.base import Need
from locpipe.engines.fused.profiles import knows
from locpipe.engines.parts import Parts
from locpipe.kernels.masks import ExcludeSelf
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.local_moments import LocalMoments
from locpipe.reductions.log_mass import LogMass
from locpipe.reductions.weighted_mean import WeightedMean

__all__ = ["fold", "refusal", "seconds", "suits", "tile_bytes"]

MOST_FEATURES = 10
"""Beyond, a matrix product of the rows is as fast as their differences."""

SINGLE_FROM = 5e-7
"""The least rtol for which float32 is tried."""

_KEY_BYTES = 32 * 2**20
"""Keys are laid out anew for the loops, at most this much of them at a time."""


def suits(parts: Parts, n_features: int) -> bool:
    """Whether this path serves the kernel, rather than the one of matrix products."""
    core: Any = parts.core
    return knows(core) and core.metric == "euclidean" and n_features <= MOST_FEATURES


def refusal(parts: Parts, need: Need) -> str | None:
    """What this path cannot serve."""
    if type(need.reduction) not in (LogMass, WeightedMean, LocalMoments):
        return f"sums masses, means and local moments, not {type(need.reduction).__name__}"
    others = {type(mask).__name__ for mask in parts.masks} - {ExcludeSelf.__name__}
    if others:
        return f"takes the mask ExcludeSelf beside radial kernels, not {', '.join(sorted(others))}"
    return None


# Nanoseconds per pair on one core with vectors of 512 bits, in float32 and in float64: a pair
# under the Gaussian kernel, one feature, one output or moment, and what other kernels add.
_PAIR, _FEATURE, _OUTPUT = (0.18, 0.72), (0.035, 0.12), (0.04, 0.07)
_MORE = {
    "Cauchy": (0.48, 1.8),
    "Exponential": (0.1, 0.45),
    "Logistic": (0.3, 1.4),
    "StudentT": (0.48, 1.8),
    "Epanechnikov": (-0.05, -0.4),
    "Biweight": (-0.05, -0.4),
    "Triweight": (-0.05, -0.35),
    "Cosine": (0.05, 0.0),
    "Triangular": (0.05, 0.2),
    "Tricube": (0.05, 0.2),
}


def seconds(parts: Parts, need: Need) -> float:
    """Seconds of one thread, from the time of a pair."""
    name = type(parts.core).__name__
    i = int(need.rtol < SINGLE_FROM or not need.single or name == "Uniform")
    pair = _PAIR[i] + _MORE.get(name, (0.0, 0.0))[i] + _FEATURE[i] * need.n_features
    return 1e-9 * need.n_pairs * (pair + _OUTPUT[i] * _n_sums(need))


def _n_sums(need: Need) -> int:
    """Sums beside the mass."""
    if not isinstance(need.reduction, LocalMoments):
        return max(need.n_outputs, 1)
    d, p = need.n_features, need.reduction.order
    return comb(d + 2 * p, d) + comb(d + p, d) * need.reduction.n_outputs


def tile_bytes(parts: Parts, need: Need) -> int:
    """The keys laid out for the loops, in both precisions."""
    return 2 * min(_KEY_BYTES, need.n_keys * _row_bytes(need.n_features, need.n_outputs))


def _row_bytes(n_features: int, n_outputs: int) -> int:
    return 8 * (n_features + 2 + n_outputs)


def fold(
    parts: Parts, reduction: Reduction, state: Any, q: QueryBlock, k: KeyBlock, rtol: float
) -> State:
    """`state` with the keys of a block folded in."""
    from locpipe.engines.fused.small_fold import fold_block

    n_outputs = 0 if k.values is None else k.values.shape[1]
    step = max(1, _KEY_BYTES // _row_bytes(q.data.shape[1], n_outputs))
    for part in row_slices(k.n_rows, step):
        state = fold_block(parts, reduction, state, q, k.rows(part), rtol)
    folded: State = state
    return folded
