"""The Dask settings that locpipe runs with, each with its reason."""

import os
from typing import Final

__all__ = ["DASK_DEFAULTS", "apply_defaults"]

DASK_DEFAULTS: Final[dict[str, object]] = {
    # A nanny that has died itself is not replaced; without this, work on no workers waits for ever.
    "distributed.scheduler.no-workers-timeout": "60s",
    # A worker that hangs is given up after this; 5 minutes (Dask's own value) is long to wait, and
    # locpipe's tasks take seconds and leave the heartbeat its thread.
    "distributed.scheduler.worker-ttl": "2 minutes",
    # Blocks return little, so workers may hold all of theirs at once: 0.4 ms a task, not 2 ms.
    "distributed.scheduler.worker-saturation": float("inf"),
    # A block that kills its worker kills the next one too: two more tries, then the run says so.
    "distributed.scheduler.allowed-failures": 2,
    # Blocks are in the store once they are done, so the scheduler has no results worth moving.
    "distributed.scheduler.active-memory-manager.start": False,
    # Connecting to a wrong address should fail while the person still looks at the screen.
    "distributed.comm.timeouts.connect": "10s",
}


def apply_defaults() -> None:
    """Make these values Dask's defaults; what the user configured (file, variable) outranks them.

    Notes
    -----
    Dask's logs are turned down by the environment variable that its import reads, because worker
    processes inherit it; a value that is already set stays.
    """
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "error")
    import dask.config
    import distributed  # noqa: F401  (registers the defaults that ours replace)

    dask.config.update_defaults(_nested(DASK_DEFAULTS))


def _nested(flat: dict[str, object]) -> dict[str, object]:
    """Turn dotted keys into the nested dictionaries that Dask merges."""
    tree: dict[str, object] = {}
    for key, value in flat.items():
        *folders, leaf = key.split(".")
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {})  # type: ignore[assignment]
        node[leaf] = value
    return tree
