"""The compiled loops over pairs: keys in strips that stay in the first-level cache.

Two queries at a time run over a strip.  Sums of weights, and of few weighted values, are kept in
registers; for others the weights go into a buffer of the strip's length, which is multiplied.
Sums run in the loop's own precision over one strip and in float64 over the strips.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import types

from locpipe.engines.fused.compiled import compiled, prefer_wide_vectors
from locpipe.engines.fused.profiles import Profile
from locpipe.engines.fused.small_collect import collector, skip
from locpipe.engines.fused.small_pairs import Variant, squared, strip_weights
from locpipe.engines.fused.small_weights import cost

__all__ = ["least_costs", "sums"]

_F8, _I8 = types.float64, types.int64
_NUMBA = {np.float32: types.float32, np.float64: types.float64}


def _pairs(real: Any) -> tuple[Any, ...]:
    """Types of what every loop takes.

    Queries (n, d), an even number; factors (n,) of the squared distance; shifts (n,) of the cost;
    scales (d,) of the differences; the power; strips (n_strips, d + 2, length) of coordinates,
    then what weighs a key, then its factor; the number of keys; positions of keys to be skipped
    (any,), and each query's range of them (n, 2).
    """
    kind = _NUMBA[real]
    rows = (kind[:, ::1], kind[::1], kind[::1], kind[::1], kind)
    return (*rows, kind[:, :, ::1], _I8, _I8[::1], _I8[:, ::1])


@lru_cache(maxsize=256)
def sums(variant: Variant) -> Any:
    """Loop that adds up weights, doubts, and what is collected, for every query.

    Its arguments are those of `_pairs`, then `values` (n_strips, n_outputs, length), `tables`,
    `units` and `work` of `small_collect`, a `buffer` (2, length), and float64 `totals`
    (n_queries, 2) and `moments` (n_queries, any), which it adds to.
    """
    weigh = strip_weights(variant)
    monomials = variant.collects == "monomials"
    collect = collector(variant.collects, variant.n_features if monomials else 0, variant.real)
    skips, in_registers = variant.skips, variant.in_registers

    def sum_pairs(
        queries: Any,
        factors: Any,
        shifts: Any,
        scales: Any,
        power: Any,
        strips: Any,
        n_keys: Any,
        skipped: Any,
        skip_range: Any,
        values: Any,
        tables: Any,
        units: Any,
        work: Any,
        buffer: Any,
        totals: Any,
        moments: Any,
    ) -> None:
        length = strips.shape[2]
        for row in range(0, queries.shape[0], 2):
            for s in range(strips.shape[0]):
                count = min(length, n_keys - s * length)
                mass_0, mass_1, doubt_0, doubt_1, valued_0, valued_1 = weigh(
                    queries, factors, shifts, scales, power, strips, row, s, count, values, buffer
                )
                if skips:
                    mass_0 = skip(skipped, skip_range, row, s * length, count, buffer[0], mass_0)
                    mass_1 = skip(
                        skipped, skip_range, row + 1, s * length, count, buffer[1], mass_1
                    )
                totals[row, 0] += mass_0
                totals[row, 1] += doubt_0
                totals[row + 1, 0] += mass_1
                totals[row + 1, 1] += doubt_1
                if in_registers:
                    for o in range(in_registers):
                        moments[row, o] += valued_0[o]
                        moments[row + 1, o] += valued_1[o]
                else:
                    collect(
                        buffer, count, s, row, queries, strips, values, tables, units, work, moments
                    )

    kind = _NUMBA[variant.real]
    extra = (kind[:, :, ::1], _I8[:, ::1], kind[::1], kind[:, ::1], kind[:, ::1])
    signature = types.void(*_pairs(variant.real), *extra, _F8[:, ::1], _F8[:, ::1])
    return compiled(f"sums_{variant.label}", signature, sum_pairs)


@lru_cache(maxsize=256)
def least_costs(profile: Profile, n_features: int) -> Any:
    """Float64 loop that finds the least cost of any key (n_queries,), infinite without keys.

    Its arguments are those of `_pairs`, a `buffer` (any, length) and the result, infinite before.
    """
    d, add_square = n_features, squared(Variant(profile, n_features, single=False))
    costs = cost(profile, np.float64)

    def find_least(
        queries: Any,
        factors: Any,
        shifts: Any,
        scales: Any,
        power: Any,
        strips: Any,
        n_keys: Any,
        skipped: Any,
        skip_range: Any,
        buffer: Any,
        least: Any,
    ) -> None:
        prefer_wide_vectors()
        length = strips.shape[2]
        for row in range(queries.shape[0]):
            place = skip_range[row, 0]
            for s in range(strips.shape[0]):
                count = min(length, n_keys - s * length)
                for i in range(count):
                    u2 = 0.0
                    for j in range(d):
                        u2 = add_square(u2, queries[row, j] - strips[s, j, i], scales[j])
                    t = costs(u2 * factors[row] * strips[s, d + 1, i], power)
                    buffer[0, i] = t + strips[s, d, i]
                while place < skip_range[row, 1] and skipped[place] < s * length + count:
                    buffer[0, skipped[place] - s * length] = np.inf
                    place += 1
                for i in range(count):
                    least[row] = min(least[row], buffer[0, i])

    signature = types.void(*_pairs(np.float64), _F8[:, ::1], _F8[::1])
    return compiled(f"least_{profile.name}_{n_features}", signature, find_least)
