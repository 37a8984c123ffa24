"""Arrays that tasks refer to without a graph ever carrying them."""

from __future__ import annotations

import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from locpipe import config

__all__ = ["SharedArray"]

_files: dict[int, Path] = {}
"""The file of each array that was pickled, by the array's id; it goes with the array."""


class SharedArray:
    """An array shared by reference in its process, and by a file with any other.

    When a scheduler of processes pickles it, the array is written once to the scratch folder
    and mapped from there; the file is removed with the array.

    Parameters
    ----------
    array : array
        Not copied.

    Examples
    --------
    >>> import pickle, numpy as np
    >>> array = np.zeros(1_000_000)
    >>> data = pickle.dumps(SharedArray(array))
    >>> len(data) < 1000, pickle.loads(data).array.shape
    (True, (1000000,))
    """

    def __init__(self, array: Any) -> None:
        self.array = array

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped, (str(_file_of(self.array)),)


def _file_of(array: Any) -> Path:
    if id(array) not in _files:
        with tempfile.NamedTemporaryFile(
            prefix="locpipe-", suffix=".npy", dir=config.current().scratch, delete=False
        ) as file:
            np.save(file, array, allow_pickle=False)
        _files[id(array)] = Path(file.name)
        weakref.finalize(array, _remove, id(array))
    return _files[id(array)]


def _remove(array_id: int) -> None:
    _files.pop(array_id).unlink(missing_ok=True)


def _mapped(file: str) -> SharedArray:
    return SharedArray(np.load(file, mmap_mode="r", allow_pickle=False))
