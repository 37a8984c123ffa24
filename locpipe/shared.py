"""Arrays that tasks refer to without a graph ever carrying them."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from locpipe import config
from locpipe.errors import StoreError

__all__ = ["SharedArray"]


class SharedArray:
    """An array shared by reference in its process, and by a file with any other.

    When a scheduler of processes pickles it, the array is written once to the scratch folder
    and mapped from there; the file is removed with this object.

    Parameters
    ----------
    array : array
        Not copied.

    Raises
    ------
    StoreError
        When it is pickled, if the scratch folder is not there or full.

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
            self._file = _saved(np.asarray(self.array), config.current().scratch)
            weakref.finalize(self, _remove, self._file, os.getpid())
        return self._file


def _saved(array: np.ndarray[Any, Any], folder: Path) -> Path:
    """Write an array to a new file; one that could not be written is removed."""
    with (
        _told(folder, array.nbytes),
        tempfile.NamedTemporaryFile(
            prefix="locpipe-", suffix=".npy", dir=folder, delete=False
        ) as file,
    ):
        path = Path(file.name)
        try:
            np.save(file, array, allow_pickle=False)
            file.flush()  # the last bytes may be what does not fit
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path


@contextmanager
def _told(folder: Path, n_bytes: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"the scratch folder {folder} must take {n_bytes:,} bytes that other processes read, "
            f"but the system says {error.strerror or error}; make room, or choose another folder "
            "by lp.config.override(scratch=...) or the environment variable TMPDIR"
        ) from error


def _remove(file: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child drops its copy of the object, not the file
        file.unlink(missing_ok=True)


def _mapped(file: str) -> SharedArray:
    return SharedArray(np.load(file, mmap_mode="r", allow_pickle=False))
