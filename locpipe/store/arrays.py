"""Zarr arrays, block by block: create, write one whole chunk, read with a torn chunk named.

Chunks are compressed by zstd with a checksum, so a flipped bit is an error and not a number.
Every written block has its file, blocks that are all fill value included, so a file that went
missing is an error too.  A block's file is brought to the disk itself (fsync) before its writer
returns: after a power cut no record can name a block that is not there.  That costs a few
milliseconds per block of about a second's work, on the workers, in parallel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from locpipe.errors import InputError, StoreError
from locpipe.store.folder import Folder, told
from locpipe.store.metadata import read_root
from locpipe.store.schema import ArraySpec

if TYPE_CHECKING:
    import zarr

__all__ = [
    "TornError",
    "check_files",
    "create_array",
    "open_array",
    "read_array",
    "read_region",
    "remedy",
    "spec_of",
    "write_block",
]

AnyArray = NDArray[Any]


class TornError(StoreError):
    """A file of a store is torn or missing: its block is to be computed again."""


def remedy(folder: Folder) -> str:
    """What to do about a torn file."""
    with suppress(InputError, StoreError):
        if (read_root(folder) or {}).get("complete") is False:
            return "run again: only what is torn is computed again"
    return "restore it from a copy, or compute the store again with if_exists=replace"


def create_array(folder: Folder, path: str, spec: ArraySpec) -> None:
    """Create an empty array at `path` below the folder; one that is there already is kept."""
    import zarr
    from zarr.codecs import ZstdCodec
    from zarr.errors import ContainsArrayError

    # Contained already: the same task runs twice, and both write the same.
    with told("write", folder.path / path), suppress(ContainsArrayError):
        zarr.create_array(
            folder.zarr_store(),
            name=path,
            shape=spec.shape,
            chunks=spec.chunks,
            dtype=spec.dtype,
            fill_value=spec.fill_value,
            compressors=ZstdCodec(level=1, checksum=True),
            dimension_names=spec.dims,
            attributes=_attributes(spec),
        )


def _attributes(spec: ArraySpec) -> dict[str, Any]:
    attributes: dict[str, Any] = {"units": spec.units, "description": spec.description}
    if spec.coordinates:
        attributes["coordinates"] = " ".join(spec.coordinates)
    return attributes


def open_array(folder: Folder, path: str, *, write: bool = False) -> zarr.Array[Any]:
    """Open an array of a folder.

    Raises
    ------
    StoreError
        If there is none, or its metadata are torn.
    """
    import zarr

    try:
        array = zarr.open_array(
            folder.zarr_store(read_only=not write), path=path, mode="r+" if write else "r"
        )
    except FileNotFoundError as error:
        raise StoreError(
            f"there must be an array {path!r} in {folder.path}, but there is none; "
            "check the path and the name"
        ) from error
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise TornError(
            f"{folder.path / path / 'zarr.json'} must describe a Zarr array, but is torn "
            f"({error}); {remedy(folder)}"
        ) from error
    return array.with_config({"write_empty_chunks": True}) if write else array


def spec_of(folder: Folder, path: str, name: str) -> ArraySpec:
    """The spec of a stored array; `name` is the last part of its path."""
    array = open_array(folder, path)
    attributes = array.attrs.asdict()
    dims = getattr(array.metadata, "dimension_names", None) or ()
    return ArraySpec(
        name=name,
        dims=tuple(str(dim) for dim in dims),
        shape=array.shape,
        chunks=array.chunks,
        dtype=array.dtype,
        units=str(attributes.get("units", "")),
        description=str(attributes.get("description", "")),
        fill_value=array.fill_value,
        coordinates=tuple(str(attributes.get("coordinates", "")).split()),
    )


def write_block(folder: Folder, path: str, spec: ArraySpec, block: int, data: object) -> None:
    """Write one whole block, durably.

    Raises
    ------
    InputError
        If the data do not have the block's shape, or not a type that fits the array.
    StoreError
        If the disk refuses.
    """
    region = spec.region(block)
    values = _fitting(spec, region, data)
    array = open_array(folder, path, write=True)
    key = chunk_key(array, path, region)
    with told("write", folder.path / key):
        array[region] = values
    folder.sync(key)


def _fitting(spec: ArraySpec, region: tuple[slice, ...], data: object) -> AnyArray:
    values = np.asarray(data)
    shape = tuple(part.stop - part.start for part in region)
    if values.shape != shape:
        raise InputError(
            f"a block of {spec.name!r} is written whole: it must have shape {shape}, "
            f"got {values.shape}"
        )
    if spec.is_text:
        return _text(spec.name, values)
    if not np.can_cast(values.dtype, spec.dtype, "same_kind"):
        raise InputError(
            f"a block of {spec.name!r} must fit {spec.dtype}, got {values.dtype}; convert it first"
        )
    return values.astype(spec.dtype, copy=False)


def _text(name: str, values: AnyArray) -> AnyArray:
    is_text = values.dtype.kind in "UT" or all(isinstance(item, str) for item in values.flat)
    if not is_text:
        raise InputError(f"a block of {name!r} must hold str, got {values.dtype}; convert it first")
    return values.astype(object)


def read_region(
    folder: Folder, path: str, array: zarr.Array[Any], region: tuple[slice, ...]
) -> AnyArray:
    """Read part of an array; text comes as objects of type str.

    Raises
    ------
    StoreError
        Naming the file, if a chunk is torn.
    """
    try:
        values = np.asarray(array[region])
    except MemoryError:
        raise
    except Exception as error:  # codecs raise whatever they like
        torn = next(_torn_chunks(folder, path, array), folder.path / path)
        raise TornError(
            f"{torn}, a chunk of {path!r}, must decode to what was written, but is torn ({error}); "
            f"{remedy(folder)}"
        ) from error
    return values.astype(object) if values.dtype.kind == "T" else values


def read_array(folder: Folder, path: str) -> AnyArray:
    """Read a whole array that was wholly written.

    Raises
    ------
    StoreError
        If there is none, or a file of it is torn or missing, which is then named.
    """
    array = open_array(folder, path)
    check_files(folder, path, array)
    return read_region(folder, path, array, (slice(None),) * array.ndim)


def _torn_chunks(folder: Folder, path: str, array: zarr.Array[Any]) -> Iterator[Any]:
    for region in _chunk_regions(array):
        try:
            array[region]
        except Exception:
            yield folder.path / chunk_key(array, path, region)


def check_files(folder: Folder, path: str, array: zarr.Array[Any]) -> None:
    """Raise `StoreError` if a chunk of a wholly written array has no file."""
    for region in _chunk_regions(array):
        key = chunk_key(array, path, region)
        if not folder.exists(key):
            raise TornError(
                f"{folder.path / key}, a chunk of {path!r}, was written but is missing; "
                f"{remedy(folder)}"
            )


def _chunk_regions(array: zarr.Array[Any]) -> Iterator[tuple[slice, ...]]:
    dims = tuple(f"dim_{axis}" for axis in range(array.ndim))
    grid = ArraySpec("chunks", dims, array.shape, array.chunks, bool)
    return (grid.region(block) for block in range(grid.n_blocks))


def chunk_key(array: zarr.Array[Any], path: str, region: tuple[slice, ...]) -> str:
    """The key of the file that holds the chunk which starts where `region` does."""
    index = tuple(part.start // size for part, size in zip(region, array.chunks, strict=True))
    name: str = array.metadata.encode_chunk_key(index)
    return f"{path}/{name}" if path else name
