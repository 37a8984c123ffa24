"""One writer per store: a lock file made by create-if-absent, with a heartbeat.

The lock names its holder: host, process, start time.  A lock is stale if its process is gone
from this machine, or, on another machine, if it has not been touched for `STALE_SECONDS`.

Replacing a stale lock is where naive locks race: two processes see the same dead holder, both
remove "it", and the second removes the first one's new lock.  Here whoever wants to replace or
remove a holder must first own the file ``<lock>.<token of that holder>``, made by
create-if-absent too; then it looks again whether the lock still names that holder.  Tokens are
never used twice, so at most one process ever replaces a given holder.  A claim whose owner
died is a stale lock like any other, and is taken by the same rule.
"""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from locpipe.errors import StoreError
from locpipe.store.folder import Folder, Url, told

__all__ = ["BEAT_SECONDS", "STALE_SECONDS", "Holder", "Lock", "unlock"]

BEAT_SECONDS = 10.0
# Twelve beats: network file systems may show a file's time up to 60 s late.
STALE_SECONDS = 120.0
# Clock corrections move the start time that the system reports for a process by about a second.
_START_TOLERANCE_SECONDS = 2.0
# Without links a lock is created and filled in two steps; a reader waits this long for the second.
_FILL_SECONDS = 1.0
_TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Holder:
    """Who holds a lock.

    Attributes
    ----------
    token : str
        Unique to one acquisition.
    host, namespace : str
        Machine, and boot and process namespace on it: process ids mean something only there.
    pid : int
    started : float
        Start time of the process, seconds since the epoch: process ids are used again.
    since : str
        When the lock was taken (ISO 8601, UTC).
    """

    token: str
    host: str
    namespace: str
    pid: int
    started: float
    since: str

    @classmethod
    def me(cls) -> Holder:
        """A new holder: this process, now."""
        return cls(
            token=uuid.uuid4().hex,
            host=socket.gethostname(),
            namespace=_namespace(),
            pid=os.getpid(),
            started=psutil.Process().create_time(),
            since=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def is_here(self) -> bool:
        """Whether its process can be looked up from this process."""
        return (self.host, self.namespace) == (socket.gethostname(), _namespace())

    def runs_here(self) -> bool:
        """Whether its process is running on this machine."""
        if not self.is_here():
            return False
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) <= _START_TOLERANCE_SECONDS
            return same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False
        except psutil.AccessDenied:  # another user's: it exists
            return True

    def is_stale(self, path: Path) -> bool:
        """Whether the lock at `path` outlived this holder."""
        return not self.runs_here() if self.is_here() else _age(path) > STALE_SECONDS


def _namespace() -> str:
    """Boot and process namespace; containers on one host may share its name, not these."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # not Linux
        return ""


def _age(path: Path) -> float:
    """Seconds since the last beat, by the file system's own clock: hosts' clocks differ."""
    try:
        beat = path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
    with told("write to", path.parent), tempfile.TemporaryFile(dir=path.parent) as probe:
        return os.fstat(probe.fileno()).st_mtime - beat


class Lock:
    """A held lock; `release` it, or leave it to be recognised as stale.

    Parameters
    ----------
    folder : Folder
        The store to be locked.

    Raises
    ------
    StoreError
        If another run holds the store.
    """

    def __init__(self, folder: Folder) -> None:
        self._path = folder.lock_path
        self._holder = Holder.me()
        self._lost = False
        with told("create", self._path.parent):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        _acquire(self._path, self._holder)
        _sweep(self._path, self._holder)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="locpipe-lock", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise `StoreError` if the lock was taken from this process."""
        if self._lost:
            raise StoreError(
                f"this run no longer holds {self._path}: it was unlocked or taken over while the "
                "run went on; start it again, it will go on from the blocks that are recorded"
            )

    def release(self) -> None:
        """Give the store back; harmless if it was taken over."""
        self._stop.set()
        self._thread.join()
        try:
            _remove(self._path, self._holder, self._holder)
        except StoreError as error:
            # Without a cause, someone is taking it over right now: theirs to keep.  With one, a
            # claim could not be written, as on a full disk: removing needs no space.
            if isinstance(error.__cause__, OSError):
                _remove_plainly(self._path, self._holder)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            self._touch()

    def _touch(self) -> None:
        with suppress(OSError, StoreError):  # a hiccup of the file system: the next beat will do
            holder = _read(self._path)
            self._lost = holder is None or holder.token != self._holder.token
            if not self._lost:
                os.utime(self._path)


