"""One place that bounds the threads of the libraries underneath."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["single_threaded_libraries"]

_lock = threading.Lock()
_inside = 0
_limits: dict[int, Any] = {}
"""Limits in force, by the number of modules loaded when each was set."""


@contextmanager
def single_threaded_libraries() -> Iterator[None]:
    """BLAS and OpenMP run on one thread inside the block, and as before after it.

    The pool over query blocks, or the Dask worker, owns the cores; libraries that start their
    own threads inside each task would fight for them, and change the order of sums.  BLAS has
    one limit per process, so threads that overlap here count themselves in and out; OpenMP, and
    an OpenBLAS built on it, has one per thread.
    """
    loaded = len(sys.modules)
    _enter(loaded)
    try:
        with _libraries(loaded).per_thread.limit(limits=1):
            yield
    finally:
        _leave()


class _Libraries(NamedTuple):
    per_process: Any
    per_thread: Any


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> _Libraries:
    # Finding the libraries takes milliseconds; only an import can bring new ones.
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController()
    layered = {each.filepath for each in found.lib_controllers if _on_openmp(each)}
    paths = {each.filepath for each in found.lib_controllers}
    return _Libraries(
        found.select(filepath=list(paths - layered)), found.select(filepath=list(layered))
    )


def _on_openmp(library: Any) -> bool:
    return "openmp" in (library.user_api, getattr(library, "threading_layer", None))


def _enter(loaded: int) -> None:
    global _inside
    blas = _libraries(loaded).per_process
    with _lock:
        _inside += 1
        if loaded not in _limits:
            _take_control()
            _limits[loaded] = blas.limit(limits=1)


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0 and _limits:
            _take_control()
        while _inside == 0 and _limits:
            # The last one set saw the limits of those before it, so it is lifted first.
            _limits.popitem()[1].restore_original_limits()


def _take_control() -> None:
    """Let this thread set the limits of OpenBLAS, which obeys the thread that last did alone."""
    from threadpoolctl import OpenBLASController

    OpenBLASController.clear_controlling_thread(force=True)
