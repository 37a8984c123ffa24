"""Settings of this process: memory, threads, scratch folder.  Frozen; override in a `with`.

Examples
--------
>>> import locpipe as lp
>>> with lp.config.override(n_threads=1, memory_limit="2 GiB"):
...     lp.config.current().n_threads, lp.config.current().memory_limit
(1, 2147483648)
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from locpipe.errors import ConfigError, shown

__all__ = ["SMALLEST_MEMORY", "Config", "current", "granted_memory", "override", "parse_bytes"]

SMALLEST_MEMORY = 512 * 2**20
"""No limit below this is accepted: the libraries alone take a good part of it."""

_SHARE = 0.8
"""Share of the granted memory that is used when no limit is given."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}i": 2 ** (10 * i) for i, unit in enumerate("kmgt", start=1)}


def parse_bytes(size: object) -> int:
    """Bytes in a number, or in a text such as ``"2 GiB"``, ``"1.5GB"`` or ``"800 MB"``.

    Raises
    ------
    ConfigError
        If it is neither, or below 512 MiB.

    Examples
    --------
    >>> from locpipe.config import parse_bytes
    >>> parse_bytes("2 GiB"), parse_bytes("1.5GB"), parse_bytes(1e9)
    (2147483648, 1500000000, 1000000000)
    """
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?i?)b?\s*", str(size).lower())
    try:
        if found is None or isinstance(size, bool):
            raise ValueError
        n_bytes = int(float(found[1]) * _UNITS[found[2]])
    except (ValueError, KeyError, OverflowError):
        raise ConfigError(
            f"memory_limit must be a number of bytes or a text such as '2 GiB', got {shown(size)}"
        ) from None
    if n_bytes < SMALLEST_MEMORY:
        raise ConfigError(
            f"memory_limit must be at least 512 MiB, since it bounds the whole process, "
            f"got {shown(size)}"
        )
    return n_bytes


def granted_memory() -> int:
    """Bytes that this process may use: the smallest of its control groups' and the machine's."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_cgroup_limits()])


def _cgroup_limits(
    membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """Limits of the groups that hold this process, and of the groups around those."""
    for file in _limit_files(membership, root):
        yield from _limit_in(file)


@lru_cache(maxsize=1)
def _limit_files(membership: Path, root: Path) -> list[Path]:
    """Where these limits are written; found once, since every call asks for them."""
    return [file for file in _possible_limit_files(membership, root) if file.is_file()]


def _possible_limit_files(membership: Path, root: Path) -> Iterator[Path]:
    try:
        lines = membership.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        base = root / controllers
        name = "memory.max" if controllers == "" else "memory.limit_in_bytes"
        group = base / path.lstrip("/")
        # Inside a container the path may name a group that is seen only from outside.
        for folder in (group, *group.parents):
            if folder.is_relative_to(base):
                yield folder / name


def _limit_in(file: Path) -> Iterator[int]:
    try:
        text = file.read_text().strip()
    except OSError:
        return
    if text.isdigit():  # not "max"
        yield int(text)


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
    memory_limit : int or str, optional
        Bound on the resident memory of the process, in bytes or as ``"2 GiB"``; at least
        512 MiB.  Default: 80% of what is granted to it (control groups, else the machine).
    """

    n_threads: int = field(default_factory=_affinity)
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        if self.n_threads < 1:
            raise ConfigError(f"n_threads must be at least 1, got {self.n_threads}")
        if self.memory_limit is not None:
            object.__setattr__(self, "memory_limit", parse_bytes(self.memory_limit))

    @property
    def memory(self) -> int:
        """The limit in force in bytes, given or granted."""
        return self.memory_limit or int(_SHARE * granted_memory())


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
