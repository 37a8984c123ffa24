"""Rows laid out for the compiled loops: strips of keys, one feature after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import frexp
from typing import Any

import numpy as np

from locpipe.blocks import UNKNOWN_START, Array, KeyBlock, QueryBlock, row_ids
from locpipe.engines.fused.memory import aligned
from locpipe.engines.fused.profiles import Profile

__all__ = [
    "LENGTH",
    "Block",
    "are_even",
    "block_of",
    "even_rows",
    "extremes",
    "into_strips",
    "largest_sizes",
]

LENGTH = {np.float32: 1024, np.float64: 512}
"""Keys per strip: three features, their weights and the buffer fill the first-level cache."""


_LOG2_E = 1 / np.log(2.0)


@dataclass(frozen=True)
class Block:
    """Queries and keys with all that weighs them, before a precision is chosen.

    Attributes
    ----------
    profile : Profile
    q, k : QueryBlock, KeyBlock
        Keys of weight 0 left out.
    bandwidths : float64 array (n_features,)
    log_keys : float64 array (n_keys,) or None
        Log of each key's own factor, at most 0.
    log_queries : float or float64 array (n_queries,)
        Log of each query's factor, and of the largest one of a key.
    skipped : int64 array
        Positions of keys; those of equal ids together, in order.
    skip_range : int64 array (n_queries, 2)
        Part of `skipped` that a query must not see.
    """

    profile: Profile
    q: QueryBlock
    k: KeyBlock
    bandwidths: Array
    log_keys: Array | None
    log_queries: Any
    skipped: Array
    skip_range: Array

    @property
    def exact(self) -> bool:
        """Whether distances are divided as the reference does: the kernel has a jump."""
        return self.profile.name == "uniform"

    @property
    def scales(self) -> Array:
        """Factors of the differences; 1 for the largest bandwidth, divisors where exact."""
        if self.exact:
            return self.bandwidths / self.last
        return self.bandwidths.max() / self.bandwidths

    @property
    def last(self) -> float:
        """What divides a distance after its features are scaled."""
        return float(self.bandwidths.max())

    @property
    def exponent(self) -> int:
        """Power of two that is taken out of the coordinates, to bring bandwidths near 1."""
        return 0 if self.exact else frexp(self.last)[1]

    @property
    def plain(self) -> bool:
        """Whether keys differ in nothing but their place, and features not in bandwidth."""
        return self.log_keys is None and self.k.bandwidth is None and bool(np.all(self.scales == 1))

    @property
    def mean_weight(self) -> float:
        """Of the keys, the largest of which is 1."""
        return 1.0 if self.log_keys is None else float(np.mean(np.exp(self.log_keys)))

    def underflows(self, real: Any) -> bool:
        """Whether a key's weight, the largest being 1, is too small a number."""
        return self.log_keys is not None and bool(
            np.min(self.log_keys) <= np.log(np.finfo(real).tiny)
        )

    def rows(self, mask: Array) -> Block:
        """The block with some of its queries."""
        logs = self.log_queries[mask] if np.ndim(self.log_queries) else self.log_queries
        ranges = self.skip_range[mask]
        return replace(self, q=self.q.chosen(mask), log_queries=logs, skip_range=ranges)

    def sizes(self, step: int) -> Block:
        """Some of the keys, with the sizes of their values; all where any is to be skipped."""
        every = slice(None, None, 1 if len(self.skipped) else step)
        k = _kept(self.k, every)
        log_keys = None if self.log_keys is None else self.log_keys[every]
        return replace(self, k=replace(k, values=np.abs(np.asarray(k.values))), log_keys=log_keys)

    def coordinates(self, data: Array, centre: Array | None, real: Any) -> Array:
        """Rows about the centre, in powers of two of their own scale."""
        if centre is not None:
            data = data.astype(np.float64) - centre
        if self.exponent:
            # Float64 first, where it is asked for: a quotient may be too large for float32.
            data = np.ldexp(data.astype(np.promote_types(data.dtype, real)), -self.exponent)
        return np.asarray(data, dtype=real)

    def factors(self, real: Any) -> Array:
        """Factor of the squared distances of each query (n_queries,); its bandwidth where exact."""
        h = np.full(self.q.n_rows, np.ldexp(self.last, -self.exponent))
        if self.q.bandwidth is not None:
            h *= self.q.bandwidth
        return (h if self.exact else self.profile.unit / h / h).astype(real)

    def key_columns(self, centre: Array | None, real: Any) -> list[Array]:
        """Coordinates, then weights (as costs in float64), then factors of squared distances."""
        data = self.coordinates(self.k.data, centre, real)
        columns = [data[:, j] for j in range(data.shape[1])]
        h, log_keys = self.k.bandwidth, self.log_keys
        ones = np.ones(self.k.n_rows, real)
        as_cost = self.profile.has_cost and real is np.float64
        if log_keys is None:
            columns.append(0 * ones if as_cost else ones)
        else:
            columns.append(-_LOG2_E * log_keys if as_cost else np.exp(log_keys))
        near = ones if h is None else h.astype(np.float64)
        columns.append(near if self.exact or h is None else 1 / near / near)
        return columns


