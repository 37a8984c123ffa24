"""Rows and leaves of keys, laid out as the sums take them.

In float32 coordinates are about the centre of the group of queries, in units of the scale.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from locpipe.engines.pruned.entry import inlined

__all__ = ["Found", "Keys", "Mask", "leaver", "load_keys", "load_out", "load_row"]

_FAR = 1e18
"""Coordinates end here in float32, so that squares of differences stay finite."""


class Keys(NamedTuple):
    """Keys of a `Forest`.

    Attributes
    ----------
    data : uint8 array (n_features, n bytes per number)
        As bytes, so that the walk is the same for all.
    values : float64 array (n_outputs, n)
    weight : float64 array (n,), or (1,) where all weights are the same
    """

    data: Any
    values: Any
    weight: Any


class Mask(NamedTuple):
    """Which keys rows must not meet; an empty tuple where there is none.

    Attributes
    ----------
    by_id : int64 array (n_keys,)
        As in `Forest`.
    spans : int64 array (n, 2)
        Where in `by_id` the keys lie that each row must not meet.
    """

    by_id: Any
    spans: Any


class Found(NamedTuple):
    """What the sums of rows are by now.

    Attributes
    ----------
    sums : float64 array (n, n_quantities)
        Sums so far.
    least : float64 array (n, n_quantities + 1)
        The same with sizes in place of values, and what a relative error of 1 in squared
        distances would do to the mass.
    """

    sums: Any
    least: Any


@inlined
def _centre(groups: Any, group: Any, j: Any, d: Any) -> Any:
    low, high = groups.boxes[group, j], groups.boxes[group, d + j]
    return low + 0.5 * (high - low)


@inlined
def load_row(groups: Any, group: Any, row: Any, rule: Any, single: Any, q: Any) -> None:
    """Begin with a row of the ordered queries."""
    for j in range(rule.scale.size):
        if single:
            placed = groups.data[row, j] - _centre(groups, group, j, rule.scale.size)
            q[0, j] = min(max(placed / rule.scale[j], -_FAR), _FAR)
        else:
            q[0, j] = groups.data[row, j]


@inlined
def load_keys(
    data: Any, start: Any, stop: Any, groups: Any, group: Any, rule: Any, single: Any, x: Any
) -> Any:
    """The keys of a leaf, filled up to the width that is returned."""
    n = stop - start
    width = (n + 63) // 64 * 64
    for j in range(rule.scale.size):
        if single:
            centre = _centre(groups, group, j, rule.scale.size)
            inverse = 1 / rule.scale[j]
            for i in range(n):
                x[j, i] = min(max((data[j, start + i] - centre) * inverse, -_FAR), _FAR)
        else:
            for i in range(n):
                x[j, i] = data[j, start + i]
        for i in range(n, width):
            x[j, i] = x[j, 0]
    return width


@inlined
def load_out(
    keys: Any, start: Any, stop: Any, factor: Any, size: Any, width: Any, out: Any
) -> None:
    """What their weights are multiplied by: nothing for those that fill up."""
    step = 1 if keys.weight.size > 1 else 0
    for i in range(start, stop):
        out[0, i - start] = factor * keys.weight[step * i]
    for j in range(1, size.size):
        inverse = 1 / size[j] if size[j] > 0 else 0.0
        for i in range(start, stop):
            out[j, i - start] = out[0, i - start] * (keys.values[j - 1, i] * inverse)
    for j in range(size.size):
        for i in range(stop - start, width):
            out[j, i] = 0


def leaver(masked: bool) -> Any:
    """What leaves keys out, where rows must not meet some."""
    return _leave_out if masked else _leave_none_out


@inlined
def _leave_none_out(mask: Any, start: Any, stop: Any, row: Any, weights: Any, nothing: Any) -> Any:
    return False


@inlined
def _leave_out(mask: Any, start: Any, stop: Any, row: Any, weights: Any, nothing: Any) -> Any:
    """Set the weights of keys that the row must not meet to `nothing`; whether there are any."""
    last = mask.spans[row, 1]
    place = first = _first_of(mask.by_id, mask.spans[row, 0], last, start)
    while place < last and mask.by_id[place] < stop:
        weights[0, mask.by_id[place] - start] = nothing
        place += 1
    return place > first


@inlined
def _first_of(places: Any, first: Any, last: Any, least: Any) -> Any:
    """The first of the sorted ``places[first:last]`` that is at least `least`; `last` if none."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if places[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
