"""Rows per block that keep a process within its memory limit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from locpipe.engines import dense
from locpipe.errors import InputError
from locpipe.graph.choose import Chosen
from locpipe.graph.costs import halves_pay
from locpipe.graph.explain import too_much
from locpipe.graph.footprint import (
    Footprint,
    arrays_of,
    bytes_in_memory,
    result_bytes,
    summary_bytes,
)
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.operation import Operation
from locpipe.graph.place import Place
from locpipe.graph.sizes import Sizes
from locpipe.graph.sources import ArrayKeys, KeySource
from locpipe.graph.symmetric import BLOCK_ROWS, is_mirror

__all__ = ["Blocks", "Room"]

_KEY_BLOCK_BYTES = 16 * 2**20
"""Keys are widened to float64 this much at a time, at most."""
_KEY_ROWS = 4_096
"""Or so many, lest queries are made ready too often."""
_QUERY_ROWS, _QUERY_ROWS_OF_A_SOURCE = 4_096, 16_384
"""Queries of a block at most; more where each block reads all keys from a store."""
_BLOCKS_PER_THREAD, _FEW_BLOCKS_PER_THREAD = 4, 2
"""More of them share the work more evenly; what each one costs by itself shows in short calls, and
in keys of many columns, which each makes ready."""
_SHORT_SECONDS = 0.2
"""Per thread."""
_WIDE = 512
_RESULT_COPIES = 2
"""Results in float64, and once more while they are brought to their dtype."""
_STATES_AT_A_MERGE = 9


class Blocks(NamedTuple):
    """What is worked on at a time."""

    query_rows: int
    key_rows: int
    n_threads: int


@dataclass(frozen=True)
class Room:
    """What a process holds, and its limit.

    Attributes
    ----------
    strategy : str
    place : Place
    sizes : Sizes
    footprint : Footprint
        What grows with the blocks.
    base : int
        Bytes held whatever the blocks: libraries, inputs, results.
    blocks_per_thread : int
        At least, of queries against arrays in memory.
    """

    strategy: str
    place: Place
    sizes: Sizes
    footprint: Footprint
    base: int
    blocks_per_thread: int

    @classmethod
    def of(
        cls, chosen: Chosen, queries: Queries, keys: Keys | KeySource, place: Place, sizes: Sizes
    ) -> Room:
        """The room for an operation, at the strategy that suits it."""
        op = chosen.op
        inputs = bytes_in_memory(arrays_of(op, queries, keys))
        n_queries = sizes.n_queries or sizes.query_rows * sizes.n_groups
        results = _RESULT_COPIES * result_bytes(op, sizes.n_features) * n_queries
        shared = -(-(results + sizes.held) // place.n_workers)
        base = max(place.held + inputs, place.resident) + shared + summary_bytes(chosen)
        base += place.compiler if chosen.compiles else 0
        footprint = Footprint.of(chosen, queries, keys, sizes)
        is_short = chosen.seconds() < _SHORT_SECONDS * place.pool
        is_wide = sizes.n_features + sizes.n_outputs >= _WIDE
        n_blocks = _FEW_BLOCKS_PER_THREAD if is_short or is_wide else _BLOCKS_PER_THREAD
        room = cls(_strategy(op, keys), place, sizes, footprint, base, n_blocks)
        return room._with_all_states() if _is_mirror(op, queries, keys, sizes) else room

    def _with_all_states(self) -> Room:
        """The room for rows among themselves, if the states of all of them fit."""
        if self.sizes.is_lazy:
            return replace(self, strategy="symmetric")
        states = 2 * self.footprint.state * (self.sizes.n_queries or 0)
        mirror = replace(self, strategy="symmetric", base=self.base + states)
        fits = mirror.peak(mirror._largest(1)) <= self.place.memory_limit
        return mirror if fits else self

    def peak(self, blocks: Blocks) -> int:
        """Bytes of the process with such blocks at work."""
        each = self.footprint.block(blocks.query_rows, blocks.key_rows)
        return self.base + self._at_work(blocks) * (each + self._chunks())

    def _at_work(self, blocks: Blocks) -> int:
        """Blocks at a time in the process, those of other tasks of a worker included."""
        if self.sizes.is_lazy:
            return max(1, min(self.place.n_threads, self.sizes.n_leaves))
        return blocks.n_threads if self.place.pool > 1 else self.place.n_threads

    def _chunks(self) -> int:
        """Bytes of the chunks that a task of a graph is handed, and of states to merge."""
        if not self.sizes.is_lazy:
            return 0
        return self._query_chunk() + self.sizes.key_rows * self.footprint.key_chunk

    def _query_chunk(self) -> int:
        waiting = _STATES_AT_A_MERGE * self.footprint.state if self.sizes.n_spans > 1 else 0
        return self.sizes.query_rows * (self.footprint.query_chunk + waiting)

    def fit(self) -> Blocks:
        """The largest blocks, and the most threads, that fit.

        The threads of a graph are its scheduler's.  A limit that nobody asked for is exceeded
        rather than refused; where it is that of a cluster's workers, with a warning.

        Raises
        ------
        InputError
            If nothing does, and the limit was asked for.
        """
        found = self.largest_that_fit()
        if found is not None:
            return found
        least = Blocks(self._least_query_rows(), dense.TILE_KEYS, self._fewest_threads())
        if self.place.is_given:
            raise InputError(too_much(self, least))
        if self.place.is_cluster:
            warnings.warn(too_much(self, least), UserWarning, stacklevel=2)
        return least

    def largest_that_fit(self) -> Blocks | None:
        """The largest blocks, and the most threads, within the limit; None where nothing is."""
        for n_threads in range(self._n_threads(), self._fewest_threads() - 1, -1):
            largest = self._largest(n_threads)
            for blocks in _smaller_and_smaller(largest, self._least_query_rows()):
                if self.peak(blocks) <= self.place.memory_limit:
                    return blocks
        return None

    def parts(self, blocks: Blocks) -> dict[str, int]:
        """Bytes by what they are for: whatever the blocks, and rows and pairs of all at work."""
        of_queries = blocks.query_rows * self.footprint.per_query
        of_keys = self.footprint.keys(blocks.key_rows)
        if self.sizes.is_lazy:
            of_queries += self._query_chunk()
            of_keys += self.sizes.key_rows * self.footprint.key_chunk
        each = {"queries": of_queries, "keys": of_keys, "pairs": self.footprint.pairs}
        at_work = {name: self._at_work(blocks) * n_bytes for name, n_bytes in each.items()}
        return {"base": self.base - self.place.held} | at_work

    def _n_threads(self) -> int:
        """Blocks at work at a time: no more than there are tiles of queries."""
        if self.sizes.is_lazy:
            return self.place.n_threads
        if self.footprint.threads_inside:
            return 1
        return max(1, min(self.place.pool, -(-self.sizes.query_rows // dense.TILE_QUERIES)))

    def _fewest_threads(self) -> int:
        return self._n_threads() if self.sizes.is_lazy else 1

    def _largest(self, n_threads: int) -> Blocks:
        width = 8 * (self.sizes.n_features + self.sizes.n_outputs)
        most = max(_power_of_two(_KEY_BLOCK_BYTES // width), _KEY_ROWS)
        key_rows = min(_whole_tiles(self.sizes.key_rows), most)
        return Blocks(self._query_rows(n_threads), key_rows, n_threads)

    def _query_rows(self, n_threads: int) -> int:
        rows, wanted = self.sizes.query_rows, self.footprint.query_rows
        if self.sizes.is_lazy:
            return _whole_tiles(rows)
        if wanted:
            return min(_whole_tiles(-(-rows // n_threads)), wanted)
        if self.strategy == "symmetric":
            return min(_whole_tiles(rows), BLOCK_ROWS)
        if isinstance(self.footprint.source, ArrayKeys):
            return min(_whole_tiles(-(-rows // (self.blocks_per_thread * n_threads))), _QUERY_ROWS)
        return min(_whole_tiles(-(-rows // n_threads)), _QUERY_ROWS_OF_A_SOURCE)

    def _least_query_rows(self) -> int:
        """Chunks of Dask arrays, and blocks that meet each other, are not cut."""
        fixed = self.sizes.is_lazy or self.strategy == "symmetric"
        return self._query_rows(1) if fixed else dense.TILE_QUERIES


def _strategy(op: Operation, keys: Keys | KeySource) -> str:
    if op.engine is not None:
        return "summary"
    return "tree" if isinstance(keys, Keys) else "stream"


def _is_mirror(op: Operation, queries: Queries, keys: Keys | KeySource, sizes: Sizes) -> bool:
    """Whether the queries are the keys; in memory, also whether it is worth a tournament."""
    if op.engine is not None or not isinstance(keys, Keys | ArrayKeys):
        return False
    if isinstance(keys, Keys):
        return is_mirror(op, queries, keys)
    worth = sizes.query_rows > BLOCK_ROWS and halves_pay(op, sizes.n_features)
    return worth and is_mirror(op, queries, keys.block)


def _whole_tiles(rows: int) -> int:
    return max(1, -(-rows // dense.TILE_QUERIES)) * dense.TILE_QUERIES


def _power_of_two(rows: int) -> int:
    return max(dense.TILE_KEYS, 1 << max(rows, 1).bit_length() - 1)


def _smaller_and_smaller(largest: Blocks, least_query_rows: int) -> Iterator[Blocks]:
    """Fewer queries at a time, then fewer keys, in whole tiles."""
    for key_rows in _halvings(largest.key_rows, dense.TILE_KEYS):
        for query_rows in _halvings(largest.query_rows, least_query_rows):
            yield Blocks(query_rows, key_rows, largest.n_threads)


def _halvings(rows: int, least: int) -> Iterator[int]:
    while rows > least:
        yield rows
        rows = max(_whole_tiles(rows // 2), least) if rows > dense.TILE_QUERIES else least
    yield least