def unlock(url: Url) -> None:
    """Remove the lock of a store whose run is gone; do nothing if there is none.

    `open_run` recognises stale locks itself.  This is for a lock left by another machine that
    is known to be gone, without waiting for `STALE_SECONDS`.

    Parameters
    ----------
    url : str or path
        The store, not its lock.

    Raises
    ------
    StoreError
        If the holder is a running process of this machine.
    """
    path = Folder.at(url).lock_path
    holder = _read(path)
    if holder is None:
        return
    if holder.runs_here():
        raise StoreError(
            f"{path} is held by process {holder.pid}, which is running; stop that process first"
        )
    _remove(path, holder, Holder.me())


def _acquire(path: Path, me: Holder) -> None:
    """Make `path` name `me`, or raise `StoreError` if a living process holds it."""
    while not _create(path, me):
        holder = _read(path)
        if holder is None:
            continue  # released a moment ago
        if not holder.is_stale(path):
            raise _held(path, holder)
        claim = _claim(path, holder)
        _acquire(claim, me)
        if _names(path, holder):
            os.replace(claim, path)
            return
        claim.unlink(missing_ok=True)  # someone was quicker: look again


def _remove(path: Path, holder: Holder, me: Holder) -> None:
    """Remove the lock if it still names `holder`."""
    claim = _claim(path, holder)
    _acquire(claim, me)
    if _names(path, holder):
        path.unlink()
    claim.unlink(missing_ok=True)


def _remove_plainly(path: Path, holder: Holder) -> None:
    with suppress(OSError, StoreError):  # then it is stale once this process has ended
        if _names(path, holder):
            path.unlink()


def _claim(path: Path, holder: Holder) -> Path:
    return path.with_name(f"{path.name}.{holder.token}")


def _names(path: Path, holder: Holder) -> bool:
    current = _read(path)
    return current is not None and current.token == holder.token


def _create(path: Path, me: Holder) -> bool:
    """Create-if-absent, with its content or not at all; False if the file exists."""
    content = json.dumps(asdict(me))
    fresh = path.with_name(f"{path.name}.{me.token}.new")
    with told("create", path):
        try:
            fresh.write_text(content, encoding="utf-8")
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        try:
            os.link(fresh, path)
        except FileExistsError:
            # Network file systems may have made the link and lost the answer.
            return _names(path, me)
        except OSError:  # a file system without links
            return _create_exclusively(path, content)
        finally:
            fresh.unlink(missing_ok=True)
        return True


def _create_exclusively(path: Path, content: str) -> bool:
    """Create-if-absent in two steps: a reader may meet the file before it is filled."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return True


def _sweep(path: Path, me: Holder) -> None:
    """Remove what killed processes left beside a lock that is ours now.

    Claims on earlier holders have no force any more, and a claim on us is left alone.
    """
    for left in list(path.parent.iterdir()):
        ours = left.name.startswith(f"{path.name}.{me.token}")
        if left.name.startswith(f"{path.name}.") and not ours:
            holder = _parse(left) or _unknown(left)
            if holder is not None and holder.is_stale(left):
                left.unlink(missing_ok=True)


def _read(path: Path) -> Holder | None:
    """The holder that a lock names; None if there is no lock."""
    deadline = time.monotonic() + _FILL_SECONDS
    while path.exists():
        if holder := _parse(path):
            return holder
        if time.monotonic() > deadline:
            return _unknown(path)
        time.sleep(0.01)
    return None


def _parse(path: Path) -> Holder | None:
    """The holder that a file names; None if it is not there, not filled, or not a lock's."""
    try:
        holder = Holder(**json.loads(path.read_text(encoding="utf-8")))
        return holder if _is_sound(holder) else None
    except (FileNotFoundError, ValueError, TypeError):
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}; check its permissions") from error


def _is_sound(holder: Holder) -> bool:
    """Whether its fields are what `Holder.me` makes: the token becomes part of a file's name."""
    texts = (holder.token, holder.host, holder.namespace, holder.since)
    numbers_are = isinstance(holder.pid, int) and isinstance(holder.started, int | float)
    return (
        all(isinstance(text, str) for text in texts)
        and numbers_are
        and _TOKEN.fullmatch(holder.token) is not None
        and 0 < holder.pid < 2**31
    )


def _unknown(path: Path) -> Holder | None:
    """A lock that names no holder, as if its creator died early: judged by its age alone."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    token = f"unreadable-{status.st_ino}-{status.st_ctime_ns}"
    return Holder(token, "an unknown host", "?", 0, 0.0, "an unknown time")


def _held(path: Path, holder: Holder) -> StoreError:
    store = path.name.rpartition(".lock")[0]
    return StoreError(
        f"one run at a time may write to {path.with_name(store)}, and process {holder.pid} on "
        f"{holder.host} has held it since {holder.since}; wait until it ends, or, if it is gone, "
        "remove the lock with: locpipe unlock PATH"
    )
