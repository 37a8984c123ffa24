"""What a run's numbers depend on, in 16 hexadecimal digits; content digests, cached."""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from locpipe.errors import InputError
from locpipe.store.metadata import SCHEMA_VERSION, to_json

__all__ = ["InputDigest", "digest_inputs", "fingerprint"]

# A file that changed this recently may change again without a new time stamp: not cached.
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True)
class InputDigest:
    """Content of one input.

    Attributes
    ----------
    name : str
        Path or given name; not part of a fingerprint, so inputs may be moved.
    n_bytes : int
    sha256 : str
    """

    name: str
    n_bytes: int
    sha256: str


def fingerprint(parameters: Mapping[str, object], inputs: Sequence[InputDigest]) -> str:
    """Digest of what changes a run's numbers: parameters, and the inputs' content in order.

    Parameters
    ----------
    parameters : mapping
        Only what changes numbers: no cluster, logging or output settings.
    inputs : sequence of InputDigest

    Returns
    -------
    str
        16 hexadecimal digits, the same on every machine.

    Raises
    ------
    InputError
        If a parameter is not a number, text, path, list or mapping.

    Examples
    --------
    >>> from locpipe.store import fingerprint
    >>> fingerprint({"window": 2, "tol": 1.0}, []) == fingerprint({"tol": 1, "window": 2}, [])
    True
    """
    document = {
        "schema_version": SCHEMA_VERSION,
        "parameters": to_json(parameters),
        "inputs": [digest.sha256 for digest in inputs],
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_inputs(
    inputs: Sequence[str | os.PathLike[str] | tuple[str, bytes]],
) -> tuple[InputDigest, ...]:
    """Digest inputs by content.

    Digests of files are kept in the user's cache folder (``$XDG_CACHE_HOME/locpipe``, default
    ``~/.cache/locpipe``) by path, size, times of change (mtime and ctime) and inode, so that a
    second run does not read them again.  A folder, such as a Zarr store, is digested by its
    listing: names, sizes and times of its files.

    Parameters
    ----------
    inputs : sequence of path or (name, content)

    Returns
    -------
    tuple of InputDigest
        In the given order.

    Raises
    ------
    InputError
        If a path does not exist, cannot be read, or changes while it is read.

    Examples
    --------
    >>> from locpipe.store import digest_inputs
    >>> digest_inputs([("greeting", b"hello")])[0].sha256[:8]
    '2cf24dba'
    """
    return tuple(_digest(item) for item in inputs)


def _digest(item: str | os.PathLike[str] | tuple[str, bytes]) -> InputDigest:
    if isinstance(item, tuple):
        name, content = item
        return InputDigest(name, len(content), hashlib.sha256(content).hexdigest())
    path = Path(item)
    try:
        return _digest_folder(path) if path.is_dir() else _digest_file(path)
    except OSError as error:
        raise InputError(
            f"input {path} must be a readable file: {error.strerror}; check the path"
        ) from error


def _digest_file(path: Path) -> InputDigest:
    before = path.stat()
    entry = _cache_entry(path, before)
    if (known := _recall(entry)) is not None:
        return InputDigest(str(path), before.st_size, known)
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    if _state(path.stat()) != _state(before):
        raise InputError(f"input {path} must not change while it is read, but did; run again")
    if time.time_ns() - max(before.st_mtime_ns, before.st_ctime_ns) > _SETTLED_NS:
        _remember(entry, sha256)
    return InputDigest(str(path), before.st_size, sha256)


def _digest_folder(path: Path) -> InputDigest:
    total = hashlib.sha256()
    n_bytes = 0
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        status = file.stat()
        n_bytes += status.st_size
        line = (file.relative_to(path).as_posix(), status.st_size, status.st_mtime_ns)
        total.update(json.dumps(line).encode() + b"\n")
    return InputDigest(str(path), n_bytes, total.hexdigest())


def _state(status: os.stat_result) -> tuple[int, ...]:
    # Whoever sets a file's time back cannot set back when that was done (ctime).
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _cache_entry(path: Path, status: os.stat_result) -> Path | None:
    """The cache file for one state of one input; None where there is no home for a cache."""
    key = json.dumps([os.path.realpath(path), *_state(status)])
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # no home folder
        return None
    return Path(base, "locpipe", "digests", hashlib.sha256(key.encode()).hexdigest()[:32])


def _recall(entry: Path | None) -> str | None:
    with suppress(OSError, UnicodeDecodeError):
        if entry is not None and len(text := entry.read_text("ascii")) == 64:
            return text
    return None


def _remember(entry: Path | None, sha256: str) -> None:
    if entry is None:
        return
    with suppress(OSError):  # a cache that cannot be written only costs time
        entry.parent.mkdir(parents=True, exist_ok=True)
        partial = entry.with_name(f"{entry.name}.{uuid.uuid4().hex}")
        partial.write_text(sha256, "ascii")
        partial.replace(entry)
