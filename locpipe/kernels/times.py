"""Whole numbers compared and subtracted without loss: times in nanoseconds, unsigned ids.

A difference of small or unsigned integers wraps, and float64 holds 53 bits of 64.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from array_api_compat import array_namespace

from locpipe.blocks import Array
from locpipe.errors import InputError

__all__ = ["are_whole", "around_origins", "at_most"]

_LEAST, _MOST = -(2**63), 2**63 - 1
_SPAN = _MOST - _LEAST
_GROUP_BITS = 52
"""Times of one group differ by less than this many bits, which float64 holds."""
_LOW_BITS = 32


def are_whole(*arrays: Array) -> bool:
    """Whether all arrays hold integers or bools."""
    xp = array_namespace(*arrays)
    return all(xp.isdtype(array.dtype, ("bool", "integral")) for array in arrays)


def at_most(s: Array, t: Array, offset: float) -> Array:
    """Whether ``s_j <= t_i + offset``, bool (n_t, n_s); exact for whole numbers of any type."""
    xp = array_namespace(s, t)
    if not are_whole(s, t):
        s, t = (xp.astype(array, xp.float64) for array in (s, t))
        return s[None, :] - t[:, None] <= offset
    s, t = _as_int64(s, t)
    # The sum is formed in two halves, after what would take it out of int64 is cut off.
    shift = max(-_SPAN, min(_SPAN, floor(offset)))
    low, high = max(_LEAST, _LEAST - shift), min(_MOST, _MOST - shift)
    limit = xp.clip(t, low, high) + shift // 2 + (shift - shift // 2)
    allowed = s[None, :] <= limit[:, None]
    return allowed if low == _LEAST else allowed & (t >= low)[:, None]


def around_origins(t: Array, s: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Groups of whole numbers `t`, and all of `s`, as float64 differences from a common origin.

    Yields ``(rows, t[rows] - origin, s - origin)`` with a bool mask `rows`.  The origin follows
    from each number alone, so no result depends on where a block ends.  Differences of the two are
    exact up to 2**52, and right to the last place beyond.
    """
    t, s = _as_int64(t, s)
    xp = array_namespace(t)
    group = t >> _GROUP_BITS
    for origin in map(int, xp.unique_values(group)):
        rows = group == origin
        yield rows, _from_origin(t[rows], origin), _from_origin(s, origin)


def _from_origin(x: Array, origin: int) -> Array:
    xp = array_namespace(x)
    high = (x >> _LOW_BITS) - (origin << _GROUP_BITS - _LOW_BITS)
    low = x & (2**_LOW_BITS - 1)
    return xp.astype(high, xp.float64) * 2.0**_LOW_BITS + xp.astype(low, xp.float64)


def _as_int64(a: Array, b: Array) -> tuple[Array, Array]:
    """Both as int64, in the same order and at the same differences."""
    xp = array_namespace(a, b)
    if a.dtype == b.dtype == xp.uint64:
        return _centred(a), _centred(b)
    return _signed(a), _signed(b)


def _centred(a: Array) -> Array:
    """``a - 2**63`` of uint64."""
    xp = array_namespace(a)
    low = xp.astype(a & _MOST, xp.int64)
    return xp.where(a > _MOST, low, low + _LEAST)


def _signed(a: Array) -> Array:
    xp = array_namespace(a)
    if a.dtype == xp.uint64 and a.shape[0] and int(xp.max(a)) > _MOST:
        raise InputError(
            "times of queries and keys must both be uint64 where some exceed 2**63, got uint64 on "
            "one side only; convert the other"
        )
    return xp.astype(a, xp.int64)
