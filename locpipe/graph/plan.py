"""What would run: decided from metadata alone, within a memory limit that is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Unpack

from locpipe.engines import Spread, engine_name
from locpipe.graph.choose import Chosen, with_engines
from locpipe.graph.costs import read_seconds
from locpipe.graph.explain import explain
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.operation import Operation
from locpipe.graph.place import place_of
from locpipe.graph.room import Room
from locpipe.graph.sizes import Sizes, is_lazy
from locpipe.graph.sources import KeySource
from locpipe.graph.spans import room_for_keys
from locpipe.kernels.base import Kernel
from locpipe.options import Checked
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
    op : Operation
        What every task is told, its engines included.
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
    op: Operation = field(repr=False, compare=False)

    def __str__(self) -> str:
        return explain(self)


def plan_fold(
    op: Operation,
    queries: Queries,
    keys: Keys | KeySource,
    spread: Spread | None = None,
    **how: Unpack[Checked],
) -> Plan:
    """How to fold `keys` into `queries`; nothing is computed, but where keys in memory lie.

    Parameters
    ----------
    op : Operation
        Its engines are not looked at.
    queries : Queries
        Checked, in memory or Dask.
    keys : Keys or KeySource
        Checked `Keys` where any of their arrays is a Dask array, else a source.
    spread : Spread, optional
        Where the keys lie, if that is known.
    **how
        Options that were checked; threads and memory are by default the settings in force, or
        those of the Dask worker or Client.

    Raises
    ------
    InputError
        If not even one tile at a time fits the limit that was asked for, or the engine that was
        asked for cannot serve.
    """
    place = place_of(
        lazy=is_lazy(queries, keys),
        n_threads=how.get("n_threads"),
        memory_limit=how.get("memory_limit"),
    )
    sizes = Sizes.of(op, queries, keys, room_for_keys(place))
    candidates = with_engines(
        op,
        queries,
        keys,
        sizes,
        place,
        engine=how.get("engine", "auto"),
        rtol=how.get("rtol"),
        spread=spread,
    )
    rooms = ((one, Room.of(one, queries, keys, place, sizes)) for one in candidates)
    chosen, room = _first_that_fits(rooms)
    blocks = room.fit()
    n_cores = blocks.n_threads * place.n_workers
    reading = read_seconds(chosen.op, keys, sizes, blocks[:2])
    return Plan(
        engine=engine_name(chosen.engine),
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
        op=chosen.op,
        seconds=(chosen.seconds() + reading) / n_cores,
    )


def _first_that_fits(rooms: Iterator[tuple[Chosen, Room]]) -> tuple[Chosen, Room]:
    """The best engine that has room, or the last one: a summary of all keys may be too much."""
    for chosen, room in rooms:
        last = chosen, room
        if room.largest_that_fit() is not None:
            break
    return last
