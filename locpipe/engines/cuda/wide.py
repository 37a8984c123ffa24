"""Many features, dot products, masks: a matrix product, one pass over its tile, another product.

Products are in float64 unless the tolerance allows float32: the tensor cores of data-centre cards
multiply float64 as fast as plain cores multiply float32.  TF32 is never used.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import floor, sqrt
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_ids, row_slices, row_times
from locpipe.engines.cuda import device
from locpipe.engines.cuda.device import nullable
from locpipe.engines.cuda.profiles import DOT, Profile
from locpipe.engines.cuda.states import Sums, key_logs, merged
from locpipe.engines.dense import concat_rows, take_rows
from locpipe.engines.parts import Parts
from locpipe.kernels.dot_product import DotProduct, check_products
from locpipe.kernels.masks import Causal, ExcludeSelf, Mask, Window
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.log_mass import LogMass

__all__ = ["MASKS", "TIMED", "fold", "shipped", "tile_bytes"]

MASKS: tuple[type[Mask], ...] = (ExcludeSelf, Causal, Window)
TIMED: tuple[type[Mask], ...] = (Causal, Window)
"""Masks of times; served where times are the indices of the rows."""

TILE_QUERIES, TILE_KEYS = 4096, 2048
_THREADS, _SIDE = 128, 16
_ALWAYS, _NEVER = 2**62, -(2**62)

_UNITS = 64.0
"""Errors of a float32 weight and its share of the sums in units of 2^-24, distance aside."""
_SHARE = 0.1
"""Part of the tolerance that a product in float64 may use up."""


def tile_bytes(n_features: int, n_outputs: int) -> int:
    """The tile, its rows and its sums in float64."""
    rows = (TILE_QUERIES + TILE_KEYS) * (n_features + n_outputs + 4)
    return 8 * (TILE_QUERIES * TILE_KEYS + 2 * rows)


def shipped(number: int) -> list[str]:
    """All kernels of a profile that a fold may ask for, as name expressions."""
    single = number == DOT or Profile(number).product
    dtypes = ("float", "double") if single else ("double",)
    return ["squared_differences", *(f"tile_weights<{number}, {dtype}>" for dtype in dtypes)]


@dataclass(frozen=True, eq=False)
class _Fold:
    """What is the same for all tiles of a fold."""

    parts: Parts
    profile: Profile
    reduction: Reduction
    rtol: float

    @property
    def squares(self) -> bool:
        """Whether the moment is the sum of squared weights."""
        return isinstance(self.reduction, LogMass)


@dataclass(frozen=True, eq=False)
class _Tile:
    """Numbers of pairs (n, m), and what makes squared distances of them.

    With `norms` of queries and keys the entries are products of centred rows; `last` divides the
    distances.
    """

    entries: Array
    norms: tuple[Array | None, Array | None] = (None, None)
    last: float = 1.0


def fold(
    parts: Parts,
    profile: Profile,
    reduction: Reduction,
    state: Any,
    q: QueryBlock,
    k: KeyBlock,
    rtol: float,
) -> State:
    """`state` with the keys of a block folded in."""
    run = _Fold(parts, profile, reduction, rtol)
    pieces = []
    for rows in row_slices(q.n_rows, TILE_QUERIES):
        piece = take_rows(state, rows)
        for columns in row_slices(k.n_rows, TILE_KEYS):
            with np.errstate(over="ignore"):
                piece = _fold_tile(run, piece, q.rows(rows), k.rows(columns))
        pieces.append(piece)
    folded: State = concat_rows(pieces)
    return folded


def _fold_tile(run: _Fold, state: Any, q: QueryBlock, k: KeyBlock) -> State:
    logs = key_logs(run.parts, k)
    dot = isinstance(run.parts.core, DotProduct)
    tile = _products(run, q, k) if dot else _distances(run, q, k)
    sums = _weights(run, tile, q, k, logs.relative)
    if not run.squares:
        moment = tile.entries @ _as(k.values, tile.entries.dtype)
        sums = Sums(sums.shift, sums.mass, _as(moment, np.float64))
    return merged(run.parts, run.reduction, state, q, k, sums, logs.top)


def _products(run: _Fold, q: QueryBlock, k: KeyBlock) -> _Tile:
    """Scaled dot products."""
    xp = array_namespace(q.data)
    assert isinstance(run.parts.core, DotProduct)
    d = int(q.data.shape[1])
    scaled = run.parts.core.factor(d) * _as(q.data, np.float64)
    keys = _as(k.data, np.float64)
    # Rounding of a product of d terms; the reach of u^2 / 2 counts twice a product's.
    reach = 2.0 * sqrt(_largest_square(scaled) * _largest_square(keys))
    dtype = _product_dtype(run, q, k, d, reach) or np.float64
    entries = _as(scaled, dtype) @ xp.permute_dims(_as(keys, dtype), (1, 0))
    return _Tile(check_products(entries, scaled, keys))


def _distances(run: _Fold, q: QueryBlock, k: KeyBlock) -> _Tile:
    """Squared distances, by a product around the keys' centre where its error is small enough."""
    assert not isinstance(run.parts.core, DotProduct)
    xp, d = array_namespace(q.data), int(q.data.shape[1])
    h = run.parts.core.scale(d)
    x, y = _as(q.data, np.float64), _as(k.data, np.float64)
    rides = not (q.bandwidth is None and k.bandwidth is None)
    if run.profile.product and not rides:
        centre, scale = xp.mean(y, axis=0), xp.asarray(h, dtype=xp.float64)
        x0, y0 = (x - centre) / scale, (y - centre) / scale
        reach = _largest_square(x0) + _largest_square(y0)
        dtype = _product_dtype(run, q, k, d, reach)
        if dtype is not None:
            norms = tuple(_as(xp.sum(rows * rows, axis=1), dtype) for rows in (x0, y0))
            entries = _as(x0, dtype) @ xp.permute_dims(_as(y0, dtype), (1, 0))
            return _Tile(entries, (norms[0], norms[1]))
    # Bandwidths of rows divide last, the kernel's with them: what they undo must not overflow.
    last = max(h) if rides else 1.0
    scale = xp.asarray([x / last for x in h], dtype=xp.float64)
    return _Tile(_squared_differences(x, y, scale), last=last)


