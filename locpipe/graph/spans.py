"""How the rows of a lazy fold are cut: groups of query chunks, spans of keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from array_api_compat import is_dask_array

from locpipe.blocks import row_slices
from locpipe.graph.inputs import Keys, Queries, has_dask
from locpipe.graph.layer import Group, Layer, groups_of, row_blocks
from locpipe.graph.place import active_client
from locpipe.graph.sources import ArrayKeys, KeySource

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

__all__ = [
    "MAX_LEAVES",
    "KeySpans",
    "Span",
    "are_held",
    "group_rows",
    "held_bytes",
    "pair_chunks",
    "room_for_keys",
    "source_spans",
]

MAX_LEAVES = 20_000
"""Tasks over pairs in one graph.  A scheduler spends about a millisecond on a task and a client
longer on a graph of millions, so beyond this number a task takes several chunks."""
_ENOUGH_LEAVES = 2_000
"""Up to here chunks are left as they are."""
_PAIRS_PER_LEAF = 10**8
"""About a second of work; less is not worth a task once there are enough of them."""
_PARALLEL_LEAVES = 16
"""Leaves that a few queries over many keys are spread over."""
_SHARE_OF_KEYS = 0.25
"""Of the memory of all processes; keys that take more are read again rather than held."""
_GROUP_BYTES = 8 * 2**20
"""Coordinates and values that chunks are joined up to."""


class Span(NamedTuple):
    """Keys of one leaf: a block or a source, and the part of it."""

    keys: Any
    start: int
    stop: int | None
    column: int
    """Global index of the first key."""

    def rows(self) -> int | None:
        """Number of keys, where it is known."""
        return None if self.stop is None else self.stop - self.start


def room_for_keys(place: Any) -> int:
    """Bytes of Dask keys that all processes may hold, by a `Place` or the `Plan` made for it."""
    return int(place.memory_limit * place.n_workers * _SHARE_OF_KEYS)


def are_held(keys: Keys | KeySource, room: float) -> bool:
    """Whether all keys may lie in memory at a time; they do once two groups of queries share them.

    A block of a Dask array lives until the last task that needs it.  Every group of queries
    needs every block, and a scheduler takes the groups one after the other.
    """
    if not isinstance(keys, Keys) or not has_dask(keys):
        return True
    return held_bytes(keys) <= room


def held_bytes(keys: Keys) -> int:
    """Bytes of keys that are Dask arrays, with what rides on them; 0 for unknown chunk sizes."""
    sizes = (a.nbytes for a in vars(keys).values() if is_dask_array(a))
    return sum(0 if isnan(n_bytes) else int(n_bytes) for n_bytes in sizes)


def group_rows(
    queries: Queries, keys: Keys | KeySource, pairs: Sequence[DaskArray], *, held: bool = True
) -> tuple[list[Group], list[Group]]:
    """Chunks that go together: of the queries, and of keys that are Dask arrays (else none).

    Keys that are not `held` are read for each group of queries, so these are few and large.
    """
    lazy_keys = isinstance(keys, Keys) and (has_dask(keys) or bool(pairs))
    k_chunks = _chunks(keys, pairs, 1) if isinstance(keys, Keys) and lazy_keys else ()
    q_chunks = _chunks(queries, pairs, 0)
    n_q, n_k = _group_counts(q_chunks, k_chunks or (1,), _pairs(q_chunks, keys))
    return (
        groups_of(q_chunks, n_q if held else 1, _most_rows(queries)),
        groups_of(k_chunks, n_k, _most_rows(keys)) if k_chunks else [],
    )


@dataclass(eq=False)
class KeySpans:
    """The keys of every leaf: the same for all groups of queries, or read anew for each."""

    layer: Layer
    keys: Keys | KeySource
    q_groups: Sequence[Group]
    k_groups: Sequence[Group]
    held: bool
    _taken: bool = False

    @cached_property
    def first(self) -> list[Span]:
        """The spans of the keys as they came."""
        return _key_spans(self.layer, self.keys, self.q_groups, self.k_groups)

    def take(self) -> list[Span]:
        """Spans for one more pass over the keys."""
        if self.held or not self._taken or not isinstance(self.keys, Keys):
            self._taken = True
            return self.first
        return _key_spans(self.layer, _read_anew(self.keys), self.q_groups, self.k_groups)


def _read_anew(keys: Keys) -> Keys:
    """The same keys by tasks of their own, so that no block waits for another pass."""
    from dask.graph_manipulation import clone

    lazy = {name: a for name, a in vars(keys).items() if is_dask_array(a)}
    return replace(keys, **clone(lazy))


def _key_spans(
    layer: Layer, keys: Keys | KeySource, q_groups: Sequence[Group], k_groups: Sequence[Group]
) -> list[Span]:
    if isinstance(keys, Keys):
        blocks = row_blocks(layer, keys, k_groups)
        return [
            Span(block, 0, int(g.n_rows), g.start)
            for block, g in zip(blocks, k_groups, strict=True)
        ]
    n_spans = source_spans(q_groups, keys.n_keys)
    slices = list(row_slices(keys.n_keys, -(-keys.n_keys // n_spans)))
    client = active_client()
    if client is None or not isinstance(keys, ArrayKeys):
        return [Span(keys, part.start, part.stop, part.start) for part in slices]
    # Scattered once, in the pieces that leaves need; the graph holds Futures.
    pieces = client.scatter([keys.block.rows(part) for part in slices], hash=False)
    return [
        Span(piece, 0, part.stop - part.start, part.start)
        for piece, part in zip(pieces, slices, strict=True)
    ]


def pair_chunks(array: DaskArray, q_groups: Sequence[Group], spans: Sequence[Span]) -> DaskArray:
    """An array of pairs, chunked by the leaves."""
    rows = tuple(int(group.n_rows) for group in q_groups)
    cut: DaskArray = array.rechunk((rows, tuple(span.rows() for span in spans)))
    return cut


def _chunks(rows: Queries | Keys, pairs: Sequence[DaskArray], axis: int) -> tuple[Any, ...]:
    data: Any = rows.data
    if is_dask_array(data):
        return tuple(data.chunks[0])
    return tuple(pairs[0].chunks[axis]) if pairs else (data.shape[0],)


def _pairs(q_chunks: Sequence[Any], keys: Keys | KeySource) -> float:
    n_keys = keys.data.shape[0] if isinstance(keys, Keys) else keys.n_keys
    return float(sum(q_chunks)) * float(n_keys)


def _most_rows(rows: Queries | Keys | KeySource) -> float:
    width = rows.data.shape[1] if isinstance(rows, Queries | Keys) else rows.n_features
    values = getattr(rows, "values", None)
    width += 0 if values is None else int(np.prod(values.shape[1:]))
    return _GROUP_BYTES / (8 * width)


def _group_counts(
    q_chunks: Sequence[Any], k_chunks: Sequence[Any], n_pairs: float
) -> tuple[int, int]:
    """How many groups of either kind; chunks are left alone while the graph is small."""
    n_q, n_k = len(q_chunks), len(k_chunks)
    worth = 0.0 if isnan(n_pairs) else n_pairs / _PAIRS_PER_LEAF
    most = min(MAX_LEAVES, max(_ENOUGH_LEAVES, worth))
    if n_q * n_k <= most:
        return n_q, n_k
    n_k = max(1, min(n_k, int(n_k / sqrt(n_q * n_k / most))))
    return max(1, min(n_q, int(most / n_k))), n_k


def source_spans(q_groups: Sequence[Group], n_keys: int) -> int:
    """Parts that keys in memory or in a store are cut into, so that few queries use all cores."""
    n_pairs = sum(group.n_rows for group in q_groups) * n_keys
    if isnan(n_pairs):
        return 1
    wanted = -(-_PARALLEL_LEAVES // len(q_groups))
    return max(1, min(wanted, int(n_pairs / _PAIRS_PER_LEAF)))
