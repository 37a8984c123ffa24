"""Ragged parts: one sub-group per part, holding named 1-d arrays of any length."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from locpipe.errors import InputError
from locpipe.store.arrays import (
    AnyArray,
    TornError,
    create_array,
    read_array,
    remedy,
    spec_of,
    write_block,
)
from locpipe.store.folder import Folder
from locpipe.store.metadata import RUN
from locpipe.store.schema import ArraySpec

__all__ = ["array_names", "part_key", "read_part", "write_part"]

# A chunk of 8-byte items is then 128 MiB: below every codec's limit, and few files per part.
_CHUNK_ITEMS = 2**24


def write_part(folder: Folder, name: str, part: int, arrays: object) -> None:
    """Write one part; its list of arrays comes last, so a half-written part has none.

    Raises
    ------
    InputError
        If `arrays` is not a mapping of names to 1-d arrays.
    """
    if not isinstance(arrays, Mapping):
        raise InputError(
            f"a part of {name!r} must be a mapping of names to 1-d arrays, "
            f"got {type(arrays).__name__}"
        )
    for key, data in arrays.items():
        _write_array(folder, _path(name, part, key), str(key), np.asarray(data))
    group = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {"arrays": [str(key) for key in arrays]},
    }
    folder.write(part_key(name, part), json.dumps(group).encode(), sync=True)


def _write_array(folder: Folder, path: str, name: str, data: AnyArray) -> None:
    if data.ndim != 1:
        raise InputError(f"array {name!r} of a part must have 1 dimension, got {data.ndim}")
    dtype = str if data.dtype.kind in "OUT" else data.dtype
    spec = ArraySpec(name, ("item",), data.shape, (_CHUNK_ITEMS,), dtype)
    # A killed attempt of other code may have left an array of another shape.
    if folder.exists(f"{path}/zarr.json") and spec_of(folder, path, name).differences(spec):
        folder.remove(path)
    create_array(folder, path, spec)
    for block in range(spec.n_blocks):
        write_block(folder, path, spec, block, data[spec.region(block)])


def read_part(folder: Folder, name: str, part: int) -> dict[str, AnyArray]:
    """Read one part.

    Raises
    ------
    StoreError
        If the part is not there, or torn.
    """
    found: dict[str, AnyArray] = {}
    for key in array_names(folder, name, part):
        found[key] = read_array(folder, _path(name, part, key))
    return found


def array_names(folder: Folder, name: str, part: int) -> list[str]:
    """Names of a part's arrays.

    Raises
    ------
    StoreError
        If the part was not written to its end.
    """
    key = part_key(name, part)
    try:
        names: list[Any] = json.loads(folder.read(key) or b"")["attributes"]["arrays"]
    except (ValueError, KeyError, TypeError) as error:
        raise TornError(
            f"{folder.path / key} must list the arrays of part {part} of {name!r}, but is missing "
            f"or torn; {remedy(folder)}"
        ) from error
    return [str(item) for item in names]


def part_key(name: str, part: int) -> str:
    """The key of a part's list of arrays."""
    return f"{_path(name, part)}/zarr.json"


def _path(name: str, part: int, *rest: object) -> str:
    return "/".join([RUN, name, str(part), *map(str, rest)])
