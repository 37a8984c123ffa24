"""`connect`: a Dask client on threads, on processes of this machine, or on a running cluster."""

import ast
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from locpipe.cluster.settings import apply_defaults
from locpipe.errors import ConfigError

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["KINDS", "connect", "dashboard_link"]


@dataclass(frozen=True)
class _Request:
    """What `connect` was asked for."""

    n_workers: int | None
    threads_per_worker: int | None
    memory_limit: str | int | None
    address: str | None
    dashboard: str | None


@contextmanager
def connect(
    kind: str = "threads",
    *,
    n_workers: int | None = None,
    threads_per_worker: int | None = None,
    memory_limit: str | int | None = None,
    address: str | None = None,
    dashboard: bool | int = False,
) -> "Iterator[Client]":
    """Connect to a Dask cluster, made here or running already, for the length of a `with` block.

    Parameters
    ----------
    kind
        ``"threads"``: workers are threads of this process. ``"processes"``: one process a worker
        on this machine. ``"address"``: a scheduler that is running.
    n_workers
        Workers; default: one for threads, one per available core for processes.
    threads_per_worker
        Threads of a worker; default: all available cores for threads, one for processes.
    memory_limit
        Memory of one worker, in bytes or as text such as ``"2 GiB"``; default: its share of the
        machine.
    address
        Scheduler address, such as ``"tcp://10.0.0.1:8786"``; only with ``kind="address"``.
    dashboard
        Serve Dask's dashboard on the loopback interface: True for any free port, or a port.

    Yields
    ------
    Client
        The connected client; it and the cluster made for it close with the block.

    Raises
    ------
    ConfigError
        If the kind is unknown, its address is missing or does not answer, or a script without
        a main guard asks for processes.

    Examples
    --------
    >>> from locpipe.cluster import connect
    >>> with connect("threads", threads_per_worker=2) as client:
    ...     client.submit(sum, [1, 2, 3]).result()
    6
    """
    if kind not in KINDS:
        raise ConfigError(f"cluster must be one of {', '.join(KINDS)}; got {kind!r}.")
    if (kind == "address") != bool(address):
        raise ConfigError(
            f"cluster 'address', and only that, needs the address of a scheduler; got cluster"
            f" {kind!r} with address {address!r}: set both or neither."
        )
    apply_defaults()
    request = _Request(
        n_workers, threads_per_worker, memory_limit, address, _dashboard_address(dashboard)
    )
    with KINDS[kind](request) as client:
        yield client


@contextmanager
def _threads(request: _Request) -> "Iterator[Client]":
    import scipy.linalg  # noqa: F401  (a limit holds for what is loaded, and it has its own BLAS)
    import threadpoolctl
    from dask.system import CPU_COUNT

    # One BLAS thread, as worker processes have: no oversubscription, and the same bits as there.
    with threadpoolctl.threadpool_limits(1):
        workers = request.n_workers or 1
        threads = request.threads_per_worker or max(1, CPU_COUNT // workers)
        with _local(request, processes=False, n_workers=workers, threads=threads) as client:
            yield client


@contextmanager
def _processes(request: _Request) -> "Iterator[Client]":
    from dask.system import CPU_COUNT

    _require_main_guard()
    threads = request.threads_per_worker or 1
    workers = request.n_workers or max(1, CPU_COUNT // threads)
    with _local(request, processes=True, n_workers=workers, threads=threads) as client:
        yield client


@contextmanager
def _local(
    request: _Request, *, processes: bool, n_workers: int, threads: int
) -> "Iterator[Client]":
    """Start a scheduler and workers here; whatever listens, listens on the loopback interface."""
    from distributed import Client, Nanny, Scheduler, SpecCluster, Worker

    reach = {"host": "127.0.0.1"} if processes else {"protocol": "inproc://"}
    http = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    shown = {"dashboard": True, "dashboard_address": request.dashboard} if request.dashboard else {}
    options = {"nthreads": threads, "memory_limit": request.memory_limit or "auto"}
    worker = {
        "cls": Nanny if processes else Worker,
        "options": reach | http | options | {"silence_logs": logging.CRITICAL},
    }
    with ExitStack() as stack:
        cluster = SpecCluster(
            scheduler={"cls": Scheduler, "options": reach | http | shown},
            workers=dict.fromkeys(range(n_workers), worker),
            silence_logs=logging.CRITICAL,
        )
        stack.enter_context(cluster)
        yield stack.enter_context(Client(cluster))


@contextmanager
def _address(request: _Request) -> "Iterator[Client]":
    from distributed import Client

    try:
        client = Client(request.address)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"A Dask scheduler must answer at {request.address!r}, and none does"
            f" ({type(error).__name__}); check the address, or use cluster=threads."
        ) from error
    with client:
        yield client


KINDS: Final[dict[str, "Callable[[_Request], AbstractContextManager[Client]]"]] = {
    "threads": _threads,
    "processes": _processes,
    "address": _address,
}


def dashboard_link(client: "Client") -> str | None:
    """Return where a person opens the dashboard, or None where none is served.

    Parameters
    ----------
    client
        A connected client.
    """
    if client.cluster is None:
        return str(client.dashboard_link)
    scheduler = client.cluster.scheduler
    if not scheduler.http_application.applications:
        return None
    return f"http://127.0.0.1:{scheduler.http_server.port}/status"


def _dashboard_address(dashboard: bool | int) -> str | None:
    """Return where the dashboard is served: only ever on this machine's own interface."""
    if dashboard is False:
        return None
    return f"127.0.0.1:{0 if dashboard is True else dashboard}"


def _require_main_guard() -> None:
    """Refuse a script that worker processes, which import it, would run again."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    if path is None or getattr(main, "__spec__", None) is not None:
        return
    if not Path(path).is_file():
        raise ConfigError(
            f"Worker processes import the main program, and it is no file but {path}; save it as a"
            " script, or use cluster=threads."
        )
    if not _has_main_guard(Path(path)):
        raise ConfigError(
            f"Worker processes import {Path(path).name}, so its code must stand under"
            " `if __name__ == '__main__':`, and there is no such line; add it, or use"
            " cluster=threads."
        )


def _has_main_guard(path: Path) -> bool:
    """Return whether a script compares `__name__` anywhere; an unreadable one counts as guarded."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return True
    comparisons = (node for node in ast.walk(tree) if isinstance(node, ast.Compare))
    return any(getattr(node.left, "id", None) == "__name__" for node in comparisons)
