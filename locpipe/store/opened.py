"""Arrays that are computed from, held to what they were when they were opened."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from locpipe.errors import StoreError
from locpipe.store.arrays import AnyArray, check_files, open_array, read_region
from locpipe.store.folder import Folder
from locpipe.store.metadata import read_done

if TYPE_CHECKING:
    import zarr

__all__ = ["OpenedArray"]


@dataclass(frozen=True)
class OpenedArray:
    """An array of a Zarr group as it was when it was opened.

    Zarr reads a chunk without a file as its fill value, so a file that goes missing later would
    be zeros and no error.  Which chunks had none is kept here, in a bit each where any had none;
    a read looks for the files of the chunks that it touches, and for no others.
    """

    folder: Folder
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    files: tuple[int, ...]
    """Rows and columns of a file: those of a chunk, or of a shard of several."""
    absent: bytes | None = None
    """Packed bits of the files that were not there, in row order, compressed; None: all were."""

    @classmethod
    def of(cls, folder: Folder, name: str) -> OpenedArray:
        """Open an array; a result of a run must be done.

        Raises
        ------
        StoreError
            If there is none, it is not done yet, or was done and lacks a file.
        """
        array = open_array(folder, name)
        opened = cls(folder, name, *_form(array))
        if _is_done(folder, name):
            check_files(folder, name, array)
            return opened
        return replace(opened, absent=opened._absent(array))

    def open(self) -> zarr.Array[Any]:
        """The array, to read from.

        Raises
        ------
        StoreError
            If it is another one by now.
        """
        array = open_array(self.folder, self.name)
        now, was = _form(array), _Form(self.shape, self.dtype, self.chunks, self.files)
        if now != was:
            raise self._changed(f"it was {was}, and is {now}")
        return array

    def read(self, array: zarr.Array[Any], region: tuple[slice, ...]) -> AnyArray:
        """Read part of the array.

        Raises
        ------
        StoreError
            Naming the file, if one is torn or has gone.
        """
        values = read_region(self.folder, self.name, array, region)
        # Afterwards, or a file could go between the look and the read.
        missing = [index for index in self._touched(region) if not self._exists(array, index)]
        gone = self._gone(missing) if missing else None
        if gone is not None:
            raise self._changed(f"the file {self._key(array, gone)!r} was there and has gone")
        return values

    def _gone(self, missing: list[tuple[int, ...]]) -> tuple[int, ...] | None:
        """The first of the files that are missing that was there."""
        were_absent = self._were_absent()
        return next((index for index in missing if not were_absent[index]), None)

    def _touched(self, region: tuple[slice, ...]) -> Iterator[tuple[int, ...]]:
        """Indices of the files that hold a region."""
        whole = (*region, *[slice(None)] * (len(self.shape) - len(region)))
        ranges = []
        for part, size, step in zip(whole, self.shape, self.files, strict=True):
            start, stop, _ = part.indices(size)
            ranges.append(range(start // step, -(-stop // step)))
        return product(*ranges)

    def _key(self, array: zarr.Array[Any], index: tuple[int, ...]) -> str:
        key: str = array.metadata.encode_chunk_key(index)
        return f"{self.name}/{key}" if self.name else key

    def _exists(self, array: zarr.Array[Any], index: tuple[int, ...]) -> bool:
        return self.folder.exists(self._key(array, index))

    def _absent(self, array: zarr.Array[Any]) -> bytes | None:
        absent = [not self._exists(array, index) for index in self._touched(())]
        return zlib.compress(np.packbits(absent).tobytes()) if any(absent) else None

    def _were_absent(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Per file, whether it was not there."""
        grid = tuple(-(-size // step) for size, step in zip(self.shape, self.files, strict=True))
        if self.absent is None:
            return np.zeros(grid, bool)
        bits = np.frombuffer(zlib.decompress(self.absent), np.uint8)
        return np.unpackbits(bits, count=prod(grid)).reshape(grid).astype(bool)

    def _changed(self, how: str) -> StoreError:
        return StoreError(
            f"{self.name!r} in {self.folder.path} must stay as it was when it was opened, "
            f"but {how}; restore it, or open it again if that was meant"
        )


def _is_done(folder: Folder, name: str) -> bool:
    """Whether it is a result of a run, which then must be done."""
    done = read_done(folder, name) if name else None
    if done is not None and not done.mask.all():
        n_done, n_blocks = done.count
        raise StoreError(
            f"{name!r} in {folder.path} must be done before it is computed from, but {n_done} of "
            f"{n_blocks} blocks are; run it to the end first"
        )
    return done is not None


class _Form(NamedTuple):
    """What must stay of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    files: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape} in chunks of {self.chunks}"


def _form(array: zarr.Array[Any]) -> _Form:
    return _Form(array.shape, array.dtype, array.chunks, array.shards or array.chunks)
