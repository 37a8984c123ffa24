"""Arrays that tasks refer to without a graph ever carrying them."""

from __future__ import annotations

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
    and mapped from there; the file goes with the object.

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
        return _mapped, (str(self._spill()),)

    def _spill(self) -> Path:
        if self._file is None:
            scratch = config.current().scratch
            with tempfile.NamedTemporaryFile(
                prefix="locpipe-", suffix=".npy", dir=scratch, delete=False
            ) as file:
                np.save(file, self.array, allow_pickle=False)
            self._file = Path(file.name)
            weakref.finalize(self, Path.unlink, self._file, missing_ok=True)
        return self._file


def _mapped(file: str) -> SharedArray:
    return SharedArray(np.load(file, mmap_mode="r", allow_pickle=False))
