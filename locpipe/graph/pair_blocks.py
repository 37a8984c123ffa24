"""Data per pair that is a Dask array: tasks get the rectangle of pairs that they work on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from array_api_compat import is_dask_array

from locpipe.blocks import PairSource, Tile
from locpipe.errors import InputError
from locpipe.graph.operation import Operation

__all__ = ["PairBlock", "lazy_pairs", "with_pair_blocks", "without_lazy_pairs"]


@dataclass(frozen=True, eq=False)
class PairBlock:
    """A `PairSource` of one rectangle, in its place among all pairs."""

    array: Any
    first_row: int
    first_column: int

    @property
    def shape(self) -> tuple[int, int]:
        """One past the last row and column held."""
        n_rows, n_columns = self.array.shape
        return self.first_row + int(n_rows), self.first_column + int(n_columns)

    def tile(self, rows: slice, columns: slice) -> Tile:
        """Part of the rectangle; `rows` and `columns` are global."""
        r, c = self.first_row, self.first_column
        return (self.array[rows.start - r : rows.stop - r, columns.start - c : columns.stop - c],)


@dataclass(frozen=True)
class _InTask:
    """Place of the n-th rectangle that the task is handed; so a graph carries no array."""

    n: int
    shape: tuple[int, int]

    def tile(self, rows: slice, columns: slice) -> Tile:
        raise InputError("pairs of a Dask array are read inside the tasks of a graph only")


def lazy_pairs(op: Operation) -> list[Any]:
    """The Dask arrays among the operation's pairs, in order."""
    arrays = (getattr(source, "array", None) for source in op.pair_sources())
    return [array for array in arrays if array is not None and is_dask_array(array)]


def without_lazy_pairs(op: Operation) -> Operation:
    """The operation with a numbered place for each Dask array of pairs."""
    lazy = lazy_pairs(op)

    def placed(source: PairSource) -> PairSource:
        for n, array in enumerate(lazy):
            if getattr(source, "array", None) is array:
                return _InTask(n, source.shape)
        return source

    return _replaced(op, placed)


def with_pair_blocks(op: Operation, blocks: list[Any], row: int, column: int) -> Operation:
    """The operation inside a task: places filled with the rectangles at (`row`, `column`)."""

    def filled(source: PairSource) -> PairSource:
        return PairBlock(blocks[source.n], row, column) if isinstance(source, _InTask) else source

    return _replaced(op, filled) if blocks else op


def _replaced(op: Operation, change: Any) -> Operation:
    kernel = None if op.kernel is None else op.kernel.with_pair_sources(change)
    return replace(op, kernel=kernel, pairs=None if op.pairs is None else change(op.pairs))
