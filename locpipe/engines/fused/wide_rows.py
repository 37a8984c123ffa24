"""Queries and keys made ready for a tile: widened, without the keys of no weight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locpipe.blocks import UNKNOWN_START, KeyBlock, QueryBlock, row_ids, row_times
from locpipe.engines.parts import Parts

__all__ = ["LOG2_E", "Numbers", "Rows"]

LOG2_E = log2(np.e)
Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Rows:
    """A block of queries and one of keys, widened, without the keys of no weight.

    Attributes
    ----------
    q, k : float64 arrays (n_queries, n_features), (n_keys, n_features)
    q_block, k_block : QueryBlock, KeyBlock
        The same rows with what they carry.
    added : float64 array (n_keys,)
        What each key adds to its log weights, base 2.
    constant : float64 array (n_queries,)
        What each query adds, natural.
    """

    parts: Parts
    q_block: QueryBlock
    k_block: KeyBlock
    q: Numbers
    k: Numbers
    added: Numbers
    constant: Numbers

    @classmethod
    def of(cls, parts: Parts, q: QueryBlock, k: KeyBlock) -> Rows:
        """The rows of two blocks."""
        k, d = _present(k, bool(parts.masks)), q.data.shape[1]
        added, constant = np.zeros(k.n_rows), np.full(q.n_rows, parts.log_factor)
        if k.log_sample_weight is not None:
            added += k.log_sample_weight
        if parts.per_row and k.bandwidth is not None:
            added -= d * np.log(k.bandwidth)
        if parts.per_row and q.bandwidth is not None:
            constant -= d * np.log(q.bandwidth)
        return cls(parts, q, k, _wide(q.data), _wide(k.data), added * LOG2_E, constant)

    def queries(self, chosen: Numbers) -> Rows:
        """The same keys for some of the queries."""
        q, constant = self.q[chosen], self.constant[chosen]
        return replace(self, q_block=self.q_block.chosen(chosen), q=q, constant=constant)

    @property
    def have_bandwidths(self) -> bool:
        """Whether bandwidths ride in the rows."""
        return self.q_block.bandwidth is not None or self.k_block.bandwidth is not None


def _wide(data: Any) -> Numbers:
    return np.ascontiguousarray(data, dtype=np.float64)


def _present(k: KeyBlock, told_apart: bool) -> KeyBlock:
    """The keys of positive weight; they keep their ids and times where masks ask for them."""
    if k.log_sample_weight is None or not np.isneginf(k.log_sample_weight).any():
        return k
    some = ~np.isneginf(k.log_sample_weight)
    names = ("data", "values", "log_sample_weight", "bandwidth", "ids", "time")
    given = {name: getattr(k, name) for name in names}
    if told_apart:
        given |= {"ids": row_ids(k), "time": row_times(k)}
    present = {name: None if array is None else array[some] for name, array in given.items()}
    return KeyBlock(start=UNKNOWN_START, **present)
