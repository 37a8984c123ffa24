"""Finished runs, read: the one way for whoever shows or uses a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from locpipe.errors import StoreError
from locpipe.store import arrays
from locpipe.store.arrays import AnyArray
from locpipe.store.folder import Folder, Url
from locpipe.store.metadata import read_done, result_names
from locpipe.store.schema import ArraySpec
from locpipe.store.status import RunStatus, read_status

__all__ = ["Result", "open_result", "read_result"]


@dataclass(frozen=True)
class Result:
    """A finished run; made by `open_result`.

    Attributes
    ----------
    path : Path
        The store, absolute.
    status : RunStatus
    arrays : mapping of str to ArraySpec
        What it holds, by name, sorted.
    """

    path: Path
    status: RunStatus
    arrays: Mapping[str, ArraySpec]

    def read(self, name: str) -> AnyArray:
        """A whole array; text comes as objects of type str.

        Raises
        ------
        StoreError
            If there is none of this name, or a file of it is torn or missing, which is then named.
        """
        if name not in self.arrays:
            raise StoreError(
                f"{self.path} has no result {name!r}; it has {', '.join(self.arrays) or 'none'}"
            )
        return arrays.read_array(Folder(self.path), name)


def open_result(url: Url) -> Result:
    """Open the store of a finished run for reading; no lock is taken.

    Parameters
    ----------
    url : str or path

    Raises
    ------
    InputError
        If no store can be at this path.
    StoreError
        If there is no finished run, or metadata are torn.
    """
    folder = Folder.at(url)
    status = read_status(url)
    if status is None or not status.complete:
        reason = "there is none" if status is None else status.damage or "it is not finished"
        raise StoreError(f"{folder.path} must hold a finished run, but {reason}; run it first")
    names = [name for name in result_names(folder) if _is_array(folder, name)]
    return Result(folder.path, status, {name: arrays.spec_of(folder, name, name) for name in names})


def _is_array(folder: Folder, name: str) -> bool:
    done = read_done(folder, name)
    return folder.exists(f"{name}/zarr.json") if done is None else done.kind == "array"


def read_result(url: Url, name: str) -> AnyArray:
    """Read one array of a finished run; text comes as objects of type str.

    Parameters
    ----------
    url : str or path
    name : str

    Raises
    ------
    InputError
        If no store can be at this path.
    StoreError
        If there is no finished run with such an array, or a file of it is torn or missing, which
        is then named.
    """
    return open_result(url).read(name)
