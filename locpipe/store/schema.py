"""What a result looks like: the shape, blocks, names and units of one array, or ragged parts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from locpipe.errors import InputError

__all__ = ["ArraySpec", "PartsSpec", "Spec"]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
# xarray reads these units as time spans or dates and would change the type of the numbers.
_TIME_UNITS = re.compile(
    r"^(days|hours|minutes|seconds|milliseconds|microseconds|nanoseconds)$|\bsince\b"
)
_FILL: dict[str, Any] = {"f": math.nan, "c": math.nan, "i": -1, "u": 0, "b": False}


@dataclass(frozen=True)
class ArraySpec:
    """A result array; its chunks are its blocks, the unit of writing and of resuming.

    Parameters
    ----------
    name : str
        Letters, digits, ``_``, ``.``, ``-``; the first is a letter.
    dims : tuple of str
        A name per dimension, no name twice; arrays that share a name share its size.
    shape, chunks : tuple of int
        Chunks are cut to the shape; the last one of a dimension may be smaller.
    dtype : numpy dtype, or str for text
    units, description : str
        Time is given by symbols ("s", not "seconds"), which xarray leaves alone.
    fill_value : scalar, optional
        What an unwritten cell reads as; default: NaN, -1 for signed and 0 for unsigned
        integers, False, or "".
    coordinates : tuple of str
        Names of arrays of the same store that label this one's dimensions.

    Raises
    ------
    InputError
        If the parts do not fit together.

    Examples
    --------
    >>> from locpipe.store import ArraySpec
    >>> spec = ArraySpec("density", ("word",), (10,), (4,), "float64")
    >>> spec.n_blocks, spec.region(2)
    (3, (slice(8, 10, None),))
    """

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: DTypeLike
    units: str = ""
    description: str = ""
    fill_value: Any = None
    coordinates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_dims(self)
        if _TIME_UNITS.search(self.units):
            raise InputError(
                f"units of {self.name!r} must not be {self.units!r}, which xarray decodes as time; "
                "use a symbol such as 's'"
            )
        shape = tuple(int(n) for n in self.shape)
        chunks = tuple(max(1, min(int(c), n)) for c, n in zip(self.chunks, shape, strict=True))
        set_field = object.__setattr__
        set_field(self, "dims", tuple(self.dims))
        set_field(self, "shape", shape)
        set_field(self, "chunks", chunks)
        set_field(self, "coordinates", tuple(self.coordinates))
        set_field(self, "dtype", _dtype(self.name, self.dtype))
        set_field(self, "fill_value", _fill(self.dtype, self.fill_value))

    @property
    def is_text(self) -> bool:
        """Whether the array holds strings."""
        return self.dtype is str

    def differences(self, other: object) -> str:
        """What differs between this spec and another, for a message; "" if nothing does."""
        return _differences(self, other)

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of blocks along each dimension."""
        return tuple(-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True))

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return math.prod(self.grid)

    def region(self, block: int) -> tuple[slice, ...]:
        """The cells of one block; blocks count in C order."""
        check_block(self, block)
        index = np.unravel_index(block, self.grid) if self.grid else ()
        return tuple(
            slice(int(i) * c, min((int(i) + 1) * c, n))
            for i, c, n in zip(index, self.chunks, self.shape, strict=True)
        )


@dataclass(frozen=True)
class PartsSpec:
    """Ragged results: one dict of named 1-d arrays per part, kept out of xarray's sight.

    Parameters
    ----------
    name : str
    n_parts : int
    description : str

    Raises
    ------
    InputError
        If the name or the number of parts cannot be.
    """

    name: str
    n_parts: int
    description: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.n_parts < 0:
            raise InputError(f"n_parts of {self.name!r} must be >= 0, got {self.n_parts}")

    def differences(self, other: object) -> str:
        """What differs between this spec and another, for a message; "" if nothing does."""
        return _differences(self, other)

    @property
    def n_blocks(self) -> int:
        """Number of parts."""
        return self.n_parts


Spec = ArraySpec | PartsSpec


def check_block(spec: Spec, block: int) -> None:
    """Raise `InputError` unless the spec has this block."""
    if not 0 <= block < spec.n_blocks:
        raise InputError(f"a block of {spec.name!r} must be in 0..{spec.n_blocks - 1}, got {block}")


def check_together(specs: list[ArraySpec]) -> None:
    """Raise `InputError` if xarray could not hold these arrays in one data set."""
    sizes: dict[str, tuple[int, str]] = {}
    for spec in specs:
        for dim, n in zip(spec.dims, spec.shape, strict=True):
            known, owner = sizes.setdefault(dim, (n, spec.name))
            if known != n:
                raise InputError(
                    f"arrays of a store must agree on their dimensions: {dim!r} is {known} in "
                    f"{owner!r} and {n} in {spec.name!r}; give one of them another name"
                )
    for spec in specs:
        if spec.name in sizes and spec.dims != (spec.name,):
            raise InputError(
                f"the array {spec.name!r} has the name of a dimension, so its only dimension must "
                f"be itself, got {spec.dims}; give it another name"
            )


def _differences(wanted: Any, stored: Any) -> str:
    if type(wanted) is not type(stored):
        return f"{type(wanted).__name__} asked for, {type(stored).__name__} stored"
    found = []
    for field in fields(wanted):
        new, old = getattr(wanted, field.name), getattr(stored, field.name)
        # repr: a NaN fill value differs from itself
        if new != old and repr(new) != repr(old):
            found.append(f"{field.name} {new} asked for, {old} stored")
    return "; ".join(found)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name == "zarr.json":
        raise InputError(
            f"a result's name must be letters, digits, '_', '.', '-' after a letter, got {name!r}; "
            "rename it"
        )


def _check_dims(spec: ArraySpec) -> None:
    dims, shape, chunks = spec.dims, spec.shape, spec.chunks
    if not len(dims) == len(shape) == len(chunks):
        raise InputError(
            f"{spec.name!r} must have as many dims as sizes and chunks, got dims {dims}, "
            f"shape {shape}, chunks {chunks}"
        )
    if len(set(dims)) != len(dims):
        raise InputError(f"dims of {spec.name!r} must differ from one another, got {dims}")
    if min(shape, default=0) < 0 or min(chunks, default=1) < 1:
        raise InputError(
            f"{spec.name!r} must have sizes >= 0 and chunks >= 1, got {shape} and {chunks}"
        )


def _fill(dtype: Any, value: Any) -> Any:
    """The fill value as a Python scalar, rounded as the array rounds it."""
    if dtype is str:
        return "" if value is None else str(value)
    return np.asarray(_FILL[dtype.kind] if value is None else value).astype(dtype).item()


def _dtype(name: str, dtype: DTypeLike) -> Any:
    if dtype is str:
        return str
    found = np.dtype(dtype)
    if found.kind in "UT":
        return str
    if found.kind not in _FILL:
        raise InputError(
            f"{name!r} must hold numbers, booleans or str, got {found}; objects are not stored"
        )
    return found
