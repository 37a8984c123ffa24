"""What a byte costs, and whether halves pay; what a pair costs, its engine says."""

from __future__ import annotations

from math import prod

from locpipe.engines import dense
from locpipe.engines.costs import kernel_ns
from locpipe.graph.inputs import Keys
from locpipe.graph.operation import Operation
from locpipe.graph.sizes import Sizes
from locpipe.graph.sources import KeySource

__all__ = ["halves_pay", "read_seconds"]

_WORTH_HALVING_NS = 13.0
"""Weighing each pair once saves half the kernel, and costs the reduction a transposed tile."""


def read_seconds(
    op: Operation, keys: Keys | KeySource, sizes: Sizes, blocks: tuple[int, int]
) -> float:
    """Seconds of CPU that reading from stores takes: each block of queries reads all keys."""
    query_rows, key_rows = blocks
    n_passes = 1 if op.first_pass() is None else 2
    n_blocks = sizes.n_groups or -(-sizes.query_rows // query_rows)
    of_keys = getattr(getattr(keys, "source", keys), "read_seconds", None)
    seconds = 0.0 if of_keys is None else n_passes * n_blocks * of_keys(key_rows)
    tile = dense.TILE_QUERIES, dense.TILE_KEYS
    n_tiles = sizes.n_pairs / prod(tile)
    readers = [getattr(source, "read_seconds", None) for source in op.pair_sources()]
    return float(seconds + sum(n_tiles * read(*tile) for read in readers if read is not None))


def halves_pay(op: Operation, n_features: int) -> bool:
    """Whether weighing each pair of rows among themselves once is worth it."""
    return kernel_ns(op.kernel, n_features) >= _WORTH_HALVING_NS
