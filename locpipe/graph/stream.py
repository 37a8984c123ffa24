"""The strategy ``stream``: a task owns a block of queries and folds all key blocks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from locpipe import config
from locpipe.blocks import Array, QueryBlock, row_slices
from locpipe.engines import dense, single_threaded_libraries
from locpipe.graph.operation import Operation
from locpipe.graph.sources import KeySource

__all__ = ["fold_in_memory"]


def fold_in_memory(
    op: Operation, q: QueryBlock, keys: KeySource, n_threads: int | None = None
) -> tuple[Array, ...]:
    """Results of queries in memory: a pool of threads over query blocks.

    Blocks begin at multiples of the engine's tile, so the tiles, and with them the bits of
    the result, are the same for any number of threads.
    """
    if q.n_rows == 0:
        return op.meta(q)
    blocks = list(row_slices(q.n_rows, _block_rows(q.n_rows, n_threads)))

    def run(rows: slice) -> tuple[Array, ...]:
        return op.stream(q.rows(rows), keys)

    if len(blocks) == 1:
        return run(blocks[0])
    with ThreadPoolExecutor(len(blocks)) as pool, single_threaded_libraries():
        return dense.concat_rows(list(pool.map(run, blocks)))


def _block_rows(n_rows: int, n_threads: int | None) -> int:
    n_tiles = -(-n_rows // dense.TILE_QUERIES)
    tiles_per_thread = -(-n_tiles // (n_threads or config.current().n_threads))
    return tiles_per_thread * dense.TILE_QUERIES
