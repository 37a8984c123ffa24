"""What callers hand over: queries and keys with per-row attributes, checked at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj, is_dask_array

from locpipe.blocks import Array
from locpipe.errors import InputError
from locpipe.graph.checks import (
    CHECKS,
    apply_check,
    finite,
    finite_or_missing,
    fits,
    is_floating,
    latitude,
)
from locpipe.pairs import refuse_stored

__all__ = ["Keys", "Queries", "as_keys", "as_queries", "as_result", "has_dask", "on_sphere"]


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


def has_dask(rows: Any) -> bool:
    """Whether rows have an array that is a Dask array; a source has none."""
    return isinstance(rows, Queries | Keys) and any(map(is_dask_array, vars(rows).values()))


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


def on_sphere(rows: Any) -> Any:
    """The same rows, if their first feature is a latitude; those of a `KeySource` are taken so."""
    if not isinstance(rows, Queries | Keys):
        return rows
    what = "queries" if isinstance(rows, Queries) else "keys"
    return replace(rows, data=apply_check(latitude, rows.data, what))


def as_result(result: Array, queries: Queries) -> Array:
    """A float64 result in the dtype of the queries' data, floating since they were checked.

    Raises
    ------
    InputError
        If a finite number is too large for it; where the result is lazy, when it is computed.
    """
    xp, dtype = array_namespace(result), queries.data.dtype
    if xp.finfo(dtype).bits < 64:
        result = apply_check(partial(fits, dtype=dtype), result, "results")
    return xp.astype(result, dtype, copy=False)


def _checked_attributes(
    rows: Queries | Keys, what: str, allow_missing: bool, look: bool = True
) -> Mapping[str, Any]:
    checks = {**CHECKS, "data": finite_or_missing if allow_missing else finite}
    checked: dict[str, Any] = {}
    for f in fields(rows):
        array = getattr(rows, f.name)
        if f.name == "data":
            name, array = what, _as_matrix(array, what)
        elif array is None:
            continue
        else:
            name = f"{f.name} of the {what}"
            array = _as_attribute(array, f.name, name)
            _check_rows(array, checked["data"], f.name, what)
        looked_at = look or not is_dask_array(array)
        checked[f.name] = apply_check(checks[f.name], array, name) if looked_at else array
    return checked


def _as_attribute(array: Any, name: str, what: str) -> Array:
    """Numbers as they are used: ids and times compared, weights and bandwidths under a log."""
    array = _as_array(array, what)
    if name in ("ids", "time"):
        return array
    return _as_floating(array) if name == "values" else _as_float64(array)


def _as_array(array: Any, what: str) -> Array:
    """A plain array of its own library, or NumPy; numbers only."""
    _refuse_sparse(array, what)
    refuse_stored(array, what, "ZarrKeys (for keys)")
    array = array if is_array_api_obj(array) else _from_sequence(array, what)
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.getmaskarray(array).any():
            raise InputError(f"{what} must not be masked; drop or impute the masked rows")
        array = array.data
    if not _holds_numbers(array):
        raise InputError(f"{what} must be numbers, got dtype {array.dtype}; convert them first")
    return np.asarray(array) if isinstance(array, np.ndarray) else array


def _refuse_sparse(array: Any, what: str) -> None:
    kind = type(getattr(array, "_meta", array))  # a Dask array tells what its chunks are
    if kind.__module__.startswith(("scipy.sparse", "cupyx.scipy.sparse", "sparse.")):
        raise InputError(
            f"{what} must be a dense array, got a sparse {kind.__name__}; make it dense, in "
            "chunks of a Dask array if it is large"
        )


def _holds_numbers(array: Array) -> bool:
    kind = getattr(array.dtype, "kind", None)
    if kind is not None:
        return kind in "fiub"
    numbers = ("bool", "integral", "real floating")
    return bool(array_namespace(array).isdtype(array.dtype, numbers))


def _from_sequence(rows: Any, what: str) -> Array:
    kind = type(rows).__name__
    if getattr(rows, "__dask_graph__", lambda: None)() is not None:
        raise InputError(
            f"{what} must be a NumPy or Dask array, got a lazy {kind}; take the Dask array in it"
        )
    try:
        array = np.asarray(rows)
    except ValueError as error:
        raise InputError(f"{what} must be rows of equal length, got a ragged sequence") from error
    if array.dtype == object and array.ndim == 0:
        raise InputError(f"{what} must be an array of numbers, got {kind}; convert it first")
    return array


def _as_matrix(data: Any, what: str) -> Array:
    data = _as_array(data, what)
    if data.ndim not in (1, 2):
        raise InputError(
            f"{what} must be (n_rows, n_features), got {data.ndim} dimensions; reshape them"
        )
    data = data[:, None] if data.ndim == 1 else data
    if data.shape[1] == 0:
        raise InputError(f"{what} must have at least one feature, got shape {data.shape}")
    return _as_floating(_whole_rows(data) if is_dask_array(data) else data)


def _whole_rows(data: Any) -> Array:
    """All columns in one chunk; and a single row too, which Dask would broadcast over chunks."""
    whole = {0: -1, 1: -1} if data.shape[0] == 1 else {1: -1}
    needed = any(data.numblocks[axis] > 1 for axis in whole)
    rechunked: Array = data.rechunk(whole) if needed else data
    return rechunked


def _as_floating(array: Array) -> Array:
    return array if is_floating(array) else _as_float64(array)


def _as_float64(array: Array) -> Array:
    xp = array_namespace(array)
    return xp.astype(array, xp.float64, copy=False)


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
