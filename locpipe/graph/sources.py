"""Where keys come from: a protocol, and its form over arrays in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from locpipe.blocks import KeyBlock, row_slices
from locpipe.shared import SharedArray

__all__ = ["ArrayKeys", "KeySource", "read_bytes"]

KEY_BLOCK_ROWS = 65_536
"""Keys folded at a time: with 100 float64 features, 50 MB."""


@runtime_checkable
class KeySource(Protocol):
    """Keys that are read block by block inside a task; it pickles small."""

    @property
    def n_keys(self) -> int:
        """Number of keys."""

    @property
    def n_features(self) -> int:
        """Number of features of a key."""

    @property
    def n_outputs(self) -> int | None:
        """Number of values per key, or None without values."""

    def iter_blocks(
        self, block_rows: int, start: int = 0, stop: int | None = None
    ) -> Iterator[KeyBlock]:
        """Consecutive blocks of at most `block_rows` keys that cover ``start .. stop``."""


def read_bytes(source: KeySource, block_rows: int) -> int:
    """Bytes that a source holds while it is read in blocks of `block_rows` keys.

    A source may say so itself, by a method ``read_bytes(block_rows)``; else it is taken to hold
    two blocks of float64.  Arrays in memory are read as views.
    """
    if isinstance(source, ArrayKeys):
        return 0
    own = getattr(source, "read_bytes", None)
    if own is not None:
        return int(own(block_rows))
    return 2 * block_rows * 8 * (source.n_features + (source.n_outputs or 0) + 2)


@dataclass(frozen=True, eq=False)
class ArrayKeys:
    """A `KeySource` over arrays in memory; pickles as references to files (`SharedArray`).

    Parameters
    ----------
    block : KeyBlock
        All keys.
    """

    block: KeyBlock
    _shared: dict[str, SharedArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = {k: v for k, v in vars(self.block).items() if k != "start" and v is not None}
        shared = {name: SharedArray(array) for name, array in given.items()}
        object.__setattr__(self, "_shared", shared)

    @property
    def n_keys(self) -> int:
        """Number of keys."""
        return self.block.n_rows

    @property
    def n_features(self) -> int:
        """Number of features of a key."""
        return int(self.block.data.shape[1])

    @property
    def n_outputs(self) -> int | None:
        """Number of values per key, or None without values."""
        return None if self.block.values is None else int(self.block.values.shape[1])

    def iter_blocks(
        self, block_rows: int, start: int = 0, stop: int | None = None
    ) -> Iterator[KeyBlock]:
        """Views of at most `block_rows` keys."""
        stop = self.n_keys if stop is None else stop
        return (self.block.rows(part) for part in row_slices(stop, block_rows, start))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_keys, (self._shared,)


def _restore_keys(arrays: dict[str, SharedArray]) -> ArrayKeys:
    return ArrayKeys(KeyBlock(**{name: shared.array for name, shared in arrays.items()}))
