"""Where a fold runs: processes, threads, and the memory that each process may take."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

from locpipe import config

__all__ = ["Place", "active_client"]

_MiB = 2**20
BASELINE = 72 * _MiB
"""Resident memory of a process that has imported what a fold needs: 54 MiB measured, and more
where other builds of the libraries are larger."""
STORE_BASELINE = 96 * _MiB
"""The same with zarr, its event loop and its threads; 66 MiB measured."""
WORKER_BASELINE = 232 * _MiB
"""The same for a Dask worker, or a process that has imported Dask; 175 to 200 MiB measured."""
COMPILER = 208 * _MiB
"""What a compiler and its first functions add; up to 185 MiB measured."""
_SHARE_OF_A_WORKER = 0.8
"""Dask pauses a worker that holds more of its limit."""


@dataclass(frozen=True)
class Place:
    """Where a fold runs.

    Attributes
    ----------
    n_workers : int
        Processes.
    n_threads : int
        Blocks that a process computes at a time.
    pool : int
        Threads that one call starts: 1 inside a Dask worker, whose other threads have theirs.
    memory_limit : int
        Bytes that a process may take.
    is_given : bool
        Whether the limit was asked for, and not just found.
    held : int
        Bytes that a process holds before it begins; inputs come on top.
    resident : int
        Bytes that this process holds now, inputs included; 0 where others will do the work.
    is_cluster : bool
        Whether the workers of a Client do the work.
    """

    n_workers: int
    n_threads: int
    pool: int
    memory_limit: int
    is_given: bool
    held: int
    resident: int
    is_cluster: bool = False

    @property
    def compiler(self) -> int:
        """Bytes that compiled engines will add to what the process holds."""
        there = "llvmlite" in sys.modules and self.resident > 0
        return 0 if there and not self.is_cluster else COMPILER


def place_of(*, lazy: bool, n_threads: int | None, memory_limit: int | None) -> Place:
    """Where a fold of arrays in memory, or of Dask arrays (`lazy`), runs."""
    given = memory_limit or config.current().memory_limit
    worker = None if lazy else _this_worker()
    client = active_client() if lazy else None
    if client is not None:
        return _cluster(client, given)
    held, resident = _baseline(), resident_bytes()
    if worker is not None:
        limit = given or _limit_of(worker.memory_manager.memory_limit)
        return Place(1, worker.state.nthreads, 1, limit, given is not None, held, resident)
    limit = given or config.current().memory
    if lazy:  # the scheduler starts its threads whatever is planned
        return Place(1, _scheduler_threads(), 1, limit, given is not None, held, resident)
    n = n_threads or config.current().n_threads
    return Place(1, n, n, limit, given is not None, held, resident)


def _baseline() -> int:
    if "dask" in sys.modules:
        return WORKER_BASELINE
    return STORE_BASELINE if "zarr" in sys.modules else BASELINE


def _cluster(client: Any, given: int | None) -> Place:
    workers = list(client.scheduler_info(n_workers=-1)["workers"].values())
    n_threads = max((w["nthreads"] for w in workers), default=1)
    limit = given or min((_limit_of(w["memory_limit"]) for w in workers), default=_limit_of(0))
    return Place(
        max(1, len(workers)),
        n_threads,
        1,
        limit,
        given is not None,
        WORKER_BASELINE,
        resident=0,
        is_cluster=True,
    )


def _limit_of(worker_limit: int | None) -> int:
    """What a worker may fill of its own limit; none (0) means what the process is granted."""
    return int(_SHARE_OF_A_WORKER * worker_limit) if worker_limit else config.current().memory


def _scheduler_threads() -> int:
    """Threads of the pool that Dask would compute with, without a Client."""
    from dask import config as dask_config
    from dask.system import CPU_COUNT

    if str(dask_config.get("scheduler", None)) in _SYNCHRONOUS:
        return 1
    pool = dask_config.get("pool", None)
    of_pool = getattr(pool, "_max_workers", None) or getattr(pool, "_processes", None)
    return int(of_pool or dask_config.get("num_workers", None) or CPU_COUNT)


_SYNCHRONOUS = ("sync", "synchronous", "single-threaded")


def active_client() -> Any:
    """The Client that Dask would compute with, or None."""
    if "distributed" not in sys.modules:  # importing it takes half a second
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def _this_worker() -> Any:
    """The Dask worker in whose task this runs, or None."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def resident_bytes() -> int:
    """Resident memory of this process now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0
