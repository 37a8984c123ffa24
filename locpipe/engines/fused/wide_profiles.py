"""Squared distances of a tile become the logs of their weights, compiled."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from locpipe.engines.fused.compiled import compiled, in_order, prefer_wide_vectors
from locpipe.engines.fused.exponential import log2_of_1_plus, two_to_minus
from locpipe.engines.fused.profiles import Profile, profile_of
from locpipe.engines.fused.small_weights import cost, weight
from locpipe.engines.fused.wide_rows import LOG2_E
from locpipe.kernels.heavy import StudentT
from locpipe.kernels.radial import Radial

__all__ = ["take_logs"]

_LIFT = 500.0
"""Weights down to 2 to the minus this are told from 0."""
_PLAIN_DEGREES = (1e-3, 1e10)
"""Degrees of freedom of which the plain formula is right at all distances."""


def take_logs(core: Radial, tile: Any, n_features: int) -> None:
    """Base 2 logs of the weights at squared distances in bandwidths, in their place."""
    if isinstance(core, StudentT) and not _PLAIN_DEGREES[0] <= core.nu <= _PLAIN_DEGREES[1]:
        np.multiply(core.log_profile(tile, n_features), LOG2_E, out=tile)
        return
    profile = profile_of(core, n_features)
    _logs(profile.bare)(tile, profile.unit, profile.power)


@lru_cache
def _logs(profile: Profile) -> Any:
    log_weight = _log_weight(profile)

    def take(tile: Any, unit: Any, power: Any) -> None:
        prefer_wide_vectors()
        for i in range(tile.shape[0]):
            row = tile[i]
            for j in range(row.size):
                row[j] = log_weight(min(row[j] * unit, 1e305), power)

    signature = types.void(types.float64[:, ::1], types.float64, types.float64)
    return compiled(f"wide-logs-{profile.name}", signature, take)


def _log_weight(profile: Profile) -> Any:
    """Base 2 log of the weight, its peak included, as a function of ``(x, power)``."""
    if profile.name == "logistic":
        return _logistic()
    if not profile.has_cost:
        return _log_of(weight(profile, np.float64))
    minus_log = cost(profile, np.float64)
    return in_order(lambda x, power: -minus_log(x, power))


def _logistic() -> Any:
    """``-u - 2 log(1 + e^-u)``, in base 2."""
    logarithm, power_of_2 = log2_of_1_plus(np.float64), two_to_minus(np.float64)

    @in_order
    def logistic(x: Any, power: Any) -> Any:
        u = np.sqrt(x)
        return -u - 2.0 * logarithm(power_of_2(u))

    return logistic


def _log_of(weight: Any) -> Any:
    """The log of a weight that is computed as it is; minus infinity where it is 0."""
    logarithm, lift = log2_of_1_plus(np.float64), 2.0**_LIFT

    @in_order
    def log_of_weight(x: Any, power: Any) -> Any:
        w, _ = weight(x)
        log = logarithm(max(w * lift - 1.0, 0.0)) - _LIFT
        return log if w > 0.0 else -np.inf

    return log_of_weight