def block_of(
    profile: Profile,
    bandwidths: tuple[float, ...],
    log_factor: float,
    per_row: bool,
    exclude_self: bool,
    q: QueryBlock,
    k: KeyBlock,
) -> Block | None:
    """The block; None where no key has a weight."""
    ids = (row_ids(q), row_ids(k)) if exclude_self else None
    if k.log_sample_weight is not None and (kept := np.isfinite(k.log_sample_weight)).sum() < len(
        kept
    ):
        if not kept.any():
            return None
        ids, k = ids and (ids[0], ids[1][kept]), _kept(k, kept)
    d = q.data.shape[1] if per_row else 0
    log_keys = k.log_sample_weight
    if d and k.bandwidth is not None:
        log_h = d * np.log(k.bandwidth)
        log_keys = -log_h if log_keys is None else log_keys - log_h
    log_queries = log_factor + profile.log_peak
    if log_keys is not None:
        top = float(np.max(log_keys))
        log_keys, log_queries = log_keys - top, log_queries + top
    if d and q.bandwidth is not None:
        log_queries = log_queries - d * np.log(q.bandwidth)
    skipped, skip_range = _skips(ids, q.n_rows)
    return Block(profile, q, k, np.asarray(bandwidths), log_keys, log_queries, skipped, skip_range)


def _kept(k: KeyBlock, kept: Any) -> KeyBlock:
    names = ("data", "values", "log_sample_weight", "bandwidth")
    cut = {name: value[kept] for name in names if (value := getattr(k, name)) is not None}
    return KeyBlock(start=UNKNOWN_START, **cut)


def _skips(ids: tuple[Array, Array] | None, n_queries: int) -> tuple[Array, Array]:
    """Keys in the order of their ids, and each query's range among them."""
    if ids is None:
        return np.zeros(0, np.int64), np.zeros((n_queries, 2), np.int64)
    mine, theirs = (np.asarray(x) for x in ids)
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    ranges = [np.searchsorted(ordered, mine, side) for side in ("left", "right")]
    return order.astype(np.int64), np.stack(ranges, axis=1).astype(np.int64)


def even_rows(array: Array) -> Array:
    """The rows, the last one twice where their number is odd; contiguous."""
    if len(array) % 2:
        array = np.concatenate([array, array[-1:]])
    return np.ascontiguousarray(array)


def into_strips(columns: list[Array], n: int, real: Any) -> Array:
    """Arrays (n,) as (n_strips, n_columns, length), zeros at the end."""
    length = min(LENGTH[real], n)
    whole = n // length
    strips = aligned((-(-n // length), len(columns), length), real)
    for j, column in enumerate(columns):
        strips[:whole, j] = column[: whole * length].reshape(whole, length)
        if whole < len(strips):
            strips[-1, j, : n - whole * length] = column[whole * length :]
    return strips


def extremes(rows: Array) -> tuple[Array, Array]:
    """Least and largest number of each column; along narrow rows they would take long."""
    columns = np.ascontiguousarray(rows.T)
    return columns.min(axis=1).astype(np.float64), columns.max(axis=1).astype(np.float64)


def largest_sizes(values: Array) -> Array:
    """Of each column (n_outputs,), float64."""
    low, high = extremes(values)
    return np.maximum(high, -low)


_UNEVEN = 10.0
_LOOKED_AT = 4096


def are_even(values: Array) -> bool:
    """Whether values are of like size, as far as some thousand rows tell.

    Most are tiny beside a few large ones where they are not, or 0 as in a column of labels.
    """
    some = values[:: -(-len(values) // _LOOKED_AT)]
    sizes = np.ascontiguousarray(np.abs(some).T, np.float64)
    small = np.partition(sizes, len(some) // 4, axis=1)[:, len(some) // 4]
    return bool(np.all(sizes.mean(axis=1) <= _UNEVEN * small))
