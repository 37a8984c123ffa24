"""Blocks of a long job on Dask: a bounded window of tasks, recorded one by one as they end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from locpipe import config
from locpipe.engines import single_threaded_libraries

__all__ = ["run_blocks"]

_WINDOW_PER_THREAD = 3
"""Tasks submitted ahead per worker thread: enough to keep it busy, few enough to forget."""


def run_blocks(
    compute: Callable[[int], Any],
    blocks: Iterable[int],
    *,
    on_done: Callable[[int, Any], None],
    client: Any = None,
    window: int | None = None,
) -> None:
    """Run ``compute(block)`` for every block and report each one as it ends.

    Only a window of tasks is known to the scheduler at a time, so a job of any length keeps
    the scheduler small, and a killed driver loses no more than what was in flight.

    Parameters
    ----------
    compute : callable (int) -> result
        Runs in a worker, on one thread; should write its data and return little.
    blocks : iterable of int
    on_done : callable (int, result) -> None
        Runs in this process, in the order in which blocks end.
    client : distributed.Client, optional
        Default: run here, one block after the other.
    window : int, optional
        Tasks in flight at most; default: three per worker thread.

    Raises
    ------
    Exception
        The first error of a block, after the blocks in flight were cancelled.
    """
    task = _OneThread(compute)
    if client is None:
        for block in blocks:
            on_done(block, task(block))
        return
    for block, result in _windowed(client, task, iter(blocks), window):
        on_done(block, result)


class _OneThread:
    """`compute` as a task: inside a worker, one thread."""

    def __init__(self, compute: Callable[[int], Any]) -> None:
        self.compute = compute

    def __call__(self, block: int) -> Any:
        with config.override(n_threads=1), single_threaded_libraries():
            return self.compute(block)


def _windowed(
    client: Any, task: _OneThread, blocks: Iterator[int], window: int | None
) -> Iterator[tuple[int, Any]]:
    from distributed import as_completed

    n_threads = sum(client.nthreads().values()) or 1
    window = window or _WINDOW_PER_THREAD * n_threads
    # The task is sent once; each submission carries its block number alone.  It is the result of
    # a task, not scattered data, so that it comes back when the worker that holds it dies.
    shared = client.submit(_same, task, pure=False)
    running = {_submit(client, shared, b): b for b in islice(blocks, window)}
    ended = as_completed(running)
    try:
        for future in ended:
            block = running.pop(future)
            yield block, future.result()
            for following in islice(blocks, 1):
                future = _submit(client, shared, following)
                running[future] = following
                ended.add(future)
    finally:
        client.cancel(list(running))


def _submit(client: Any, shared: Any, block: int) -> Any:
    return client.submit(_call, shared, block, pure=False)


def _same(task: _OneThread) -> _OneThread:
    return task


def _call(task: _OneThread, block: int) -> Any:
    return task(block)
