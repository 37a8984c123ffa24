"""How long the engine takes, from the spread of the keys."""

from __future__ import annotations

from math import erf, log, prod, sqrt
from typing import Any

import numpy as np

from locpipe.engines.base import Need, Spread

__all__ = ["seconds"]

_LEAF = 256
# Seconds of one core: per pair in float32 and in float64, an output more, a row to be ordered.
_PAIR_SINGLE, _PAIR, _OUTPUT, _ROW = 0.45e-9, 1.1e-9, 0.1e-9, 1.2e-6


def seconds(need: Need, core: Any) -> float:
    """Seconds of one thread."""
    part = 1.0 if need.spread is None else _part_of_pairs(need, need.spread, core)
    pair = (_PAIR_SINGLE if need.rtol >= 5e-7 else _PAIR) + _OUTPUT * need.n_outputs
    return part * pair * need.n_pairs + _ROW * (need.n_queries + need.n_keys)


def _part_of_pairs(need: Need, spread: Spread, core: Any) -> float:
    """Pairs nearer than the reach, for keys and queries of one normal distribution.

    In clusters it is less.  Boxes add about half their side on either end.
    """
    scale = core.scale(need.n_features)
    sides = [sqrt(max(0.0, v)) for v in spread.variance]
    wide = [side for side, h in zip(sides, scale, strict=True) if side > h]
    box = 4.0 * (_LEAF / need.n_keys) ** (1.0 / max(1, len(wide)))
    mass = prod(min(1.0, h / side) if side else 1.0 for side, h in zip(sides, scale, strict=True))
    reach = _reach(core, need.n_features, log(need.rtol / 8 * mass))
    parts = [
        erf(0.5 * (reach * h / side + 0.5 * box)) if side else 1.0
        for side, h in zip(sides, scale, strict=True)
    ]
    return max(min(1.0, prod(parts)), min(1.0, 4 * _LEAF / need.n_keys))


def _reach(core: Any, d: int, log_spare: float) -> float:
    """Distance in bandwidths from which on the log weight is below `log_spare`."""
    u = np.geomspace(1e-2, 1e6, 400)
    low = core.log_profile(np.minimum(u * u, 1e305)[None, :], d)[0] - core.log_peak < log_spare
    return float(u[np.argmax(low)]) if low.any() else float("inf")
