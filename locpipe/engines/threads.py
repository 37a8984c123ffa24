"""One place that bounds the threads of the libraries underneath."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["single_threaded_libraries"]

_lock = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def single_threaded_libraries() -> Iterator[None]:
    """BLAS and OpenMP run on one thread inside the block, and as before after the last one.

    The pool over query blocks, or the Dask worker, owns the cores; libraries that start their
    own threads inside each task would fight for them, and change the order of sums.  The
    limit is one per process, so threads that overlap here count themselves in and out.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


@cache
def _controller() -> Any:
    # Finding the libraries takes milliseconds, so it is done once.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _enter() -> None:
    global _inside, _limit
    with _lock:
        if _inside == 0:
            _limit = _controller().limit(limits=1)
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            _limit.restore_original_limits()
