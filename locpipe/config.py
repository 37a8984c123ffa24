"""Settings of this process: memory, threads, scratch folder.  Frozen; override in a `with`.

Examples
--------
>>> import locpipe as lp
>>> with lp.config.override(n_threads=1):
...     lp.config.current().n_threads
1
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path

from locpipe.errors import ConfigError

__all__ = ["Config", "current", "override"]


def _affinity() -> int:
    """Processors that this process may use; a batch system often grants fewer than exist."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


@dataclass(frozen=True)
class Config:
    """Settings that never change a result beyond rounding.

    Parameters
    ----------
    n_threads : int
        Threads outside Dask; default: the processors granted to this process.
    scratch : Path
        Folder for files that live no longer than the process.
    """

    n_threads: int = field(default_factory=_affinity)
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))

    def __post_init__(self) -> None:
        if self.n_threads < 1:
            raise ConfigError(f"n_threads must be at least 1, got {self.n_threads}")


_current: ContextVar[Config | None] = ContextVar("locpipe_config", default=None)


def current() -> Config:
    """The settings in force here."""
    return _current.get() or Config()


@contextmanager
def override(**changes: object) -> Iterator[Config]:
    """Change settings inside a ``with`` block; unknown names raise `ConfigError`."""
    allowed = set(Config.__dataclass_fields__)
    if unknown := sorted(set(changes) - allowed):
        raise ConfigError(f"unknown setting(s) {unknown}; the settings are {sorted(allowed)}")
    token = _current.set(replace(current(), **changes))  # type: ignore[arg-type]
    try:
        yield current()
    finally:
        _current.reset(token)
