"""Keys from a source, looked at block by block as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_dask_array

from locpipe.blocks import Array, KeyBlock
from locpipe.errors import InputError
from locpipe.graph.checks import CHECKS, finite, finite_or_missing, latitude
from locpipe.graph.sources import ArrayKeys, KeySource, read_bytes

__all__ = ["CheckedKeys", "check_total", "checked_source", "no_weight", "weighs"]


@dataclass(frozen=True, eq=False)
class CheckedKeys:
    """A `KeySource` whose blocks pass the checks that arrays in memory pass.

    Parameters
    ----------
    source : KeySource
    allow_missing : bool
        Whether NaN in the coordinates is a missing value.
    angles : bool
        Whether the coordinates are latitudes and longitudes.

    Notes
    -----
    One look at a block, where a fold has one per query.  Whoever reads all keys is told if none
    weighs anything.
    """

    source: KeySource
    allow_missing: bool = False
    angles: bool = False

    @property
    def n_keys(self) -> int:
        """Number of keys."""
        return self.source.n_keys

    @property
    def n_features(self) -> int:
        """Number of features of a key."""
        return self.source.n_features

    @property
    def n_outputs(self) -> int | None:
        """Number of values per key, or None without values."""
        return self.source.n_outputs

    @property
    def values_are_flat(self) -> bool:
        """Whether the values of the source are 1-d."""
        return bool(getattr(self.source, "values_are_flat", False))

    def iter_blocks(
        self, block_rows: int, start: int = 0, stop: int | None = None
    ) -> Iterator[KeyBlock]:
        """The blocks of the source.

        Raises
        ------
        InputError
            Naming the row, if a number is not what it must be; if all weights are 0.
        """
        some = False
        for block in self.source.iter_blocks(block_rows, start, stop):
            self.look_at(block)
            some = some or weighs(block.log_sample_weight)
            yield block
            del block  # or there would be two while the next is read
        if not some and start == 0 and stop in (None, self.n_keys):
            raise no_weight()

    def look_at(self, block: KeyBlock) -> None:
        """Check what a block holds.

        Raises
        ------
        InputError
            Naming the row.
        """
        _check_weights(block.log_sample_weight, block.start)
        data = finite_or_missing if self.allow_missing else finite
        data(block.data, "keys", block.start)
        if self.angles:
            latitude(block.data, "keys", block.start)
        for name, check in CHECKS.items():
            array = getattr(block, name, None)
            if array is not None:
                check(array, f"{name} of the keys", block.start)

    def read_bytes(self, block_rows: int) -> int:
        """Bytes that the source holds while it is read."""
        return read_bytes(self.source, block_rows)

    def weighs_something(self) -> bool:
        """Whether any key has a positive weight; reads up to the first that has."""
        blocks = self.source.iter_blocks(_FEW_ROWS)
        return any(weighs(block.log_sample_weight) for block in blocks)


_FEW_ROWS = 4096
"""Keys looked at a time for a positive weight: mostly the first of all has one."""


def checked_source(source: KeySource, allow_missing: bool) -> KeySource:
    """A source that checks what it reads; arrays in memory are checked now."""
    checked = CheckedKeys(source, allow_missing)
    if not isinstance(source, ArrayKeys):
        return checked
    checked.look_at(source.block)
    return source


def weighs(log_sample_weight: Array | None) -> bool:
    """Whether any key of a block has a positive weight."""
    if log_sample_weight is None:
        return True
    xp = array_namespace(log_sample_weight)
    return bool(xp.any(log_sample_weight > -xp.inf))


def check_total(keys: Any) -> None:
    """Refuse keys in memory none of which weighs anything.

    Raises
    ------
    InputError
        If all weights are 0.
    """
    weight = getattr(keys, "sample_weight", None)
    if isinstance(keys, ArrayKeys):
        nothing = not weighs(keys.block.log_sample_weight)
    else:
        nothing = weight is not None and not is_dask_array(weight) and not _any_positive(weight)
    if nothing:
        raise no_weight()


def _any_positive(weight: Array) -> bool:
    return bool(array_namespace(weight).any(weight > 0))


def no_weight() -> InputError:
    """The error of keys none of which weighs anything."""
    return InputError("sample_weight must have at least one positive entry, got all zeros")


def _check_weights(log_weight: Array | None, start: int) -> None:
    """Logs of weights: -inf is a weight of 0, but NaN and infinity are no weights."""
    if log_weight is None:
        return
    xp = array_namespace(log_weight)
    bad = ~(log_weight < xp.inf)
    if bool(xp.any(bad)):
        row = int(xp.argmax(xp.astype(bad, xp.uint8)))
        weight = np.exp(float(log_weight[row]))
        raise InputError(
            f"sample_weight of the keys must be finite and non-negative, got {weight} in row "
            f"{start + row}; drop or correct that row"
        )
