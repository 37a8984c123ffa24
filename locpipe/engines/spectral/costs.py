"""Seconds and bytes, by constants measured once and shipped."""

from __future__ import annotations

from math import ceil, exp, log, prod, sqrt

from locpipe.engines.base import Need
from locpipe.engines.spectral.grid import Grid

__all__ = [
    "MOST_CELLS",
    "grid_bytes",
    "key_block_bytes",
    "query_bytes",
    "seconds",
    "summary_bytes",
]

MOST_CELLS = 1.5e8
"""Cells of the largest grid: 2.4 GB."""

_POINT_NS = {1: 180.0, 2: 450.0, 3: 3500.0}
"""A point of one transform, by features; one thread, AVX-512."""
_CELL_NS = 80.0
_CALL_SECONDS = 1e-3
_KEYS_AT_A_TIME, _QUERIES_AT_A_TIME = 2**20, 2**20
_REPAIRED_PAIR_NS = 1.0


def seconds(need: Need, grid: Grid, n_pairs: int) -> float:
    """Transforms of both kinds, and pairs of the rows that are expected to be repaired."""
    points = (need.n_keys + need.n_queries) * _POINT_NS[need.n_features]
    calls = ceil(need.n_keys / _KEYS_AT_A_TIME) + ceil(need.n_queries / _QUERIES_AT_A_TIME)
    transforms = n_pairs * (points + calls * grid.cells * _CELL_NS) * 1e-9
    repaired = doubtful_share(need, grid) * need.n_pairs * _REPAIRED_PAIR_NS * 1e-9
    return calls * _CALL_SECONDS + transforms + repaired


def doubtful_share(need: Need, grid: Grid) -> float:
    """Share of the queries in doubt, were queries and keys normal with the keys' variances.

    Where a query weighs ``n prod(s)`` at the middle, it weighs ``exp(-r^2 / 2)`` of it at r
    deviations, and is in doubt below ``tolerance / rtol`` of it.
    """
    if need.spread is None:
        return 0.0
    least = grid.tolerance / need.rtol
    shares = [
        h / sqrt(h * h + v) for h, v in zip(grid.bandwidth, need.spread.variance, strict=True)
    ]
    lonely = 1 / max(1.0, need.n_keys * prod(shares))
    return 0.0 if lonely > least else _beyond(-2 * log(least), need.n_features)


def _beyond(squared: float, n_features: int) -> float:
    """Rough chance of a squared distance from the middle above this one."""
    return float(exp(-squared / 2) * (1 + squared / 2) ** (n_features / 2))


def grid_bytes(grid: Grid, n_pairs: int) -> int:
    """The fine grid, the coefficients times the kernel, and a summary that another joins."""
    return 16 * (grid.cells + 3 * prod(grid.modes)) + summary_bytes(grid, n_pairs)


def summary_bytes(grid: Grid, n_pairs: int) -> int:
    """Coefficients of all pairs of sums, twice where values have signs."""
    return 2 * 16 * n_pairs * prod(grid.modes)


def query_bytes(need: Need, n_pairs: int) -> int:
    """Per query: its angles, its place in the order, and three copies of the sums with masks."""
    return 16 * (need.n_features + 2) + 112 * n_pairs


def key_block_bytes(need: Need) -> int:
    """Angles, order, weights and strengths of a block of keys."""
    rows = min(need.n_keys, _KEYS_AT_A_TIME)
    return rows * 16 * (need.n_features + need.n_outputs + 4)
