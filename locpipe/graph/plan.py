"""What would run: decided from metadata alone, within a memory limit that is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_dask_array

from locpipe.engines import dense
from locpipe.errors import InputError
from locpipe.graph.costs import seconds_of
from locpipe.graph.explain import explain, human_bytes
from locpipe.graph.footprint import (
    Footprint,
    arrays_of,
    bytes_in_memory,
    result_bytes,
)
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.operation import Operation
from locpipe.graph.place import Place, place_of
from locpipe.graph.sources import ArrayKeys, KeySource
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction

__all__ = ["Plan", "plan_fold"]

_KEY_BLOCK_BYTES = 16 * 2**20
"""Keys are widened to float64 this much at a time, at most."""
_QUERY_ROWS, _QUERY_ROWS_OF_A_SOURCE = 4_096, 16_384
"""Queries of a block at most; more where each block reads all keys from a store."""
_BLOCKS_PER_THREAD = 4
_UNKNOWN_CHUNK = 65_536
"""Rows that a chunk of unknown size is taken to have."""
_RESULT_COPIES = 2
"""Results in float64, and once more while they are brought to their dtype."""


@dataclass(frozen=True)
class Plan:
    """What would run, and what it would take.

    Attributes
    ----------
    engine : str
    strategy : {"stream", "tree", "symmetric", "summary"}
    kernel : Kernel or None
    reduction : Reduction
    n_queries : int or None
        None where chunk sizes are unknown.
    n_keys, n_features, n_outputs : int
    n_passes : int
        Times that all keys are gone through per block of queries.
    query_rows, key_rows : int
        Rows of a block; multiples of the engine's tile.
    n_threads : int
        Blocks computed at a time in a process.
    n_workers : int
        Processes.
    n_tasks : int
    memory_limit : int
        Bytes that a process may take.
    peak_bytes : int
        Bytes that a process will take at most, libraries and inputs included.
    seconds : float
    """

    engine: str
    strategy: str
    kernel: Kernel | None
    reduction: Reduction
    n_queries: int | None
    n_keys: int
    n_features: int
    n_outputs: int
    n_passes: int
    query_rows: int
    key_rows: int
    n_threads: int
    n_workers: int
    n_tasks: int
    memory_limit: int
    peak_bytes: int
    seconds: float

    def __str__(self) -> str:
        return explain(self)


def plan_fold(
    op: Operation,
    queries: Queries,
    keys: Keys | KeySource,
    *,
    n_threads: int | None = None,
    memory_limit: int | None = None,
) -> Plan:
    """How to fold `keys` into `queries`; nothing is computed.

    Parameters
    ----------
    op : Operation
    queries : Queries
        Checked, in memory or Dask.
    keys : Keys or KeySource
        Checked `Keys` where any of their arrays is a Dask array, else a source.
    n_threads, memory_limit : int, optional
        Default: the settings in force, or those of the Dask worker or Client.

    Raises
    ------
    InputError
        If not even one tile at a time fits the limit that was asked for.
    """
    lazy = isinstance(keys, Keys) or _has_dask(queries)
    place = place_of(lazy=lazy, n_threads=n_threads, memory_limit=memory_limit)
    sizes = _Sizes.of(queries, keys)
    room = _Room(
        place, sizes, Footprint.of(op, queries, keys), _base(op, queries, keys, place, sizes)
    )
    query_rows, key_rows, threads = room.fit()
    cores = threads * place.n_workers
    return Plan(
        engine="dense",
        strategy="tree" if isinstance(keys, Keys) else "stream",
        kernel=op.kernel,
        reduction=op.reduction,
        n_queries=sizes.n_queries,
        n_keys=sizes.n_keys,
        n_features=sizes.n_features,
        n_outputs=sizes.n_outputs,
        n_passes=1 if op.first_pass() is None else 2,
        query_rows=query_rows,
        key_rows=key_rows,
        n_threads=threads,
        n_workers=place.n_workers,
        n_tasks=sizes.n_chunks if lazy else -(-sizes.query_chunk // query_rows),
        memory_limit=place.memory_limit,
        peak_bytes=room.peak(query_rows, key_rows, threads),
        seconds=seconds_of(op, sizes.n_pairs, sizes.n_features, sizes.n_outputs, cores),
    )


@dataclass(frozen=True)
class _Room:
    """Rows per block that keep a process within its limit.

    `base` is what it holds whatever the blocks: libraries, inputs, results.
    """

    place: Place
    sizes: _Sizes
    footprint: Footprint
    base: int

    def peak(self, query_rows: int, key_rows: int, threads: int) -> int:
        """Bytes of the process with `threads` blocks at work."""
        at_work = threads if self.place.pool > 1 else self.place.n_threads
        return self.base + at_work * self.footprint.block(query_rows, key_rows)

    def fit(self) -> tuple[int, int, int]:
        """The largest blocks, and the most threads, that fit.

        Raises
        ------
        InputError
            If nothing does, and the limit was asked for.
        """
        tile_q, tile_k = dense.TILE_QUERIES, dense.TILE_KEYS
        for threads in range(self._threads(), 0, -1):
            for key_rows in _halvings(self._key_rows(), tile_k):
                for query_rows in _halvings(self._query_rows(threads), tile_q):
                    if self.peak(query_rows, key_rows, threads) <= self.place.memory_limit:
                        return query_rows, key_rows, threads
        if self.place.is_given:
            raise InputError(self._too_much(self.peak(tile_q, tile_k, 1)))
        return tile_q, tile_k, self._threads()

    def _threads(self) -> int:
        """Threads that one call starts: no more than there are tiles of queries."""
        return max(1, min(self.place.pool, -(-self.sizes.query_chunk // dense.TILE_QUERIES)))

    def _key_rows(self) -> int:
        width = 8 * (self.sizes.n_features + self.sizes.n_outputs)
        return min(_whole_tiles(self.sizes.key_chunk), _power_of_two(_KEY_BLOCK_BYTES // width))

    def _query_rows(self, threads: int) -> int:
        if isinstance(self.footprint.source, ArrayKeys):
            share = -(-self.sizes.query_chunk // (_BLOCKS_PER_THREAD * threads))
            return min(_whole_tiles(share), _QUERY_ROWS)
        return min(_whole_tiles(-(-self.sizes.query_chunk // threads)), _QUERY_ROWS_OF_A_SOURCE)

    def _too_much(self, least: int) -> str:
        return (
            f"memory_limit must be at least {human_bytes(least)} for these arrays, "
            f"{human_bytes(self.base)} of it for libraries, inputs and results, got "
            f"{human_bytes(self.place.memory_limit)}; hand large arrays over as a store, a "
            "memory map or Dask arrays, or raise the limit"
        )


def _whole_tiles(rows: int) -> int:
    return max(1, -(-rows // dense.TILE_QUERIES)) * dense.TILE_QUERIES


def _power_of_two(rows: int) -> int:
    return max(dense.TILE_KEYS, 1 << max(rows, 1).bit_length() - 1)


def _halvings(rows: int, tile: int) -> Iterator[int]:
    """`rows` and its halves in whole tiles, down to one tile."""
    while rows > tile:
        yield rows
        rows = _whole_tiles(rows // 2) if rows // 2 > tile else tile
    yield tile


def _base(
    op: Operation, queries: Queries, keys: Keys | KeySource, place: Place, sizes: _Sizes
) -> int:
    """Bytes of a process whatever its blocks: libraries, inputs, results and their copies."""
    inputs = bytes_in_memory(arrays_of(op, queries, keys))
    per_result = result_bytes(op, sizes.n_features)
    n_queries = sizes.n_queries or sizes.query_chunk * sizes.n_chunks
    results = _RESULT_COPIES * per_result * -(-n_queries // place.n_workers)
    return max(place.held + inputs, place.resident) + results


@dataclass(frozen=True)
class _Sizes:
    """Sizes as far as metadata tells; a chunk is all rows where there are no chunks."""

    n_queries: int | None
    n_keys: int
    n_features: int
    n_outputs: int
    query_chunk: int
    key_chunk: int
    n_chunks: int

    @property
    def n_pairs(self) -> int:
        """Pairs of a query and a key, as far as is known."""
        return (self.n_queries or self.query_chunk * self.n_chunks) * self.n_keys

    @classmethod
    def of(cls, queries: Queries, keys: Keys | KeySource) -> _Sizes:
        """Sizes of queries and keys."""
        n_rows, query_chunk, n_query_chunks = _rows_and_chunks(queries.data)
        if isinstance(keys, Keys):
            n_keys, key_chunk, n_key_chunks = _rows_and_chunks(keys.data)
            values = 0 if keys.values is None else int(np.prod(keys.values.shape[1:]))
        else:
            n_keys = key_chunk = keys.n_keys
            n_key_chunks, values = 1, keys.n_outputs or 0
        if n_keys is None:
            raise InputError(
                "the number of keys must be known to plan, got a Dask array of unknown chunk "
                "sizes; call compute_chunk_sizes() on it first"
            )
        n_features = int(queries.data.shape[1])
        chunks = n_query_chunks * n_key_chunks
        return cls(n_rows, n_keys, n_features, values, query_chunk, key_chunk, chunks)


def _rows_and_chunks(data: Any) -> tuple[int | None, int, int]:
    """Rows (None if unknown), rows of the largest chunk, number of chunks."""
    if not is_dask_array(data):
        return int(data.shape[0]), int(data.shape[0]), 1
    chunks = data.chunks[0]
    if np.isnan(chunks).any():
        return None, _UNKNOWN_CHUNK, len(chunks)
    return int(sum(chunks)), int(max(chunks)), len(chunks)


def _has_dask(rows: Any) -> bool:
    return any(is_dask_array(array) for array in vars(rows).values())
