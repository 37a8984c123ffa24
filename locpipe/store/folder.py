"""Where a store's files live: the one seam between this room and a file system.

Everything else names files by keys such as ``"_run/counts/zarr.json"``.  Object stores would
come in here: they need the same few verbs.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from locpipe.errors import InputError, StoreError

if TYPE_CHECKING:
    from zarr.storage import LocalStore

__all__ = ["Folder", "Url", "resolve", "told"]

Url = str | os.PathLike[str]

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://")
# What an atomic write leaves when it is killed: ours and zarr's LocalStore's have the same form.
_PARTIAL = re.compile(r"\.[0-9a-f]{32}\.partial$")
# In bytes, below what file systems take (255 and 4096): locks add to the store's name, and keys
# to its path.
_LONGEST_NAME = 160
_LONGEST_PATH = 3072


@contextmanager
def told(action: str, path: Path) -> Iterator[None]:
    """Turn an operating system's refusal into one sentence that names the path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreError(
            f"cannot {action} {path}: {reason}; check its permissions and the free space, "
            "or choose another output"
        ) from error


@dataclass(frozen=True)
class Folder:
    """A folder on a local or mounted file system, with atomic writes.

    Parameters
    ----------
    path : Path
        Absolute, symbolic links resolved, so that two spellings meet at one lock.
    """

    path: Path

    @classmethod
    def at(cls, url: Url) -> Folder:
        """The folder that a user's path or ``file://`` URL names; it need not exist.

        Raises
        ------
        InputError
            If the path is empty, too long, the root of the file system, goes round in circles,
            or has another scheme.
        """
        text = os.fspath(url)
        if not text.strip() or "\0" in text:
            raise InputError(f"a store needs a path, got {text!r}; give a folder to write to")
        scheme = _SCHEME.match(text)
        if scheme and scheme[1] != "file":
            raise InputError(
                f"a store must be a local path, got {text!r}; {scheme[1]}:// stores are not "
                "supported yet: write to a local or mounted folder"
            )
        try:
            path = Path(os.path.realpath(os.path.expanduser(text.removeprefix("file://"))))
        except OSError as error:  # a relative path, and the current folder is gone
            raise InputError(
                f"a store's path must lead somewhere, got {text!r} ({error.strerror}); give an "
                "absolute path"
            ) from error
        _check_path(path)
        return cls(path)

    @property
    def lock_path(self) -> Path:
        """The lock stands beside the store, so that replacing the store never touches it."""
        return self.path.with_name(self.path.name + ".lock")

    def zarr_store(self, *, read_only: bool = False) -> LocalStore:
        """The folder as zarr sees it."""
        from zarr.storage import LocalStore

        return LocalStore(self.path, read_only=read_only)

    def is_file(self) -> bool:
        """Whether something that is not a folder stands at the path."""
        return self.path.exists() and not self.path.is_dir()

    def is_empty(self) -> bool:
        """Whether nothing is there, leftovers of killed writes apart."""
        if not self.path.is_dir():
            return not self.path.exists()
        with told("list", self.path):
            return all(_PARTIAL.search(child.name) for child in self.path.iterdir())

    def exists(self, key: str) -> bool:
        """Whether a file or folder has this key."""
        return (self.path / key).exists()

    def children(self, key: str) -> list[str]:
        """Names of the folders right below `key`, sorted; none if it is not there."""
        folder = self.path / key
        if not folder.is_dir():
            return []
        return sorted(child.name for child in folder.iterdir() if child.is_dir())

    def read(self, key: str) -> bytes | None:
        """Content of a file, or None where there is none."""
        path = self.path / key
        with told("read", path):
            try:
                return path.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, key: str, content: bytes, *, sync: bool) -> None:
        """Write a file so that every reader sees the old content or the new, never a part.

        With `sync` the content also survives a power cut once this has returned.
        """
        path = self.path / key
        with told("write", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{uuid.uuid4().hex}.partial")
            try:
                partial.write_bytes(content)
                if sync:
                    _fsync(partial)
                partial.replace(path)
            except OSError:
                with suppress(OSError):
                    partial.unlink(missing_ok=True)
                raise
            if sync:
                _fsync_folder(path.parent)

    def sync(self, key: str) -> None:
        """Bring a file that another library wrote to the disk itself."""
        path = self.path / key
        with told("write", path):
            _fsync(path)
        _fsync_folder(path.parent)

    def remove(self, key: str) -> None:
        """Remove a file or folder; a link is removed, never what it points to."""
        path = self.path / key
        with told("remove", path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def sweep(self) -> int:
        """Remove what killed writes have left, and say how many files that were."""
        found = [path for path in self.path.rglob("*.partial") if _PARTIAL.search(path.name)]
        for path in found:
            with told("remove", path):
                path.unlink(missing_ok=True)
        return len(found)


def resolve(url: Url) -> Path:
    """The absolute path of a store, as every function of this room understands it.

    Home folders and symbolic links are resolved, and the path has a last name even where it was
    given as ``"."``; the store need not exist.

    Parameters
    ----------
    url : str or path

    Raises
    ------
    InputError
        If no store can be at this path.

    Examples
    --------
    >>> from locpipe.store import resolve
    >>> resolve("file:///no/such/../map.zarr").as_posix()
    '/no/map.zarr'
    """
    return Folder.at(url).path


def _check_path(path: Path) -> None:
    if not path.name:
        raise InputError(f"a store must be a folder with a name, got {path}; give one below it")
    too_long = len(os.fsencode(path.name)) > _LONGEST_NAME or len(os.fsencode(path)) > _LONGEST_PATH
    if too_long or any(len(os.fsencode(part)) > 255 for part in path.parts):
        raise InputError(
            f"a store's name must have at most {_LONGEST_NAME} bytes, a folder's above it 255 and "
            f"the whole path {_LONGEST_PATH}, got {str(path)[:40]!r}...; shorten it"
        )
    # Links are resolved by now, so one that is left leads back to itself.
    for place in (path, *path.parents):
        if place.is_symlink():
            raise InputError(
                f"a store's path must lead somewhere, but {place} is a symbolic link that leads "
                "back to itself; remove the link or choose another path"
            )


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fsync_folder(path: Path) -> None:
    # Some network file systems refuse this for folders; they keep names safe on their own.
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
