"""Dask arrays in, Dask arrays out: graphs built from metadata alone."""

from __future__ import annotations

from dataclasses import fields
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import is_dask_array

from locpipe.blocks import UNKNOWN_START, KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.operation import Operation
from locpipe.graph.sources import ArrayKeys, KeySource
from locpipe.shared import SharedArray

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

__all__ = ["fold_lazily"]

_MERGE_AT_A_TIME = 8


def fold_lazily(op: Operation, queries: Queries, keys: Any) -> tuple[DaskArray, ...]:
    """Results as Dask arrays, chunked as the queries; nothing is computed here.

    Keys in memory or in a store (`KeySource`): **stream**, one task per query block folds them
    all.  Keys that are Dask arrays: **tree**, one task per query block and key chunk gives a
    state, and states merge in a tree, so no worker ever holds all keys.
    """
    q_blocks = _delayed_blocks(_query_block, queries)
    if isinstance(keys, Keys):
        k_blocks = _key_blocks(keys)
        results = [_tree(op, q, k_blocks) for q in q_blocks]
    else:
        shared = _share_keys(keys)
        results = [_task(op.stream)(q, shared) for q in q_blocks]
    return _assemble(op, queries, results)


def _tree(op: Operation, q: Any, k_blocks: list[Any]) -> Any:
    states = [_task(op.span)(q, k) for k in k_blocks]
    while len(states) > 1:
        groups = range(0, len(states), _MERGE_AT_A_TIME)
        states = [_task(op.merge)(states[i : i + _MERGE_AT_A_TIME]) for i in groups]
    return _task(op.finish)(states[0])


def _task(function: Any) -> Any:
    from dask.delayed import delayed

    return delayed(function, pure=False)


def _share_keys(source: KeySource) -> Any:
    """Keys as a graph refers to them: a Future with a Client, else the source itself."""
    client = _active_client()
    if client is None or not isinstance(source, ArrayKeys):
        return source
    return client.scatter(source.block, hash=False)


def _share_array(array: Any) -> Any:
    client = _active_client()
    return SharedArray(array) if client is None else client.scatter(array, hash=False)


def _active_client() -> Any:
    import sys

    if "distributed" not in sys.modules:  # importing it takes half a second
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def _query_block(**rows: Any) -> QueryBlock:
    return QueryBlock(**rows)


def _key_block(*, sample_weight: Any = None, **rows: Any) -> KeyBlock:
    return KeyBlock(**rows, log_sample_weight=log_weight(sample_weight))


def log_weight(sample_weight: Any) -> Any:
    """Log of sample weights; a weight of 0 gives -inf without a warning."""
    if sample_weight is None:
        return None
    with np.errstate(divide="ignore"):
        return np.log(sample_weight)


def _key_blocks(keys: Keys) -> list[Any]:
    if np.isnan(keys.data.shape[0]):
        raise InputError(
            "the number of keys must be known to plan, got a Dask array of unknown chunk sizes; "
            "call compute_chunk_sizes() on it first"
        )
    return _delayed_blocks(_key_block, keys)


def _delayed_blocks(make: Any, rows: Queries | Keys) -> list[Any]:
    """One delayed block per row chunk of the data, its attributes cut the same way."""
    chunks = rows.data.chunks[0] if is_dask_array(rows.data) else (rows.data.shape[0],)
    given = {f.name: getattr(rows, f.name) for f in fields(rows)}
    pieces = {name: _pieces(a, chunks, name) for name, a in given.items() if a is not None}
    return [
        _task(make)(start=start, **{name: piece[i] for name, piece in pieces.items()})
        for i, start in enumerate(_starts(chunks))
    ]


def _pieces(array: Any, chunks: tuple[Any, ...], name: str) -> list[Any]:
    """The rows of an array per chunk, delayed."""
    if not is_dask_array(array):
        return _pieces_in_memory(array, chunks, name)
    if not _same_chunks(array.chunks[0], chunks):
        if np.isnan([*array.chunks[0], *chunks]).any():
            raise InputError(
                f"{name} must have the chunks of the rows it belongs to where chunk sizes are "
                "unknown; call compute_chunk_sizes() on both first"
            )
        array = array.rechunk({0: chunks})
    if array.ndim == 2 and array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    return list(array.to_delayed().ravel())


def _pieces_in_memory(array: Any, chunks: tuple[Any, ...], name: str) -> list[Any]:
    if np.isnan(chunks).any():
        raise InputError(
            f"{name} of rows with unknown chunk sizes must be a Dask array chunked like them, "
            "got an array in memory; call compute_chunk_sizes() on the rows first"
        )
    shared, starts = _share_array(array), _starts(chunks)
    return [_task(_cut)(shared, a, a + n) for a, n in zip(starts, chunks, strict=True)]


def _cut(array: Any, start: int, stop: int) -> Any:
    return (array.array if isinstance(array, SharedArray) else array)[start:stop]


def _same_chunks(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return len(a) == len(b) and np.array_equal(a, b, equal_nan=True)


def _starts(chunks: tuple[Any, ...]) -> list[int]:
    if np.isnan(chunks).any():
        return list(repeat(UNKNOWN_START, len(chunks)))
    return list(accumulate(chunks[:-1], initial=0))


def _nth(results: tuple[Any, ...], i: int) -> Any:
    return results[i]


def _assemble(op: Operation, queries: Queries, results: list[Any]) -> tuple[DaskArray, ...]:
    import dask.array as da

    lazy = is_dask_array(queries.data)
    chunks = queries.data.chunks[0] if lazy else (queries.data.shape[0],)
    metas = op.meta(QueryBlock(np.empty((0, queries.data.shape[1]))))
    arrays = []
    for i, meta in enumerate(metas):
        pieces = [
            da.from_delayed(_task(_nth)(result, i), shape=(n, *meta.shape[1:]), meta=meta)
            for result, n in zip(results, chunks, strict=True)
        ]
        arrays.append(da.concatenate(pieces))
    return type(metas)(*arrays) if hasattr(metas, "_fields") else tuple(arrays)
