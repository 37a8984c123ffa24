"""The strategy ``symmetric``: the queries are the keys, and each pair is weighed once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_slices
from locpipe.engines import dense, single_threaded_libraries
from locpipe.engines.dense import Dense
from locpipe.graph.checks import same_array
from locpipe.graph.operation import Operation

__all__ = ["fold_symmetric", "is_mirror", "rounds"]

BLOCK_ROWS = 4 * dense.TILE_QUERIES
"""Rows of a block: large enough to be worth a task, small enough to share among threads."""


def is_mirror(op: Operation, queries: Any, keys: Any) -> bool:
    """Whether the queries are the keys, attribute by attribute, and the kernel is symmetric."""
    if op.kernel is None or op.pairs is not None or not op.kernel.symmetric:
        return False
    if not isinstance(op.pairwise, Dense):  # compiled loops gain nothing by halves
        return False
    if op.kernel.ranking() is not None or op.kernel.pair_sources():
        return False
    shared = ("data", "bandwidth", "ids", "time")
    return all(
        same_array(getattr(queries, name), getattr(keys, name, None)) for name in shared
    ) and (queries.values is None or same_array(queries.values, getattr(keys, "values", None)))


def fold_symmetric(op: Operation, q: QueryBlock, k: KeyBlock, n_threads: int) -> tuple[Array, ...]:
    """Results of rows among themselves, in memory.

    Blocks meet in the rounds of a tournament: the pairs of a round share no block, so threads
    never touch the same state, and each state sees the blocks in an order that does not depend
    on the number of threads.
    """
    parts = list(row_slices(q.n_rows, BLOCK_ROWS))
    rows = [(q.rows(part), k.rows(part)) for part in parts]

    def alone(i: int) -> Any:
        return op.span(*rows[i])

    def meet(pair: tuple[int, int]) -> None:
        i, j = pair
        states[i], states[j] = op.mutual(*rows[i], *rows[j], (states[i], states[j]))

    with ThreadPoolExecutor(n_threads) as pool, single_threaded_libraries():
        states = list(pool.map(alone, range(len(parts))))
        for pairs in rounds(len(parts)):
            list(pool.map(meet, pairs))
        done = list(pool.map(lambda i: op.complete(rows[i][0], states[i], k), range(len(parts))))
    return dense.concat_rows(done)


def rounds(n: int) -> Iterator[list[tuple[int, int]]]:
    """Every pair of ``0 .. n - 1`` once, in rounds of disjoint pairs (the circle method).

    Examples
    --------
    >>> list(rounds(4))
    [[(0, 3), (1, 2)], [(0, 2), (1, 3)], [(0, 1), (2, 3)]]
    """
    ring = list(range(1, n + n % 2))
    for _ in range(len(ring)):
        circle = [0, *ring]
        half = len(circle) // 2
        met = zip(circle[:half], reversed(circle[half:]), strict=True)
        yield sorted((min(p), max(p)) for p in met if max(p) < n)
        ring = [ring[-1], *ring[:-1]]
