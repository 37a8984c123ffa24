"""Queries and keys as tiles take them: contiguous, without the keys of no weight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locpipe.blocks import UNKNOWN_START, KeyBlock, QueryBlock, row_ids, row_times
from locpipe.engines.parts import Parts

__all__ = ["LOG2_E", "Numbers", "Rows"]

LOG2_E = 1 / log(2)
Numbers = NDArray[Any]
_SAMPLE = 128


@dataclass(frozen=True, eq=False)
class Rows:
    """A block of queries and one of keys, without the keys of no weight.

    Attributes
    ----------
    q, k : arrays (n_queries, n_features), (n_keys, n_features)
        Contiguous, float32 where both are, else float64.
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
        both = {q.data.dtype, k.data.dtype}
        source = np.float32 if both == {np.dtype(np.float32)} else np.float64
        x, y = (np.ascontiguousarray(rows.data, dtype=source) for rows in (q, k))
        return cls(parts, q, k, x, y, added * LOG2_E, constant)

    def queries(self, chosen: Numbers) -> Rows:
        """The same keys for some of the queries."""
        q, constant = self.q[chosen], self.constant[chosen]
        return replace(self, q_block=self.q_block.chosen(chosen), q=q, constant=constant)

    @property
    def source(self) -> Any:
        """NumPy's type of the coordinates."""
        return self.q.dtype.type

    @property
    def centre(self) -> Numbers:
        """About the middle of the keys."""
        step = max(1, len(self.k) // _SAMPLE)
        middle: Numbers = self.k[::step].mean(axis=0, dtype=np.float64)
        return middle

    @property
    def have_bandwidths(self) -> bool:
        """Whether bandwidths ride in the rows."""
        return self.q_block.bandwidth is not None or self.k_block.bandwidth is not None


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
