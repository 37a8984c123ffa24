"""What callers hand over: queries and keys with per-row attributes, checked at the door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_dask_array, is_numpy_array

from locpipe.blocks import Array
from locpipe.errors import InputError

__all__ = ["Keys", "Queries", "as_keys", "as_queries", "result_dtype"]


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries with attributes that ride with the rows.

    Parameters
    ----------
    data : array (n_queries, n_features), or (n_queries,) for one feature
    bandwidth : array (n_queries,), optional
        Factor on the kernel's bandwidth per query; ``Gaussian()`` has bandwidth 1, so there
        it is the bandwidth itself (feature units).
    ids, time : arrays (n_queries,), optional
        Identity and position of each row, for masks; default: its index.
    values : array (n_queries, n_outputs), optional
        Current values, for kernels that look at values too (bilateral).
    """

    data: Array
    bandwidth: Array | None = None
    ids: Array | None = None
    time: Array | None = None
    values: Array | None = None


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys with attributes that ride with the rows.

    Parameters
    ----------
    data : array (n_keys, n_features), or (n_keys,) for one feature
    values : array (n_keys, n_outputs) or (n_keys,), optional
    sample_weight : array (n_keys,), optional
        Non-negative weights; 0 takes a key out.
    bandwidth : array (n_keys,), optional
        Factor on the kernel's bandwidth per key, as in `Queries`.
    ids, time : arrays (n_keys,), optional
        As in `Queries`.
    """

    data: Array
    values: Array | None = None
    sample_weight: Array | None = None
    bandwidth: Array | None = None
    ids: Array | None = None
    time: Array | None = None


LARGEST = 1e150
"""Numbers up to this size have squares and sums of squares within float64."""


def as_queries(queries: Any, *, allow_missing: bool = False) -> Queries:
    """Checked queries with 2-d floating data; NaN in it only where `allow_missing`."""
    queries = queries if isinstance(queries, Queries) else Queries(queries)
    return Queries(**_checked_attributes(queries, "queries", allow_missing))


def as_keys(
    keys: Any,
    values: Any = None,
    sample_weight: Any = None,
    *,
    allow_missing: bool = False,
    look: bool = True,
) -> Keys:
    """Checked keys with 2-d floating data; attributes given twice are refused.

    `look` at what is in Dask arrays, when it is computed; False: it has been looked at.
    """
    keys = keys if isinstance(keys, Keys) else Keys(keys)
    given = {f.name: getattr(keys, f.name) for f in fields(Keys)}
    for name, extra in (("values", values), ("sample_weight", sample_weight)):
        if extra is not None and given[name] is not None:
            raise InputError(f"{name} came both in lp.Keys and as an argument; give it once")
        given[name] = given[name] if extra is None else extra
    return Keys(**_checked_attributes(Keys(**given), "keys", allow_missing, look))


def result_dtype(queries: Queries) -> Any:
    """Dtype of results: that of the queries' data, floating since they were checked."""
    return queries.data.dtype


def _checked_attributes(
    rows: Queries | Keys, what: str, allow_missing: bool, look: bool = True
) -> Mapping[str, Any]:
    check_data = _not_infinite if allow_missing else _finite
    data = _apply(check_data, _as_matrix(rows.data, what), what, look)
    checked: dict[str, Any] = {"data": data}
    for f in fields(rows):
        array = getattr(rows, f.name)
        if f.name == "data" or array is None:
            continue
        array = _as_array(array, f"{f.name} of the {what}")
        _check_rows(array, data, f.name, what)
        check = _CHECKS.get(f.name)
        checked[f.name] = (
            array if check is None else _apply(check, array, f"{f.name} of the {what}", look)
        )
    return checked


def _as_array(array: Any, what: str) -> Array:
    """An array of its own library, or NumPy; numbers only; integers become float64 except ids."""
    array = array if is_array_api_obj(array) else _from_sequence(array, what)
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.getmaskarray(array).any():
            raise InputError(f"{what} must not be masked; drop or impute the masked rows")
        array = array.data
    if getattr(array.dtype, "kind", "f") not in "fiub":
        raise InputError(f"{what} must be numbers, got dtype {array.dtype}; convert them first")
    return array


def _from_sequence(rows: Any, what: str) -> Array:
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise InputError(f"{what} must be rows of equal length, got a ragged sequence") from error


def _as_matrix(data: Any, what: str) -> Array:
    data = _as_array(data, what)
    if data.ndim not in (1, 2):
        raise InputError(
            f"{what} must be (n_rows, n_features), got {data.ndim} dimensions; reshape them"
        )
    data = data[:, None] if data.ndim == 1 else data
    if data.shape[1] == 0:
        raise InputError(f"{what} must have at least one feature, got shape {data.shape}")
    if is_dask_array(data) and data.numblocks[1] > 1:
        data = data.rechunk({1: -1})
    return _as_floating(data)


def _as_floating(array: Array) -> Array:
    return array if getattr(array.dtype, "kind", "f") == "f" else array.astype(np.float64)


def _check_rows(array: Array, data: Array, name: str, what: str) -> None:
    allowed = (1, 2) if name == "values" else (1,)
    if array.ndim not in allowed:
        raise InputError(
            f"{name} of the {what} must be {' or '.join(f'{n}-d' for n in allowed)}, "
            f"got {array.ndim} dimensions"
        )
    n_rows, n_data = array.shape[0], data.shape[0]
    known = not (np.isnan(n_rows) or np.isnan(n_data))
    if known and n_rows != n_data:
        raise InputError(f"{name} must have one row per row of the {what} ({n_data}), got {n_rows}")


def _apply(check: Callable[[Array, str], Array], array: Array, what: str, look: bool) -> Array:
    """Check now what is in memory, and inside the task what is lazy, if it is to be looked at."""
    if is_dask_array(array):
        if not look:
            return array
        lazy: Any = array
        return lazy.map_blocks(check, f"a chunk of the {what}", dtype=lazy.dtype, meta=lazy._meta)
    return check(array, what)


def _finite(array: Array, what: str) -> Array:
    if not is_numpy_array(array):
        return array
    # NaN and infinity show in the extremes, which need no second array of the size of the first.
    low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise InputError(
            f"{what} must be finite, got NaN or infinity in row {row}; drop or impute those rows"
        )
    if max(-low, high) > LARGEST:
        raise InputError(
            f"{what} must be at most {LARGEST:g} in size, or squares overflow; change the units"
        )
    return array


def _not_infinite(array: Array, what: str) -> Array:
    if is_numpy_array(array) and np.isinf(array).any():
        row = int(np.argwhere(np.isinf(array))[0][0])
        raise InputError(f"{what} must not be infinite, got infinity in row {row}; drop that row")
    return array


def _positive(array: Array, what: str) -> Array:
    array, xp = _finite(_as_floating(array), what), array_namespace(array)
    if not bool(xp.all(array > 0)):
        raise InputError(f"{what} must be positive, got {float(xp.min(array))}")
    return array


def _weights(array: Array, what: str) -> Array:
    array, xp = _finite(_as_floating(array), what), array_namespace(array)
    if bool(xp.any(array < 0)):
        raise InputError(f"{what} must be non-negative, got {float(xp.min(array))}")
    return array


def _values(array: Array, what: str) -> Array:
    return _finite(_as_floating(array), what)


_CHECKS: Mapping[str, Callable[[Array, str], Array]] = {
    "values": _values,
    "bandwidth": _positive,
    "sample_weight": _weights,
}
