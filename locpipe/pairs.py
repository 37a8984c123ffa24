"""Pair sources beyond one array in memory: sparse matrices, and Dask arrays not yet read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj, is_dask_array

from locpipe.blocks import Array, ArrayPairs, PairSource, Tile
from locpipe.errors import InputError
from locpipe.shared import SharedArray

__all__ = ["DaskPairs", "SparsePairs", "as_pairs", "refuse_stored", "unmasked"]


def as_pairs(pairs: Any, what: str) -> PairSource:
    """A matrix of any kind as a `PairSource`.

    Parameters
    ----------
    pairs : array (n_queries, n_keys), NumPy or Dask, scipy.sparse matrix, or PairSource
    what : str
        What the matrix is, in the plural, for messages.

    Raises
    ------
    InputError
        If it is not a matrix of real numbers, has masked cells, or is a Dask array of unknown
        chunk sizes.
    """
    is_array = is_array_api_obj(pairs)
    if isinstance(pairs, PairSource) and not is_array:  # torch tensors have a `tile` of their own
        return pairs
    refuse_stored(pairs, what, "ZarrPairs")
    sparse = hasattr(pairs, "tocsr")
    matrix = pairs if sparse or is_array else _from_sequence(pairs, what)
    matrix = unmasked(matrix, what, _FILL)
    if matrix.ndim != 2:
        raise InputError(
            f"{what} must be a matrix (n_queries, n_keys), got {matrix.ndim} dimension(s)"
        )
    if getattr(matrix.dtype, "kind", "f") not in "fiub":
        raise InputError(f"{what} must be real numbers, got dtype {matrix.dtype}; convert them")
    if is_dask_array(matrix):
        return DaskPairs(matrix)
    return SparsePairs(matrix) if sparse else ArrayPairs(matrix)


_FILL = "fill those cells first"


def unmasked(array: Array, what: str, advice: str) -> Array:
    """A plain array in place of a masked one without masked numbers.

    Raises
    ------
    InputError
        If a number is masked: it is there all the same, and would count.
    """
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if np.ma.getmaskarray(array).any():
        raise InputError(f"{what} must not be masked, got masked numbers; {advice}")
    return array.data


def refuse_stored(array: Any, what: str, source: str) -> None:
    """Refuse a Zarr array, which would be read whole before any look at its size.

    Raises
    ------
    InputError
        Naming the ways in that read it block by block.
    """
    if type(array).__module__.startswith("zarr."):
        raise InputError(
            f"{what} must be an array in memory, a Dask array or a source, got a zarr "
            f"{type(array).__name__}, which would be read whole; take "
            f"locpipe.store.{source} or dask.array.from_zarr"
        )


def _from_sequence(rows: Any, what: str) -> Array:
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise InputError(f"{what} must be rows of equal length, got a ragged sequence") from error


@dataclass(frozen=True, eq=False)
class DaskPairs:
    """A Dask array of pairs, as it stands in a kernel until a graph cuts it into blocks.

    Parameters
    ----------
    array : Dask array (n_queries, n_keys)
        Never computed here.

    Raises
    ------
    InputError
        If its chunk sizes are unknown, or while a tile is read outside a graph; in the tasks, if
        numbers are masked.
    """

    array: Any

    def __post_init__(self) -> None:
        if np.isnan(self.array.shape).any():
            raise InputError(
                f"pairs must have known chunk sizes, got shape {self.array.shape}; "
                "call compute_chunk_sizes() on the array first"
            )
        plain = {"dtype": self.array.dtype, "meta": unmasked(self.array._meta, "pairs", _FILL)}
        checked = self.array.map_blocks(unmasked, "pairs", _FILL, **plain)
        object.__setattr__(self, "array", checked)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of queries and keys."""
        n_queries, n_keys = self.array.shape
        return int(n_queries), int(n_keys)

    def tile(self, rows: slice, columns: slice) -> Tile:
        """Refused: only the tasks of a graph hold the blocks of a Dask array."""
        raise InputError(
            "pairs in a Dask array are read inside the tasks of a graph only; call a function "
            "such as lp.local_mean, or compute() the array first"
        )


class SparsePairs:
    """A `PairSource` over a sparse matrix; what is not stored is 0.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array (n_queries, n_keys)
        Any format; duplicates are summed.

    Notes
    -----
    Cells stand in row order, each with one number ``row n_keys + column``, so a tile is found by
    two binary searches per row.  16 bytes per stored cell; pickles as references to files.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> pairs = SparsePairs(scipy.sparse.eye_array(3, 4))
    >>> pairs.shape, pairs.tile(slice(1, 2), slice(0, 3))[0]
    ((3, 4), array([[0., 1., 0.]]))
    """

    def __init__(self, matrix: Any) -> None:
        csr = matrix.tocsr()
        csr = csr if csr.has_canonical_format else csr.copy()
        csr.sum_duplicates()
        self._shape = (int(csr.shape[0]), int(csr.shape[1]))
        row = np.repeat(np.arange(self._shape[0], dtype=np.int64), np.diff(csr.indptr))
        self._cell = SharedArray(row * self._shape[1] + csr.indices)
        self._value = SharedArray(csr.data)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of queries and keys."""
        return self._shape

    def tile(self, rows: slice, columns: slice) -> Tile:
        """The values of a rectangle, dense."""
        cell, value, n_keys = self._cell.array, self._value.array, self._shape[1]
        begin = np.arange(rows.start, rows.stop, dtype=np.int64) * n_keys
        first = np.searchsorted(cell, begin + columns.start)
        count = np.searchsorted(cell, begin + columns.stop) - first
        offset = first - (np.cumsum(count) - count)
        stored = np.repeat(offset, count) + np.arange(count.sum())
        tile = np.zeros((begin.size, columns.stop - columns.start), value.dtype)
        row = np.repeat(np.arange(begin.size), count)
        tile[row, cell[stored] % n_keys - columns.start] = value[stored]
        return (tile,)
