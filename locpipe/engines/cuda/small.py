"""Few features: one kernel computes distances, weights and sums; no pair is ever stored.

float32 first where the tolerance allows it.  Each row then says whether its error stayed within
the tolerance ("credit", see small.cu); rows that did not, such as outliers whose weights
underflow, are summed again in float64 at their largest log weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, frexp
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_slices
from locpipe.engines.cuda import device
from locpipe.engines.cuda.device import nullable
from locpipe.engines.cuda.profiles import DOT, UNIFORM, Profile
from locpipe.engines.cuda.states import KeyLogs, Sums, concat_sums, key_logs, merged
from locpipe.engines.parts import Parts
from locpipe.kernels.radial import Radial
from locpipe.reductions.base import Reduction, State, finite
from locpipe.reductions.log_mass import LogMass

__all__ = ["MAX_FEATURES", "MAX_OUTPUTS", "fold", "shipped", "suits", "tile_bytes"]

MAX_FEATURES = 10
MAX_OUTPUTS = 8
"""With more outputs the weights are better stored and multiplied by the values in one product."""

# What is compiled: data is padded to the next of each.
_FEATURES = {True: (1, 2, 3, 4, 6, 10), False: (3, 10)}
_VALUES = {True: (1, 2, 4), False: (1, 4)}

_QUERIES_OF_BLOCK, _THREADS, _TILE = 256, 128, 128
_BLOCKS = 1024
"""Blocks to aim at: a device of 132 processors runs some thousand at a time."""
_MAX_QUERIES = 2**18

_EPS = 2.0**-24
_FLOAT_MIN = 1.2e-38
_UNITS, _RATE = 4.0, 5.0
"""Errors in units of 2^-24: of a weight and its share of a sum at distance 0 (exp: 2, sum: 2), and
per unit of the log weight (roundings of a distance: 2 for the difference, 1 each for the scale, the
products and the sum, as a root of squares times two)."""
_LEAST_RTOL = 5e-7


def suits(parts: Parts, profile: Profile, reduction: Reduction, n_features: int) -> bool:
    """Whether the fold is one for registers."""
    n_outputs = getattr(reduction, "n_outputs", 0)
    few = n_features <= MAX_FEATURES and n_outputs <= MAX_OUTPUTS
    return few and profile.number != DOT and not parts.masks


def tile_bytes(n_features: int, n_outputs: int) -> int:
    """Sums per query of one slice, and the keys in both precisions."""
    return _MAX_QUERIES * 8 * (n_outputs + n_features + 4)


def shipped(number: int) -> list[str]:
    """All kernels of a profile that a fold may ask for, as name expressions."""
    names = [f"row_max<{number}, {d}>" for d in _features(number, "double")]
    for dtype in ("double",) if number == UNIFORM else ("float", "double"):
        for d in _features(number, dtype):
            widths = (0, *_VALUES[_common(number, dtype)])
            names += [f"row_sums<{number}, {d}, {v}, {dtype}>" for v in widths]
    return names


def _common(number: int, dtype: str) -> bool:
    """Whether more sizes are compiled: for the Gaussian in float32, the common case."""
    return number == 0 and dtype == "float"


def _features(number: int, dtype: str) -> tuple[int, ...]:
    return _FEATURES[_common(number, dtype)]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Contiguous coordinates and bandwidths in one dtype."""

    data: Array
    bandwidth: Array | None


@dataclass(frozen=True, eq=False)
class _Pass:
    """All that one precision needs to sum over a block of keys."""

    profile: Profile
    dtype: str
    keys: _Rows
    weights: Array | None
    values: Array | None
    scale: Array
    last: float
    divides: bool
    units: tuple[float, ...] = ()
    """What the values were divided by, per column; 0 for columns of zeros."""

    @property
    def live(self) -> list[bool]:
        """Which columns of the values have other numbers than 0."""
        return [unit > 0 for unit in self.units] or [False] * self.n_outputs

    @property
    def n_outputs(self) -> int:
        """Columns of the values."""
        return 0 if self.values is None else int(self.values.shape[1])

    @property
    def n_features(self) -> int:
        """Features that the kernels are compiled for."""
        d = self.keys.data.shape[1]
        return next(n for n in _features(self.profile.number, self.dtype) if n >= d)


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
    logs = key_logs(parts, k)
    values = None if isinstance(reduction, LogMass) else k.values
    exact = _exact_pass(parts, profile, q, k, logs, values)
    quick = _quick_pass(exact, q, k, rtol)
    sums = []
    for rows in row_slices(q.n_rows, _MAX_QUERIES):
        part = q.rows(rows)
        sums.append(_exact(exact, part) if quick is None else _quick(quick, exact, part, rtol))
    return merged(parts, reduction, state, q, k, concat_sums(sums), logs.top)


