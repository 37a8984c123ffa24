"""The compiled entry: every row at the least accuracy that serves it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types

from locpipe.engines.fused.compiled import as_written
from locpipe.engines.pruned.entry import entry
from locpipe.engines.pruned.far import answer_row
from locpipe.engines.pruned.leaves import excluded
from locpipe.engines.pruned.walk import answer_group

__all__ = ["Queries", "answer"]

_WIDEST = 16.0
"""Widest group of queries, in units of the scale, about whose centre float32 places keys well."""
_MANY = 4.0
"""Least mass that is summed in float32."""
_TINY = 1e-100
"""Least mass that is summed in float64 without a shift."""


class Queries(NamedTuple):
    """Queries in k-d order.

    Attributes
    ----------
    data : float64 array (n, n_features)
    ids : int64 array (n,), or empty where no key is left out
    start, stop : int64 arrays (n_groups,)
        The rows of each group.
    """

    data: Any
    ids: Any
    start: Any
    stop: Any


def answer(*arguments: Any) -> None:
    """Sums of all rows, compiled on first use for the kinds of the arguments.

    Parameters
    ----------
    arguments
        ``(forest, rule, queries, work, sums, shift)``: the results are float64 arrays
        (n, n_quantities) at ``exp(shift)``, and the shifts (n,).
    """
    _compiled(tuple(typeof(argument) for argument in arguments))(*arguments)


@lru_cache(maxsize=16)
def _compiled(kinds: tuple[Any, ...]) -> Any:
    return entry("walk", types.void(*kinds), _answer)


def _answer(forest: Any, rule: Any, queries: Any, work: Any, sums: Any, shift: Any) -> None:
    for group in range(queries.start.size):
        rows = np.arange(queries.start[group], queries.stop[group])
        single = rule.care < np.inf and _is_narrow(queries.data, rows, rule.scale)
        while rows.size:
            answer_group(forest, rule, queries, rows, single, work)
            rows = _keep(rule, work, rows, single, sums, shift)
            if not single:
                break
            single = False
        for row in rows:
            span = excluded(forest, queries, row)
            shift[row] = answer_row(forest, rule, queries.data[row], span, sums[row])


@as_written
def _is_narrow(data: Any, rows: Any, scale: Any) -> Any:
    for j in range(scale.size):
        low = high = data[rows[0], j]
        for row in rows:
            low, high = min(low, data[row, j]), max(high, data[row, j])
        if (high - low) / scale[j] > _WIDEST:
            return False
    return True


@as_written
def _keep(rule: Any, work: Any, rows: Any, single: Any, sums: Any, shift: Any) -> Any:
    """Take over the sums of all rows; the rows to be done again are returned."""
    n = 0
    left = np.empty(rows.size, np.int64)
    for i in range(rows.size):
        shift[rows[i]] = rule.peak
        for j in range(rule.size.size):
            sums[rows[i], j] = work.sums[i, j]
        if not _serves(rule, work.least[i], work.doubt[i], single):
            left[n] = rows[i]
            n += 1
    return left[:n]


@as_written
def _serves(rule: Any, least: Any, doubt: Any, single: Any) -> Any:
    """Whether the quantities are large enough for the accuracy at hand.

    In float32 the errors of weights are independent, and no slope exceeds about 1: their sum is
    of the size of the root of the sum of slopes.
    """
    if not single:
        return rule.closed or least[0] >= _TINY
    enough, needed = least[0] >= _MANY, rule.care * math.sqrt(doubt + least[0])
    for j in range(least.size):
        if rule.size[j] > 0 and not (rule.squares and j > 0):
            enough &= least[j] >= needed
    return enough
