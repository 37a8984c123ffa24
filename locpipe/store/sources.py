"""Keys and pairs that stay in a store and are read block by block, inside the task."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from locpipe.blocks import KeyBlock, Tile, row_slices
from locpipe.errors import InputError
from locpipe.store.arrays import AnyArray
from locpipe.store.folder import Folder, Url
from locpipe.store.layout import OPEN_SECONDS, Layout
from locpipe.store.opened import OpenedArray

__all__ = ["ZarrKeys", "ZarrPairs"]


class ZarrKeys:
    """A `KeySource` over arrays of a Zarr group, locpipe's own or any other.

    It pickles to a path and a few names.  The arrays must stay as they were when this was made:
    a file that goes missing later is an error, where Zarr would read zeros.  A task opens them
    when it starts to read and holds one span of rows at a time: as many as a chunk has, or as a
    block where that is more.

    Parameters
    ----------
    url : str or path
        The group.
    data : str
        Name of the array of keys, (n_keys, n_features).
    values : str, optional
        Values, (n_keys, n_outputs) or (n_keys,).
    sample_weight : str, optional
        Weights >= 0, (n_keys,).
    bandwidth : str, optional
        Factor on the kernel's bandwidth, (n_keys,).

    Raises
    ------
    InputError
        If the shapes do not fit together.
    StoreError
        If an array is not there, or is a result that is not done yet.

    Notes
    -----
    Making it looks for the file of every chunk once, about 20 microseconds each.

    Examples
    --------
    >>> import tempfile, numpy as np, zarr, locpipe as lp
    >>> url, points = tempfile.mkdtemp(), np.arange(10.0).reshape(5, 2)
    >>> stored = zarr.create_array(url, name="points", data=points)
    >>> keys = lp.store.ZarrKeys(url, "points")
    >>> print(lp.nearest([[3.0, 3.0]], keys, k=2)[1])
    [[1 2]]
    """

    def __init__(
        self,
        url: Url,
        data: str,
        values: str | None = None,
        sample_weight: str | None = None,
        bandwidth: str | None = None,
    ) -> None:
        self._folder = Folder.at(url)
        optional = {"values": values, "sample_weight": sample_weight, "bandwidth": bandwidth}
        self._names = {"data": data, **{k: v for k, v in optional.items() if v is not None}}
        self._arrays = {
            role: OpenedArray.of(self._folder, name) for role, name in self._names.items()
        }
        for role, array in self._arrays.items():
            _check_rows(role, array, n_rows=prod(self._arrays["data"].shape[:1]))
        self._layouts = [Layout.of(array) for array in self._arrays.values()]

    def __repr__(self) -> str:
        return _shown(self, self._folder, self._names, self._arrays["data"].shape)

    @property
    def n_keys(self) -> int:
        """Number of keys."""
        return int(self._arrays["data"].shape[0])

    @property
    def n_features(self) -> int:
        """Number of features of a key."""
        return int(self._arrays["data"].shape[1])

    @property
    def n_outputs(self) -> int | None:
        """Number of values per key, or None without values."""
        values = self._arrays.get("values")
        return None if values is None else int((*values.shape, 1)[1])

    @property
    def values_are_flat(self) -> bool:
        """Whether the values are 1-d, so that their mean is."""
        values = self._arrays.get("values")
        return values is not None and len(values.shape) == 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the features."""
        return self._arrays["data"].dtype

    def iter_blocks(
        self, block_rows: int, start: int = 0, stop: int | None = None
    ) -> Iterator[KeyBlock]:
        """Consecutive blocks of at most `block_rows` keys that cover ``start .. stop``.

        Raises
        ------
        InputError
            If a weight is negative or NaN.
        StoreError
            Naming the file, if a chunk is torn or has gone, or the array, if it is another one
            than was opened.
        """
        stop = self.n_keys if stop is None else stop
        arrays = {role: array.open() for role, array in self._arrays.items()}
        for rows in row_slices(stop, self._span(block_rows), start):
            block = self._block(arrays, rows)
            for part in row_slices(block.n_rows, block_rows):
                yield block.rows(part)
            del block  # or there would be two while the next is read

    def read_bytes(self, block_rows: int) -> int:
        """Bytes held while keys are read in blocks of `block_rows`."""
        span = (self._span(block_rows),)
        return sum(layout.read_bytes(span) for layout in self._layouts)

    def read_seconds(self, block_rows: int) -> float:
        """Seconds of CPU that reading all keys once takes, in blocks of `block_rows`."""
        span = self._span(block_rows)
        return sum(layout.read_seconds(layout.chunks_of_spans(span)) for layout in self._layouts)

    def _span(self, block_rows: int) -> int:
        # Whole blocks that together span a chunk: blocks smaller than a chunk, read one by one,
        # would decode it again for each.
        return -(-max(layout.chunks[0] for layout in self._layouts) // block_rows) * block_rows

    def _block(self, arrays: dict[str, Any], rows: slice) -> KeyBlock:
        read: dict[str, AnyArray] = {
            role: self._arrays[role].read(array, (rows,)) for role, array in arrays.items()
        }
        values, weight = read.get("values"), read.get("sample_weight")
        return KeyBlock(
            data=read["data"],
            start=rows.start,
            values=values[:, None] if values is not None and values.ndim == 1 else values,
            log_sample_weight=None if weight is None else self._log_weight(weight),
            bandwidth=read.get("bandwidth"),
        )

    def _log_weight(self, weight: AnyArray) -> AnyArray:
        if not (weight >= 0).all():
            raise InputError(
                f"sample_weight {self._names['sample_weight']!r} in {self._folder.path} must be "
                f">= 0, got {weight.min()}; drop or correct those keys"
            )
        with np.errstate(divide="ignore"):  # a weight of 0 takes the key out
            return np.asarray(np.log(weight))


class ZarrPairs:
    """A `PairSource` over (n_queries, n_keys) arrays of a Zarr group, read by tile.

    It pickles to a path and two names; as for `ZarrKeys`, the arrays must stay as they were.  Each
    tile decodes the chunks that it touches, so chunks
    of about the tile's size are read once.

    Parameters
    ----------
    url : str or path
        The group; or one array, with ``delta=""``.
    delta : str
        Name of the dissimilarities; NaN marks a missing cell.
    weight : str, optional
        Name of the weights of the cells; default: 1.

    Raises
    ------
    InputError
        If an array is not a matrix, or the shapes differ.
    StoreError
        If an array is not there, or is a result that is not done yet.

    Examples
    --------
    >>> import tempfile, numpy as np, zarr, locpipe as lp
    >>> url, weights = tempfile.mkdtemp(), np.array([[1.0, 3.0]])
    >>> stored = zarr.create_array(url, name="weights", data=weights)
    >>> kernel = lp.kernels.Precomputed(lp.store.ZarrPairs(url, "weights"))
    >>> print(lp.local_mean([0.0], [0.0, 0.0], [10.0, 20.0], kernel))
    [17.5]
    """

    def __init__(self, url: Url, delta: str, weight: str | None = None) -> None:
        self._folder = Folder.at(url)
        names = {"delta": delta} if weight is None else {"delta": delta, "weight": weight}
        self._names = names
        self._arrays = tuple(OpenedArray.of(self._folder, name) for name in names.values())
        shapes = [array.shape for array in self._arrays]
        if len(shapes[0]) != 2 or len(set(shapes)) != 1:
            raise InputError(
                f"dissimilarities and weights must be matrices of one shape, got {shapes}; "
                "store them as (n_queries, n_keys)"
            )

    def __repr__(self) -> str:
        return _shown(self, self._folder, self._names, self.shape)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of queries and keys."""
        n_queries, n_keys = self._arrays[0].shape
        return n_queries, n_keys

    def tile(self, rows: slice, columns: slice) -> Tile:
        """The dissimilarities and, where given, the weights of a rectangle.

        Raises
        ------
        StoreError
            Naming the file, if a chunk is torn or has gone, or the array, if it is another one
            than was opened.
        """
        return tuple(array.read(array.open(), (rows, columns)) for array in self._arrays)

    def read_bytes(self, n_rows: int, n_columns: int) -> int:
        """Bytes held while a rectangle is read."""
        return sum(layout.read_bytes((n_rows, n_columns)) for layout in self._layouts())

    def read_seconds(self, n_rows: int, n_columns: int) -> float:
        """Seconds of CPU that reading a rectangle takes."""
        region = (n_rows, n_columns)
        return sum(
            OPEN_SECONDS + layout.read_seconds(layout.n_chunks(region))
            for layout in self._layouts()
        )

    def _layouts(self) -> list[Layout]:
        return list(map(Layout.of, self._arrays))


def _shown(source: object, folder: Folder, names: dict[str, str], shape: tuple[int, ...]) -> str:
    given = "".join(f", {role}={name!r}" for role, name in names.items())
    return f"{type(source).__name__}({str(folder.path)!r}{given}: {shape[0]:,} x {shape[1]:,})"


def _check_rows(role: str, array: OpenedArray, n_rows: int) -> None:
    allowed = {"data": (2,), "values": (1, 2)}.get(role, (1,))
    name, shape = array.name, array.shape
    if array.dtype.kind not in "fiub":
        raise InputError(f"{role} {name!r} must hold numbers, got {array.dtype}; convert it first")
    if len(shape) not in allowed or shape[0] != n_rows:
        raise InputError(
            f"{role} {name!r} must have {' or '.join(map(str, allowed))} dimension(s) and "
            f"{n_rows} rows as the keys, got shape {shape}"
        )