def _exact_pass(
    parts: Parts, profile: Profile, q: QueryBlock, k: KeyBlock, logs: KeyLogs, values: Any
) -> _Pass:
    core, d = parts.core, int(k.data.shape[1])
    assert isinstance(core, Radial)
    h = core.scale(d)
    divides = not (q.bandwidth is None and k.bandwidth is None)
    # Bandwidths of rows divide last, the kernel's with them: what they undo must not overflow.
    last = max(h) if divides else 1.0
    h = tuple(x / last for x in h) + (1.0,) * (MAX_FEATURES - d)
    scale = h if profile.number == UNIFORM else tuple(1.0 / x / x for x in h)
    xp = array_namespace(k.data)
    keys = _Rows(_as(k.data, "float64"), _as(k.bandwidth, "float64"))
    scales = xp.asarray(scale, dtype=xp.float64)
    return _Pass(
        profile, "double", keys, logs.relative, _as(values, "float64"), scales, last, divides
    )


def _quick_pass(exact: _Pass, q: QueryBlock, k: KeyBlock, rtol: float) -> _Pass | None:
    """The same in float32; None where it has not the range or could not keep the tolerance."""
    xp = array_namespace(k.data)
    single = q.data.dtype == k.data.dtype == xp.float32 and rtol >= _LEAST_RTOL
    if not single or exact.divides or not exact.profile.single:
        return None
    scale = exact.scale[: k.data.shape[1]]
    values = exact.values
    if float(xp.max(scale)) > 1e20 or float(xp.min(scale)) < 1e-20 or not _narrow(values):
        return None
    weights = None if exact.weights is None else _as(xp.exp(exact.weights), "float32")
    units = () if values is None else _units(values)
    if values is not None:
        values = _as(values / _divisors(xp, units), "float32")
    keys = _Rows(_as(k.data, "float32"), None)
    scales = _as(exact.scale, "float32")
    return _Pass(exact.profile, "float", keys, weights, values, scales, 1.0, False, units)


def _narrow(values: Array | None) -> bool:
    """Whether no value is so small beside the largest of its column that float32 would lose it."""
    if values is None:
        return True
    xp = array_namespace(values)
    size = xp.abs(values)
    largest = xp.max(size, axis=0)
    return not bool(xp.any((size > 0) & (size < largest * 2.0**-60)))


def _units(values: Array) -> tuple[float, ...]:
    """A power of two per column that brings the largest value to about 1; 0 of zeros."""
    xp = array_namespace(values)
    largest = [float(x) for x in xp.max(xp.abs(values), axis=0)]
    return tuple(2.0 ** frexp(x)[1] if x > 0 else 0.0 for x in largest)


def _divisors(xp: Any, units: tuple[float, ...]) -> Array:
    return xp.asarray([unit or 1.0 for unit in units], dtype=xp.float64)


def _quick(quick: _Pass, exact: _Pass, q: QueryBlock, rtol: float) -> Sums:
    """Sums by float32, with the rows that lack credit summed again."""
    xp = array_namespace(q.data)
    rows = _Rows(_as(q.data, "float32"), None)
    allowance = rtol / _EPS - _UNITS
    mass, moment, credit = _sums(quick, rows, None, allowance)
    if quick.units:
        moment = moment * _divisors(xp, quick.units)
    sums = Sums(xp.zeros_like(mass), mass, moment)
    # Weights below the smallest float are lost; this is where they could matter.
    least = quick.keys.data.shape[0] * _FLOAT_MIN / rtol * allowance
    again = ~(credit >= least)
    if bool(xp.any(again)):
        some = _exact(exact, q.chosen(again))
        for name in ("shift", "mass", "moment"):
            getattr(sums, name)[again] = getattr(some, name)
    return sums


def _exact(exact: _Pass, q: QueryBlock) -> Sums:
    """Sums in float64 at the largest log weight of each row."""
    rows = _Rows(_as(q.data, "float64"), _as(q.bandwidth, "float64"))
    shift = _largest(exact, rows)
    mass, moment, _ = _sums(exact, rows, finite(shift), 0.0)
    return Sums(shift, mass, moment)


