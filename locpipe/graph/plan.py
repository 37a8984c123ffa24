"""What would run: decided from metadata alone, within a memory limit that is kept."""

from __future__ import annotations

from dataclasses import dataclass

from locpipe.graph.costs import read_seconds, seconds_of
from locpipe.graph.explain import explain
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.operation import Operation
from locpipe.graph.place import place_of
from locpipe.graph.room import Room
from locpipe.graph.sizes import Sizes, is_lazy
from locpipe.graph.sources import KeySource
from locpipe.graph.spans import room_for_keys
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction

__all__ = ["Plan", "plan_fold"]


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
    place = place_of(lazy=is_lazy(queries, keys), n_threads=n_threads, memory_limit=memory_limit)
    sizes = Sizes.of(op, queries, keys, room_for_keys(place))
    room = Room.of(op, queries, keys, place, sizes)
    blocks = room.fit()
    n_cores = blocks.n_threads * place.n_workers
    reading = read_seconds(op, keys, sizes, blocks[:2])
    return Plan(
        engine="dense" if op.engine is None else type(op.engine).__name__.lower(),
        strategy=room.strategy,
        kernel=op.kernel,
        reduction=op.reduction,
        n_queries=sizes.n_queries,
        n_keys=sizes.n_keys,
        n_features=sizes.n_features,
        n_outputs=sizes.n_outputs,
        n_passes=1 if op.first_pass() is None else 2,
        query_rows=blocks.query_rows,
        key_rows=blocks.key_rows,
        n_threads=blocks.n_threads,
        n_workers=place.n_workers,
        n_tasks=sizes.n_leaves or -(-sizes.query_rows // blocks.query_rows),
        memory_limit=place.memory_limit,
        peak_bytes=room.peak(blocks),
        seconds=seconds_of(op, sizes, n_cores) + reading / n_cores,
    )
