"""Arrays that tasks refer to without a graph ever carrying them."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from locpipe import config

__all__ = ["SharedArray"]


class SharedArray:
    """An array shared by reference in its process, and by a file with any other.

    When a scheduler of processes pickles it, the array is written once to the scratch folder
    and mapped from there; the file is removed with this object.

    Parameters
    ----------
    array : array
        Not copied.

    Examples
    --------
    >>> import pickle, numpy as np
    >>> shared = SharedArray(np.zeros(1_000_000))
    >>> data = pickle.dumps(shared)
    >>> len(data) < 1000, pickle.loads(data).array.shape
    (True, (1000000,))
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self._file: Path | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped, (str(self._written()),)

    def _written(self) -> Path:
        if self._file is None:
            with tempfile.NamedTemporaryFile(
                prefix="locpipe-", suffix=".npy", dir=config.current().scratch, delete=False
            ) as file:
                np.save(file, self.array, allow_pickle=False)
            self._file = Path(file.name)
            weakref.finalize(self, _remove, self._file, os.getpid())
        return self._file


def _remove(file: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child drops its copy of the object, not the file
        file.unlink(missing_ok=True)


def _mapped(file: str) -> SharedArray:
    return SharedArray(np.load(file, mmap_mode="r", allow_pickle=False))
