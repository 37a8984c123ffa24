"""Reading a matrix of dissimilarities from a .npy file, a Parquet table or a Zarr array."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locpipe.errors import InputError

__all__ = ["Matrix", "open_matrix"]


@dataclass(frozen=True)
class Matrix:
    """A matrix that is read by rows, and what its rows and columns are called.

    Attributes
    ----------
    values : array-like (m, n)
        Sliced by rows: an array, a memory map or a Zarr array.
    rows, columns : (m,), (n,) str, or int64 where they have no names
    path : str
        As the user gave it.
    """

    values: Any
    rows: NDArray[Any]
    columns: NDArray[Any]
    path: str

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        m, n = self.values.shape
        return int(m), int(n)

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """Read rows; all of them by default.

        Raises
        ------
        InputError
            If the file is torn.
        """
        from zarr.errors import BaseZarrError

        try:
            return np.asarray(self.values[start:stop], np.float64)
        except (OSError, ValueError, RuntimeError, BaseZarrError) as error:
            raise InputError(
                f"{self.path!r} must be whole, and rows {start} to"
                f" {(self.shape[0] if stop is None else stop) - 1} cannot be read"
                f" ({' '.join(str(error).split()) or type(error).__name__}); write it again."
            ) from error


def open_matrix(path: str) -> Matrix:
    """Open a matrix; what it holds is read later, by rows, where the file allows.

    Parameters
    ----------
    path
        A ``.npy`` file, a ``.parquet`` table (a text column, if any, names the rows), or the
        folder of a Zarr array.

    Raises
    ------
    InputError
        If nothing is there, or it is no matrix of numbers.
    """
    file = Path(path).expanduser()
    if not file.exists():
        raise InputError(f"The matrix {path!r} must exist, and nothing is there; check the path.")
    if file.is_dir():
        return _check(path, *_open_zarr(path, file))
    readers = {".npy": _open_npy, ".parquet": _open_parquet}
    if file.suffix not in readers:
        raise InputError(
            f"The matrix must be a .npy file, a .parquet table or a Zarr array, and {path!r} is"
            " none of them; save it as one."
        )
    return _check(path, *readers[file.suffix](path, file))


Opened = tuple[Any, Any, Any]


def _open_npy(path: str, file: Path) -> Opened:
    if _holds_objects(file):
        raise InputError(
            f"{path!r} must hold numbers, and holds Python objects; save it again with"
            " numpy.save(path, array.astype(float))."
        )
    try:
        return np.load(file, mmap_mode="r", allow_pickle=False), None, None
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{path!r} must be an array saved by numpy.save, and cannot be read as one; save it"
            " again."
        ) from error


def _holds_objects(file: Path) -> bool:
    """Return whether the header of a .npy file, if it can be read, announces pickled objects."""
    with suppress(OSError, ValueError, EOFError), file.open("rb") as stream:
        version = np.lib.format.read_magic(stream)
        first = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        return bool(read(stream)[2].hasobject)
    return False


def _open_parquet(path: str, file: Path) -> Opened:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise InputError(
            "Reading Parquet needs pyarrow, and it is not installed: pip install"
            " 'locpipe[parquet]', or save the matrix as .npy."
        ) from error
    try:
        table = parquet.read_table(file)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path!r} must be a Parquet table, and cannot be read as one.") from error
    is_text = [
        pyarrow.types.is_string(t) or pyarrow.types.is_large_string(t) for t in table.schema.types
    ]
    names = [name for name, text in zip(table.column_names, is_text, strict=True) if not text]
    if sum(is_text) > 1 or not names:
        raise InputError(
            f"{path!r} must have columns of numbers and at most one of text, which names the rows;"
            f" it has {sum(is_text)} of text and {len(names)} others."
        )
    rows = table.column(is_text.index(True)).to_pylist() if any(is_text) else None
    numbers = [i for i, text in enumerate(is_text) if not text]
    for i, name in zip(numbers, names, strict=True):
        if not _is_number(kind := table.schema.types[i]):
            raise InputError(f"{path!r} must hold real numbers, and column {name!r} holds {kind}.")
    columns = [table.column(i).to_numpy() for i in numbers]
    return np.column_stack(columns), rows, names


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _open_zarr(path: str, file: Path) -> Opened:
    import zarr
    from zarr.errors import BaseZarrError

    try:
        found = zarr.open(str(file), mode="r")
    except (OSError, ValueError, BaseZarrError) as error:
        raise InputError(
            f"The folder {path!r} must be a Zarr array, and holds none; check the path."
        ) from error
    if isinstance(found, zarr.Group):
        names = [name for name, array in sorted(found.arrays()) if array.ndim == 2]
        raise InputError(
            f"{path!r} must be one Zarr array, and is a group; name one of its matrices:"
            f" {', '.join(f'{path}/{name}' for name in names) or 'it has none'}."
        )
    return found, None, None


def _check(path: str, values: Any, rows: Any, columns: Any) -> Matrix:
    if values.ndim != 2 or 0 in values.shape:
        raise InputError(f"{path!r} must hold a matrix, and its shape is {tuple(values.shape)}.")
    if values.dtype.kind not in "fiub":
        raise InputError(f"{path!r} must hold real numbers, and holds {values.dtype}.")
    m, n = values.shape
    return Matrix(values, _names(rows, m), _names(columns, n), path)


def _names(given: Any, n: int) -> NDArray[Any]:
    if given is None:
        return np.arange(n, dtype=np.int64)
    return np.array([str(name) for name in given], dtype=object)
