"""Bytes that a fold holds, from metadata alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from array_api_compat import is_dask_array

from locpipe.blocks import ArrayPairs, QueryBlock
from locpipe.engines import Need, dense
from locpipe.graph.choose import Chosen
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.operation import Operation
from locpipe.graph.pair_blocks import lazy_pairs
from locpipe.graph.sizes import Sizes
from locpipe.graph.sources import ArrayKeys, KeySource, read_bytes

__all__ = ["Footprint", "bytes_in_memory", "row_bytes"]

_FLOAT = 8
_RANKS = 3
"""Numbers per query that a first pass leaves in the query block."""
_FREED_LATE = 4 * 2**20
"""Per thread: what the allocator keeps of blocks already freed."""


@dataclass(frozen=True)
class Footprint:
    """What one thread holds while it folds a block of queries.

    Attributes
    ----------
    per_query : int
        Bytes per query of the block: coordinates in float64, states, results.
    per_key : int
        Bytes per key of the block in float64.
    tile : int
        Bytes of the temporaries of one tile of pairs.
    state : int
        Bytes of the state of a query.
    pairs : int
        Bytes of the data per pair that are read for a tile, or that a task of a graph is handed.
    query_chunk, key_chunk : int
        Bytes of a row as it comes in a chunk of a Dask array.
    source : KeySource or Keys
        Where the keys are read from.
    query_rows : int
        Queries that the engine wants in a block; 0: as the memory suits.
    threads_inside : bool
        Whether the engine takes all cores for one block.
    """

    per_query: int
    per_key: int
    tile: int
    pairs: int
    state: int
    query_chunk: int
    key_chunk: int
    source: KeySource | Keys
    query_rows: int = 0
    threads_inside: bool = False

    @classmethod
    def of(
        cls, chosen: Chosen, queries: Queries, keys: Keys | KeySource, sizes: Sizes
    ) -> Footprint:
        """The footprint of an operation."""
        op, engine, n_features = chosen.op, chosen.engine, int(queries.data.shape[1])
        passes = [p for p in (op, op.first_pass(), op.fallback()) if p is not None]
        states = sum(_state_and_results(p, n_features) for p in passes)
        widened = row_bytes(queries, _FLOAT) + _RANKS * _FLOAT * (len(passes) > 1)
        tile = max(_tile(p, chosen.need) for p in passes)
        return cls(
            per_query=widened + states + _of_summary(engine, "query_bytes", chosen.need),
            per_key=_key_bytes(keys),
            tile=tile,
            pairs=_pairs_bytes(op, sizes),
            state=_state_bytes(op, n_features),
            query_chunk=row_bytes(queries),
            key_chunk=row_bytes(keys) if isinstance(keys, Keys) else 0,
            source=keys,
            query_rows=getattr(engine, "query_rows", 0),
            threads_inside=getattr(engine, "threads_inside", False),
        )

    def block(self, query_rows: int, key_rows: int) -> int:
        """Bytes of one thread that folds `query_rows` queries, `key_rows` keys at a time."""
        rows = query_rows * self.per_query + self.keys(key_rows)
        return rows + self.pairs + self.tile + _FREED_LATE

    def keys(self, key_rows: int) -> int:
        """Bytes of the keys of a block as they are read, and in float64."""
        read = 0 if isinstance(self.source, Keys) else read_bytes(self.source, key_rows)
        return key_rows * self.per_key + read


def result_bytes(op: Operation, n_features: int) -> int:
    """Bytes of the results of one query, in float64."""
    metas = op.meta(QueryBlock(np.empty((0, n_features))))
    return sum(_FLOAT * int(np.prod(meta.shape[1:])) for meta in metas)


def bytes_in_memory(arrays: Iterable[Any]) -> int:
    """Bytes of the arrays that lie in memory, each counted once; memory maps are not."""
    held = {}
    for array in arrays:
        if array is not None and not is_dask_array(array) and not _is_mapped(array):
            held[_address(array)] = _nbytes(array)
    return sum(held.values())


def arrays_of(op: Operation, queries: Queries, keys: Keys | KeySource) -> list[Any]:
    """All arrays that the caller handed over."""
    rows = [queries, keys.block if isinstance(keys, ArrayKeys) else keys]
    arrays = [a for r in rows for a in getattr(r, "__dict__", {}).values() if hasattr(a, "shape")]
    pairs = op.pairs
    return [*arrays, pairs.delta, pairs.weight] if isinstance(pairs, ArrayPairs) else arrays


def row_bytes(rows: Queries | Keys, itemsize: int | None = None) -> int:
    """Bytes of one row with its attributes, as they are or at a given width."""
    arrays = [a for a in vars(rows).values() if a is not None]
    return sum(int(np.prod(a.shape[1:])) * (itemsize or _itemsize(a)) for a in arrays)


def _state_and_results(op: Operation, n_features: int) -> int:
    """Per query: the state as it was and as it becomes, and what finalizing needs besides."""
    n_bytes = _state_bytes(op, n_features)
    return 2 * n_bytes + max(n_bytes, 3 * result_bytes(op, n_features))


def _state_bytes(op: Operation, n_features: int) -> int:
    state = op.reduction.init(QueryBlock(np.zeros((1, n_features))))
    return sum(_nbytes(array) for array in state)


def summary_bytes(chosen: Chosen) -> int:
    """Bytes of the summary of all keys, and of making it; 0 where there is none."""
    return _of_summary(chosen.engine, "summary_bytes", chosen.need)


def _of_summary(engine: Any, what: str, need: Need) -> int:
    """What an engine that summarises says of its memory."""
    said = getattr(engine, what, None)
    return 0 if said is None else int(said(need))


def _tile(op: Operation, need: Need) -> int:
    need = replace(need, kernel=op.kernel, reduction=op.reduction, has_pairs=bool(op.pairs))
    of_summary = _of_summary(op.engine, "tile_bytes", need)
    return max(op.pairwise.tile_bytes(need), of_summary)


def _pairs_bytes(op: Operation, sizes: Sizes) -> int:
    """Bytes of the pairs of a tile as they are read, or of a leaf of a graph."""
    tile = dense.TILE_QUERIES, dense.TILE_KEYS
    readers = [getattr(source, "read_bytes", None) for source in op.pair_sources()]
    of_tile = sum(int(read(*tile)) for read in readers if read is not None)
    leaf = sizes.query_rows, sizes.key_rows
    return of_tile + sum(_leaf_bytes(array, leaf) for array in lazy_pairs(op))


def _leaf_bytes(array: Any, leaf: tuple[int, int]) -> int:
    """The largest chunk of a Dask array, and the leaf's rectangle where chunks are cut to it."""
    chunk = tuple(max(sizes) for sizes in array.chunks)
    cut = 0 if chunk == leaf else 2 * prod(leaf)  # the pieces, and the pieces joined
    n_bytes: int = _itemsize(array) * (prod(chunk) + cut)
    return n_bytes


def _key_bytes(keys: Keys | KeySource) -> int:
    """Bytes of a key in float64, as far as folding makes a copy of it."""
    if isinstance(keys, Keys):
        return row_bytes(keys, _FLOAT)
    if isinstance(keys, ArrayKeys):
        arrays = [a for a in vars(keys.block).values() if hasattr(a, "shape")]
        narrow = [a for a in arrays if _itemsize(a) < _FLOAT]
        return sum(int(np.prod(a.shape[1:])) * _FLOAT for a in narrow)
    return _FLOAT * (keys.n_features + (keys.n_outputs or 0) + 2)


def _nbytes(array: Any) -> int:
    return int(np.prod(array.shape)) * _itemsize(array)


def _itemsize(array: Any) -> int:
    return int(getattr(array.dtype, "itemsize", _FLOAT))


def _is_mapped(array: Any) -> bool:
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = getattr(array, "base", None)
    return False


def _address(array: Any) -> Any:
    interface = getattr(array, "__array_interface__", None)
    return id(array) if interface is None else (interface["data"][0], array.shape)
