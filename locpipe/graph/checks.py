"""What numbers must be: finite, positive, non-negative; the first that is not is told with its row.

Arrays in memory are looked at now, Dask arrays chunk by chunk when they are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_dask_array, is_numpy_array

from locpipe.blocks import Array
from locpipe.errors import InputError
from locpipe.metrics import LARGEST_LATITUDE
from locpipe.pairs import unmasked

__all__ = [
    "CHECKS",
    "Check",
    "apply_check",
    "finite",
    "finite_or_missing",
    "fits",
    "is_floating",
    "latitude",
    "same_array",
]

LARGEST = 1e150
"""Numbers up to this size have squares and sums of squares within float64."""

Check = Callable[[Array, str, float], None]
"""``check(array, what, start)`` raises `InputError`; `start` is the place of its first row."""


def apply_check(check: Check, array: Array, what: str) -> Array:
    """The same array, once it has passed; a Dask array passes inside its tasks."""
    if not is_dask_array(array):
        check(array, what, 0)
        return array
    import dask.array as da
    from dask.layers import ArraySliceDep

    lazy: Any = array
    axes = tuple(range(lazy.ndim))
    places = ArraySliceDep(lazy.chunks)
    checked: Array = da.blockwise(
        _passed, axes, lazy, axes, places, axes, check=check, what=what,
        dtype=lazy.dtype, meta=lazy._meta, align_arrays=False, token=_CHECKED,
    )  # fmt: skip
    return checked


_CHECKED = "locpipe-checked"


def same_array(a: Array, b: Array) -> bool:
    """Whether two arrays are the same memory, or come from the same Dask array."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(a.__array_interface__ == b.__array_interface__)
    return is_dask_array(a) and is_dask_array(b) and _unchecked_name(a) == _unchecked_name(b)


def _unchecked_name(array: Any) -> str:
    """Name of the Dask array that passes its chunks through the checks that end in `array`."""
    name: str = array.name
    while name.startswith(_CHECKED):
        name = next(iter(array.dask.dependencies[name]))
    return name


def _passed(chunk: Array, place: tuple[slice, ...], check: Check, what: str) -> Array:
    chunk = unmasked(chunk, what, _UNMASK)
    check(chunk, what, place[0].start)
    return chunk


_UNMASK = "drop or impute the masked rows"


def finite(array: Array, what: str, start: float) -> None:
    """Neither NaN nor infinite, and with a square."""
    if _is_plainly_finite(array):
        return
    low, high = _extremes(array, missing=False)
    if not (np.isfinite(low) and np.isfinite(high)):
        bad = ~array_namespace(array).isfinite(array)
        raise _refused(array, bad, f"{what} must be finite", start, "drop or impute that row")
    _check_size(array, what, start, low, high)


def finite_or_missing(array: Array, what: str, start: float) -> None:
    """NaN, or else finite and with a square."""
    low, high = _extremes(array, missing=True)
    if np.isinf(low) or np.isinf(high):
        bad = array_namespace(array).isinf(array)
        raise _refused(array, bad, f"{what} must not be infinite", start, "drop that row")
    _check_size(array, what, start, low, high)


def latitude(array: Array, what: str, start: float) -> None:
    """First column between the poles, in radians: degrees would give angles without a meaning."""
    xp = array_namespace(array)
    beyond = xp.abs(array[:, 0]) > LARGEST_LATITUDE
    if bool(xp.any(beyond)):
        must = f"latitudes of the {what} must be radians between -pi/2 and pi/2"
        raise _refused(array[:, 0], beyond, must, start, "convert degrees with np.deg2rad")


def _positive(array: Array, what: str, start: float) -> None:
    finite(array, what, start)
    if not _extremes(array, missing=False, empty=1)[0] > 0:
        raise _refused(array, array <= 0, f"{what} must be positive", start, "correct that row")


def _weights(array: Array, what: str, start: float) -> None:
    finite(array, what, start)
    if _extremes(array, missing=False)[0] < 0:
        raise _refused(array, array < 0, f"{what} must be non-negative", start, "0 takes a row out")


def fits(array: Array, what: str, start: float, *, dtype: Any) -> None:
    """Not too large for a dtype, in which a finite number would become infinite."""
    xp = array_namespace(array)
    most = float(xp.finfo(dtype).max)
    low, high = _extremes(array, missing=False)
    if -most <= low and high <= most:
        return
    too_large = xp.isfinite(array) & (xp.abs(array) > most)
    if bool(xp.any(too_large)):
        must = f"{what} must fit {dtype}, the dtype of the queries (at most {most:g})"
        raise _refused(array, too_large, must, start, "give the queries in float64")


CHECKS: Mapping[str, Check] = {
    "values": finite,
    "bandwidth": _positive,
    "sample_weight": _weights,
    "ids": finite,
    "time": finite,
}
"""What the attributes that ride with the rows must be."""


def _is_plainly_finite(array: Array) -> bool:
    """Whether one quick product says so; False says nothing."""
    if not (isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.itemsize <= 8):
        return False
    if not array.flags.c_contiguous:
        return False
    flat = array.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(flat @ flat) <= LARGEST * LARGEST


def _extremes(array: Array, *, missing: bool, empty: float = 0) -> tuple[Any, Any]:
    """Least and largest number: NaN and infinity show in them, and they need no second array."""
    if 0 in array.shape:
        return empty, empty
    if missing and is_numpy_array(array):  # these two pass over NaN
        return np.fmin.reduce(array, axis=None), np.fmax.reduce(array, axis=None)
    xp = array_namespace(array)
    if missing:
        array = xp.where(xp.isnan(array), xp.zeros_like(array), array)
    return _number(xp.min(array)), _number(xp.max(array))


def _number(least_or_largest: Any) -> Any:
    """A NumPy scalar as it is (long doubles exceed float), one of another library as a float."""
    is_numpy = isinstance(least_or_largest, np.generic)
    return least_or_largest if is_numpy else float(least_or_largest)


def _check_size(array: Array, what: str, start: float, low: Any, high: Any) -> None:
    if max(-float(low), float(high)) > LARGEST:
        bad = array_namespace(array).abs(array) > LARGEST
        must = f"{what} must be at most {LARGEST:g} in size, or squares overflow"
        raise _refused(array, bad, must, start, "change the units")


def _refused(array: Array, bad: Array, must: str, start: float, advice: str) -> InputError:
    """An error that names the first bad number and its row, as far as that is known."""
    xp = array_namespace(array)
    first = int(xp.argmax(xp.astype(xp.reshape(bad, (-1,)), xp.uint8)))
    row, column = divmod(first, array.shape[1] if array.ndim == 2 else 1)
    value = array[row, column] if array.ndim == 2 else array[row]
    place = f"row {row} of its chunk" if np.isnan(start) else f"row {int(start) + row}"
    return InputError(f"{must}, got {value!s} in {place}; {advice}")


def is_floating(array: Array) -> bool:
    """Whether an array holds floating-point numbers, of whatever library it is."""
    kind = getattr(array.dtype, "kind", None)
    if kind is not None:
        return bool(kind == "f")
    return bool(array_namespace(array).isdtype(array.dtype, "real floating"))