def _product_dtype(run: _Fold, q: QueryBlock, k: KeyBlock, d: int, reach: float) -> Any:
    """The narrowest dtype in which a product keeps the tolerance; None where none does.

    A squared distance by products is wrong by at most ``2 d eps reach`` (Higham 2002, eq. 3.5),
    the log weight by half of that at most.
    """
    xp = array_namespace(q.data)
    given = [q.data, k.data] if run.squares else [q.data, k.data, k.values]
    single = k.log_sample_weight is None and all(x.dtype == xp.float32 for x in given)
    if single and not _tensor_float() and 2.0**-24 * (d * reach + _UNITS) <= run.rtol:
        return np.float32
    return np.float64 if 2.0**-53 * d * reach <= _SHARE * run.rtol else None


def _tensor_float() -> bool:
    """Whether the environment lets cuBLAS round float32 to 10 bits."""
    switches = ("CUPY_TF32", "NVIDIA_TF32_OVERRIDE")
    return any(os.environ.get(name, "0") not in ("", "0") for name in switches)


def _largest_square(rows: Array) -> float:
    xp = array_namespace(rows)
    return float(xp.max(xp.sum(rows * rows, axis=1)))


def _squared_differences(x: Array, y: Array, scale: Array) -> Array:
    xp = array_namespace(x)
    (n, d), m = x.shape, y.shape[0]
    entries = xp.empty((n, m), dtype=xp.float64)
    grid = -(-m // _SIDE), -(-n // _SIDE)
    sizes = np.int32(n), np.int32(m), np.int32(d)
    arguments = (x, y, scale, *sizes, entries)
    device.launch("wide.cu", "squared_differences", grid, _SIDE * _SIDE, arguments)
    return entries


def _weights(run: _Fold, tile: _Tile, q: QueryBlock, k: KeyBlock, key_log: Any) -> Sums:
    """Turn the tile's entries into weights, in place."""
    xp = array_namespace(q.data)
    n, m = tile.entries.shape
    shift, mass, squares = (xp.empty(n, dtype=xp.float64) for _ in range(3))
    arguments = (
        *(tile.entries, *map(nullable, tile.norms), *_bandwidths(run, q, k), nullable(key_log)),
        *_identities(run.parts.masks, q, k),
        *_times(run.parts.masks, q, k),
        *(np.float64(tile.last), np.float64(run.profile.nu), np.float64(run.profile.power)),
        *(np.int32(m), shift, mass, squares),
    )
    dtype = "float" if tile.entries.dtype == xp.float32 else "double"
    name = f"tile_weights<{run.profile.number}, {dtype}>"
    device.launch("wide.cu", name, (n, 1), _THREADS, arguments)
    return Sums(shift, mass, squares[:, None])


def _bandwidths(run: _Fold, q: QueryBlock, k: KeyBlock) -> tuple[Any, Any]:
    """Bandwidths of rows, which dot products have no use for."""
    rows = (None, None) if run.profile.number == DOT else (q.bandwidth, k.bandwidth)
    own, other = (None if h is None else _as(h, np.float64) for h in rows)
    return nullable(own), nullable(other)


def _identities(masks: tuple[Mask, ...], q: QueryBlock, k: KeyBlock) -> tuple[Any, Any]:
    if not any(isinstance(mask, ExcludeSelf) for mask in masks):
        return nullable(None), nullable(None)
    return _as(row_ids(q), np.int64), _as(row_ids(k), np.int64)


def _times(masks: tuple[Mask, ...], q: QueryBlock, k: KeyBlock) -> tuple[Any, Any, Any]:
    """The oldest and the newest time that each query sees, and the time of the first key."""
    timed = [mask for mask in masks if isinstance(mask, TIMED)]
    if not timed:
        return nullable(None), nullable(None), np.int64(0)
    xp, t = array_namespace(q.data), row_times(q)
    oldest, newest = xp.full_like(t, _NEVER), xp.full_like(t, _ALWAYS)
    for mask in timed:
        if isinstance(mask, Causal):
            newest = xp.minimum(newest, t + _whole(mask.offset))
        elif isinstance(mask, Window):
            newest = xp.minimum(newest, t)
            oldest = xp.maximum(oldest, t + (_whole(-mask.width) + 1))
    return oldest, newest, np.int64(row_times(k)[0])


def _whole(offset: float) -> int:
    """The offset rounded down, within what sums with an index hold."""
    return int(max(_NEVER, min(_ALWAYS, floor(offset))))


def _as(array: Array, dtype: Any) -> Array:
    """Contiguous in this dtype."""
    xp = array_namespace(array)
    return xp.ascontiguousarray(xp.asarray(array, dtype=dtype))
