"""Blocks: the rows that travel together, with their per-row attributes.

A *query* asks, a *key* answers, a *value* is what is averaged.  Kernels and reductions see
only blocks, so anything chunked with the rows (bandwidths, ids, times, values) rides in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from array_api_compat import array_namespace

from locpipe.errors import InputError
from locpipe.shared import SharedArray

__all__ = ["Array", "ArrayPairs", "KeyBlock", "PairSource", "QueryBlock", "Tile", "row_slices"]

Array = Any
"""An array of any library that follows the array API standard."""

Tile = tuple[Array, ...]
"""What a `PairSource` gives for a rectangle of pairs; the reduction fixes the meaning."""


def row_slices(n_rows: int, step: int, start: int = 0) -> Iterator[slice]:
    """Consecutive slices of at most `step` rows that cover ``start .. n_rows``.

    Examples
    --------
    >>> list(row_slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(i, min(i + step, n_rows)) for i in range(start, n_rows, step))


Block = TypeVar("Block", "QueryBlock", "KeyBlock")


@dataclass(frozen=True, eq=False)
class QueryBlock:
    """Consecutive queries.

    Attributes
    ----------
    data : array (n_queries, n_features)
    start : int
        Global index of the first row.
    bandwidth : array (n_queries,), optional
        Factor on the kernel's bandwidth, one per query.
    ids : integer array (n_queries,), optional
        Identity of each row; default: its global index.
    time : array (n_queries,), optional
        Position of each row for causal masks; default: its global index.
    values : array (n_queries, n_outputs), optional
        Current values of the queries, for kernels that look at values too.
    best_score, kth_score : arrays (n_queries,), optional
        Scores of the best and of the k-th key, from the first pass of a kernel that ranks;
        ``-inf`` with fewer keys.
    kth_index : int64 array (n_queries,), optional
        Global index of the k-th key; keys of equal score up to it are among the k.
    """

    data: Array
    start: int = 0
    bandwidth: Array | None = None
    ids: Array | None = None
    time: Array | None = None
    values: Array | None = None
    best_score: Array | None = None
    kth_score: Array | None = None
    kth_index: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows in the block."""
        return int(self.data.shape[0])

    def rows(self, part: slice) -> QueryBlock:
        """Part of the block, as views; `part` counts from the block's first row."""
        return _rows(self, part)

    def chosen(self, mask: Array) -> QueryBlock:
        """The rows that a boolean mask marks, as copies that keep their ids and times."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "start"}
        if self.start != UNKNOWN_START:
            given |= {"ids": row_ids(self), "time": row_times(self)}
        cut = {name: None if array is None else array[mask] for name, array in given.items()}
        return QueryBlock(start=UNKNOWN_START, **cut)


@dataclass(frozen=True, eq=False)
class KeyBlock:
    """Consecutive keys, with what they carry.

    Attributes
    ----------
    data : array (n_keys, n_features)
    start : int
        Global index of the first row.
    values : array (n_keys, n_outputs), optional
    log_sample_weight : array (n_keys,), optional
        Log of each key's weight; ``-inf`` takes the key out.
    bandwidth : array (n_keys,), optional
        Factor on the kernel's bandwidth, one per key.
    ids, time : arrays (n_keys,), optional
        As in `QueryBlock`.
    """

    data: Array
    start: int = 0
    values: Array | None = None
    log_sample_weight: Array | None = None
    bandwidth: Array | None = None
    ids: Array | None = None
    time: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows in the block."""
        return int(self.data.shape[0])

    def rows(self, part: slice) -> KeyBlock:
        """Part of the block, as views; `part` counts from the block's first row."""
        return _rows(self, part)


def _rows(block: Block, part: slice) -> Block:
    if part == slice(0, block.n_rows):
        return block
    cut = {
        f.name: None if (value := getattr(block, f.name)) is None else value[part, ...]
        for f in fields(block)
        if f.name != "start"
    }
    start = block.start if block.start == UNKNOWN_START else block.start + part.start
    return replace(block, start=start, **cut)


def row_ids(block: QueryBlock | KeyBlock) -> Array:
    """Identity of each row: the given ids, else the global row index, int64 (n_rows,)."""
    return _global_index(block) if block.ids is None else block.ids


def row_times(block: QueryBlock | KeyBlock) -> Array:
    """Time of each row: the given times, else the global row index (n_rows,)."""
    return _global_index(block) if block.time is None else block.time


def block_span(block: QueryBlock | KeyBlock) -> slice:
    """Global row indices of a block; refuses one whose place is not known."""
    if block.start < 0:
        raise InputError(_PLACE_UNKNOWN)
    return slice(block.start, block.start + block.n_rows)


_PLACE_UNKNOWN = (
    "rows are told apart by their place, and the chunk sizes before them are unknown; "
    "give ids= and time=, or call compute_chunk_sizes() on the array first"
)
UNKNOWN_START = -1
"""Start of a block whose place is not known (Dask chunks of unknown size come before it)."""


def _global_index(block: QueryBlock | KeyBlock) -> Array:
    xp, span = array_namespace(block.data), block_span(block)
    return xp.arange(span.start, span.stop, dtype=xp.int64)


@runtime_checkable
class PairSource(Protocol):
    """Data given per (query, key) pair, read one rectangle at a time."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of queries and keys."""

    def tile(self, rows: slice, columns: slice) -> Tile:
        """Arrays of shape (n_rows, n_columns); the reduction says what each one means."""


@dataclass(frozen=True, eq=False)
class ArrayPairs:
    """A `PairSource` over arrays in memory.

    Parameters
    ----------
    delta : array (n_queries, n_keys)
        Dissimilarities; NaN marks a missing cell.
    weight : array (n_queries, n_keys), optional
        Weight of each cell; default: 1.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = ArrayPairs(np.arange(6.0).reshape(2, 3))
    >>> pairs.shape, pairs.tile(slice(0, 1), slice(1, 3))[0]
    ((2, 3), array([[1., 2.]]))
    """

    delta: Array
    weight: Array | None = None
    _shared: tuple[SharedArray | None, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("delta", "weight"):
            given = getattr(self, name)
            if given is not None and not hasattr(given, "shape"):
                object.__setattr__(self, name, _matrix(given))
        if len(self.delta.shape) != 2:
            raise InputError(
                f"dissimilarities must be a matrix, got {len(self.delta.shape)} dimension(s); "
                "reshape to (n_queries, n_keys)"
            )
        if self.weight is not None and self.weight.shape != self.delta.shape:
            raise InputError(
                f"weight must have the shape of the dissimilarities {tuple(self.delta.shape)}, "
                f"got {tuple(self.weight.shape)}"
            )
        weight = None if self.weight is None else SharedArray(self.weight)
        object.__setattr__(self, "_shared", (SharedArray(self.delta), weight))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of queries and keys."""
        n_queries, n_keys = self.delta.shape
        return int(n_queries), int(n_keys)

    def tile(self, rows: slice, columns: slice) -> Tile:
        """The dissimilarities and, where given, the weights of a rectangle, as views."""
        delta = self.delta[rows, columns]
        return (delta,) if self.weight is None else (delta, self.weight[rows, columns])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_pairs, self._shared


def _matrix(rows: Any) -> Array:
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            "pairs must be rows of numbers of equal length, got something else; pass an array "
            "(n_queries, n_keys)"
        ) from error


def _restore_pairs(delta: SharedArray, weight: SharedArray | None) -> ArrayPairs:
    return ArrayPairs(delta.array, None if weight is None else weight.array)