def _largest(exact: _Pass, rows: _Rows) -> Array:
    xp = array_namespace(rows.data)
    n, m = rows.data.shape[0], exact.keys.data.shape[0]
    grid, share = _grid(n, m)
    largest = xp.empty((grid[1], n), dtype=xp.float64)
    arguments = (
        *(rows.data, exact.keys.data, nullable(rows.bandwidth), nullable(exact.keys.bandwidth)),
        *(nullable(exact.weights), exact.scale, *_shape(exact)),
        *(np.int32(n), np.int32(m), np.int32(rows.data.shape[1]), np.int32(share), largest),
    )
    name = f"row_max<{exact.profile.number}, {exact.n_features}>"
    device.launch("small.cu", name, grid, _THREADS, arguments)
    return xp.max(largest, axis=0)


def _sums(
    run: _Pass, rows: _Rows, shift: Array | None, allowance: float
) -> tuple[Array, Array, Array]:
    """Mass (n,), moment (n, outputs) and least credit (n,), a few columns of values at a time."""
    xp = array_namespace(rows.data)
    if run.values is None:
        return _columns(run, rows, shift, allowance, None, [True])
    widths = _VALUES[_common(run.profile.number, run.dtype)]
    found = []
    for columns in row_slices(run.values.shape[1], widths[-1]):
        values = run.values[:, columns]
        width = next(n for n in widths if n >= values.shape[1])
        padded = xp.zeros((values.shape[0], width), dtype=values.dtype)
        padded[:, : values.shape[1]] = values
        found.append(_columns(run, rows, shift, allowance, padded, run.live[columns]))
    masses, moments, least = zip(*found, strict=True)
    return masses[0], xp.concat(moments, axis=1), xp.min(xp.stack(least), axis=0)


def _columns(
    run: _Pass, rows: _Rows, shift: Any, allowance: float, values: Any, live: Sequence[bool]
) -> tuple[Array, Array, Array]:
    """The same for as many columns as one kernel takes; `live` ones have a credit that counts."""
    xp = array_namespace(rows.data)
    n, m = rows.data.shape[0], run.keys.data.shape[0]
    width = 0 if values is None else values.shape[1]
    grid, share = _grid(n, m)
    mass = xp.empty((grid[1], n), dtype=xp.float64)
    moment = xp.empty((grid[1], n, max(width, 1)), dtype=xp.float64)
    credit = xp.zeros((grid[1], n, max(width, 1) + 1), dtype=xp.float32)
    arguments = (
        *(rows.data, run.keys.data, nullable(values)),
        *(nullable(rows.bandwidth), nullable(run.keys.bandwidth), nullable(run.weights)),
        *(nullable(shift), run.scale, *_shape(run), np.float64(allowance), np.float64(_RATE)),
        *(np.int32(n), np.int32(m), np.int32(rows.data.shape[1]), np.int32(share)),
        *(mass, moment, credit),
    )
    name = f"row_sums<{run.profile.number}, {run.n_features}, {width}, {run.dtype}>"
    device.launch("small.cu", name, grid, _THREADS, arguments)
    total = xp.sum(credit, axis=0)
    counted = [0, *(i + 1 for i, alive in enumerate(live) if alive)]
    least = xp.min(xp.stack([total[:, i] for i in counted]), axis=0)
    return xp.sum(mass, axis=0), xp.sum(moment, axis=0)[:, : len(live)], least


def _shape(run: _Pass) -> tuple[Any, ...]:
    numbers = np.float64(run.profile.nu), np.float64(run.profile.power)
    return np.float64(run.last), np.int32(run.divides), *numbers


def _grid(n_queries: int, n_keys: int) -> tuple[tuple[int, int], int]:
    """Blocks of queries and shares of the keys, and the keys of a share."""
    blocks = ceil(n_queries / _QUERIES_OF_BLOCK)
    shares = max(1, min(ceil(_BLOCKS / blocks), ceil(n_keys / (8 * _TILE))))
    share = ceil(n_keys / shares / _TILE) * _TILE
    return (blocks, ceil(n_keys / share)), share


def _as(array: Any, dtype: str) -> Any:
    """Contiguous in this dtype; None stays."""
    if array is None:
        return None
    xp = array_namespace(array)
    return xp.ascontiguousarray(xp.asarray(array, dtype=getattr(xp, dtype)))
