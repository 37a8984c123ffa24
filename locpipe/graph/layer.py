"""A layer of a Dask graph while it is built, and the rows of its inputs as tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, repeat
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import numpy as np
from array_api_compat import array_namespace, is_dask_array

from locpipe.blocks import UNKNOWN_START, KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.place import active_client
from locpipe.shared import SharedArray

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

__all__ = ["Group", "Layer", "groups_of", "log_weight", "nth", "row_blocks"]


class Group(NamedTuple):
    """Consecutive chunks that one task takes together."""

    first: int
    """Index of the first chunk."""
    sizes: tuple[Any, ...]
    """Rows of each chunk; NaN where they are not known."""
    start: int
    """Global index of the first row, or UNKNOWN_START."""

    @property
    def n_rows(self) -> Any:
        """Rows of the group."""
        return sum(self.sizes)


def groups_of(chunks: Sequence[Any], n_groups: int, max_rows: float) -> list[Group]:
    """About `n_groups` groups of consecutive chunks, none of more than `max_rows` rows.

    A chunk of more rows is a group of its own, and chunks of unknown size are not grouped.
    """
    unknown = bool(np.isnan(chunks).any())
    step = 1 if unknown else -(-len(chunks) // n_groups)
    starts = list(repeat(UNKNOWN_START, len(chunks))) if unknown else _starts(chunks)
    groups: list[Group] = []
    for i, n in enumerate(chunks):
        last = groups[-1] if groups else None
        if last is None or len(last.sizes) == step or last.n_rows + n > max_rows:
            groups.append(Group(i, (n,), starts[i]))
        else:
            groups[-1] = last._replace(sizes=(*last.sizes, n))
    return groups


def _starts(chunks: Sequence[Any]) -> list[int]:
    return list(accumulate(chunks[:-1], initial=0))


@dataclass(eq=False)
class Layer:
    """Tasks under one name.  Arrays of the caller are referred to, never carried."""

    name: str = field(default_factory=lambda: f"locpipe-{uuid4().hex}")
    tasks: dict[Any, Any] = field(default_factory=dict)
    inputs: dict[str, DaskArray] = field(default_factory=dict)

    def add(self, function: Callable[..., Any], *args: Any) -> Any:
        """A reference to a new task; arguments may be references, or lists of them."""
        from dask.task_spec import List, Task, TaskRef

        key = (self.name, len(self.tasks))
        given = [List(*arg) if isinstance(arg, list) else arg for arg in args]
        self.tasks[key] = Task(key, function, *given)
        return TaskRef(key)

    def chunk(self, array: DaskArray, *index: int) -> Any:
        """A reference to a chunk of a Dask array."""
        from dask.task_spec import TaskRef

        self.inputs[array.name] = array
        return TaskRef((array.name, *index))

    def graph(self) -> Any:
        """The tasks so far, over the graphs of their inputs."""
        from dask.highlevelgraph import HighLevelGraph

        inputs: list[Any] = list(self.inputs.values())
        return HighLevelGraph.from_collections(self.name, self.tasks, inputs)

    def array(self, results: list[Any], i: int, chunks: Any, meta: Any) -> DaskArray:
        """The `i`-th of the results as a Dask array; ``results[j]`` gives its j-th chunk."""
        import dask.array as da
        from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
        from dask.task_spec import Task

        name, trailing = f"{self.name}-{i}", meta.shape[1:]
        keys = [(name, j, *(0 for _ in trailing)) for j in range(len(results))]
        last = {key: Task(key, nth, ref, i) for key, ref in zip(keys, results, strict=True)}
        base = self.graph()
        layers = {**base.layers, name: MaterializedLayer(last)}
        graph = HighLevelGraph(layers, {**base.dependencies, name: {self.name}})
        return da.Array(graph, name, (tuple(chunks), *((n,) for n in trailing)), meta=meta)


def nth(results: tuple[Any, ...], i: int) -> Any:
    """The task that takes the `i`-th of the results of another."""
    return results[i]


def row_blocks(layer: Layer, rows: Queries | Keys, groups: Sequence[Group]) -> list[Any]:
    """A task per group that makes its `QueryBlock` or `KeyBlock`."""
    make = _query_block if isinstance(rows, Queries) else _key_block
    given = {f.name: array for f in fields(rows) if (array := getattr(rows, f.name)) is not None}
    pieces = [_pieces(layer, array, groups, name) for name, array in given.items()]
    return [
        layer.add(make, group.start, tuple(given), *(piece[i] for piece in pieces))
        for i, group in enumerate(groups)
    ]


def _query_block(start: int, names: tuple[str, ...], *pieces: Any) -> QueryBlock:
    return QueryBlock(start=start, **dict(zip(names, map(_whole, pieces), strict=True)))


def _key_block(start: int, names: tuple[str, ...], *pieces: Any) -> KeyBlock:
    rows = dict(zip(names, map(_whole, pieces), strict=True))
    weight = log_weight(rows.pop("sample_weight", None))
    return KeyBlock(start=start, **rows, log_sample_weight=weight)


def _whole(piece: Any) -> Any:
    """The rows of a group from its chunks, or as they are."""
    if not isinstance(piece, list):
        return piece
    return piece[0] if len(piece) == 1 else np.concatenate(piece)


def log_weight(sample_weight: Any) -> Any:
    """Log of sample weights; a weight of 0 gives -inf without a warning."""
    if sample_weight is None:
        return None
    with np.errstate(divide="ignore"):
        return array_namespace(sample_weight).log(sample_weight)


def _pieces(layer: Layer, array: Any, groups: Sequence[Group], name: str) -> list[Any]:
    """What each group has of an array: references to its chunks, or to a cut of it."""
    chunks = [n for group in groups for n in group.sizes]
    if not is_dask_array(array):
        return _cuts(layer, array, groups, name)
    if not _same_chunks(array.chunks[0], chunks):
        if np.isnan([*array.chunks[0], *chunks]).any():
            raise InputError(
                f"{name} must have the chunks of the rows it belongs to where chunk sizes are "
                "unknown; call compute_chunk_sizes() on both first"
            )
        array = array.rechunk({0: tuple(chunks)})
    if array.ndim == 2 and array.numblocks[1] > 1:
        array = array.rechunk({1: -1})
    column = (0,) * (array.ndim - 1)
    return [
        [layer.chunk(array, group.first + i, *column) for i in range(len(group.sizes))]
        for group in groups
    ]


def _cuts(layer: Layer, array: Any, groups: Sequence[Group], name: str) -> list[Any]:
    if groups[0].start == UNKNOWN_START:
        raise InputError(
            f"{name} of rows with unknown chunk sizes must be a Dask array chunked like them, "
            "got an array in memory; call compute_chunk_sizes() on the rows first"
        )
    client = active_client()
    shared = SharedArray(array) if client is None else client.scatter(array, hash=False)
    return [layer.add(_cut, shared, g.start, g.start + g.n_rows) for g in groups]


def _cut(array: Any, start: int, stop: int) -> Any:
    return (array.array if isinstance(array, SharedArray) else array)[start:stop]


def _same_chunks(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and np.array_equal(a, b, equal_nan=True)
