"""What it takes to read a part of a Zarr array, from its metadata alone."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from locpipe.store.opened import OpenedArray

__all__ = ["OPEN_SECONDS", "Layout"]

_IN_FLIGHT = 10
"""Chunks of an array that zarr decodes at a time (its ``async.concurrency``)."""
_KEPT_BYTES, _KEPT_CHUNKS, _MAPPED_BYTES = 32 * 2**20, 2, 32 * 2**20
"""What the allocator keeps of chunks already freed, for zarr's threads: so much, and chunks below
the size that it always hands back (M_MMAP_THRESHOLD at most).  Measured over layouts of many small,
few large, split and sharded chunks."""
_BYTE_SECONDS, _CHUNK_SECONDS = 4e-9, 5e-4
"""CPU of decoding: per byte decoded, and per chunk."""
OPEN_SECONDS = 2e-3
"""CPU of opening an array once more."""


class Layout(NamedTuple):
    """How an array lies in its store."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    itemsize: int
    is_sharded: bool

    @classmethod
    def of(cls, array: OpenedArray) -> Layout:
        """The layout of an array."""
        sharded = array.files != array.chunks
        return cls(array.shape, array.chunks, array.dtype.itemsize, sharded)

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk, decoded."""
        return prod(self.chunks) * self.itemsize

    def n_chunks(self, region: tuple[int, ...]) -> int:
        """Chunks that a region of so many rows (and columns) touches at most."""
        return prod(map(_touched, self._whole(region), self.chunks, self.shape))

    def read_bytes(self, region: tuple[int, ...]) -> int:
        """Bytes held while regions of that size are read one after the other.

        That is the region, the one before, and the chunks in flight, as stored and as decoded.
        Of a shard all stored chunks are fetched first, and it is put together by itself.
        """
        n_bytes, n_chunks = prod(self._whole(region)) * self.itemsize, self.n_chunks(region)
        in_flight = min(n_chunks, _IN_FLIGHT)
        stored = n_chunks if self.is_sharded else in_flight
        held = (2 + self.is_sharded) * n_bytes + (stored + in_flight) * self.chunk_bytes
        return held + _KEPT_BYTES + _KEPT_CHUNKS * min(self.chunk_bytes, _MAPPED_BYTES)

    def read_seconds(self, n_chunks: int) -> float:
        """Seconds of CPU that decoding so many chunks takes."""
        return n_chunks * (_CHUNK_SECONDS + _BYTE_SECONDS * self.chunk_bytes)

    def chunks_of_spans(self, span: int) -> int:
        """Chunks decoded while all rows are read, `span` at a time; some are met twice."""
        n_rows, chunk_rows = self.shape[0], self.chunks[0]
        n_spans = -(-n_rows // span)
        met = -(-n_rows // chunk_rows) + (n_spans - 1 if span % chunk_rows else 0)
        return met * self.n_chunks((1,))

    def _whole(self, region: tuple[int, ...]) -> tuple[int, ...]:
        given = tuple(min(n, size) for n, size in zip(region, self.shape, strict=False))
        return (*given, *self.shape[len(region) :])


def _touched(n: int, chunk: int, size: int) -> int:
    """Chunks of an axis that `n` places touch, wherever blocks of that size begin."""
    aligned = n >= size or n % chunk == 0 or chunk % n == 0
    return min(-(-n // chunk) + (not aligned), -(-size // chunk))
