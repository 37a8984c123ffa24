"""Radial kernels of few features: compiled loops over pairs, nothing stored per pair.

Float32 first where rtol allows it.  Rows whose weights lie so far out that rounding of the
distances shows are done again in float64, those that underflow there with a shift of their own.
"""

from __future__ import annotations

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

MOST_FEATURES = 8
"""From here on a matrix product of the rows is faster than differences."""

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


def seconds(parts: Parts, need: Need) -> float:
    """Seconds of one thread."""
    double = need.rtol < SINGLE_FROM or not need.single
    per_pair = (1.0 if double else 0.3) + 0.05 * (need.n_features + need.n_outputs)
    return 1e-9 * per_pair * need.n_pairs


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
