"""How much there is to do, as far as metadata tells."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan

import numpy as np

from locpipe.errors import InputError
from locpipe.graph.inputs import Keys, Queries, has_dask
from locpipe.graph.operation import Operation
from locpipe.graph.pair_blocks import lazy_pairs
from locpipe.graph.sources import KeySource
from locpipe.graph.spans import are_held, group_rows, held_bytes, source_spans

__all__ = ["Sizes", "is_lazy"]

_UNKNOWN_CHUNK = 65_536
"""Rows that a chunk of unknown size is taken to have."""


@dataclass(frozen=True)
class Sizes:
    """Numbers of rows and tasks.

    Attributes
    ----------
    n_queries : int or None
        None where chunk sizes are unknown.
    n_keys, n_features, n_outputs : int
    query_rows : int
        Rows of the largest group of queries that a graph takes as one, or all of them.
    key_rows : int
        Rows of the largest span of keys, or all of them.
    n_groups, n_spans : int
        Groups of queries, and spans of keys for each of them; 0 in memory.
    is_lazy : bool
        Whether a graph is built.
    """

    n_queries: int | None
    n_keys: int
    n_features: int
    n_outputs: int
    query_rows: int
    key_rows: int
    n_groups: int
    n_spans: int
    is_lazy: bool
    held: int = 0
    """Bytes of Dask keys that lie in memory until the last group of queries is done."""

    @property
    def n_leaves(self) -> int:
        """Tasks over pairs in the graph; 0 in memory."""
        return self.n_groups * self.n_spans

    @property
    def n_pairs(self) -> int:
        """Pairs of a query and a key."""
        return (self.n_queries or self.query_rows * self.n_groups) * self.n_keys

    @classmethod
    def of(
        cls, op: Operation, queries: Queries, keys: Keys | KeySource, room: float = inf
    ) -> Sizes:
        """Sizes of the work, chunks grouped as the graph will group them.

        Raises
        ------
        InputError
            If the number of keys is unknown.
        """
        n_keys = int(_known(keys.data.shape[0])) if isinstance(keys, Keys) else keys.n_keys
        shape = int(queries.data.shape[1]), _n_outputs(keys)
        if not is_lazy(queries, keys):
            n_rows = int(queries.data.shape[0])
            return cls(n_rows, n_keys, *shape, n_rows, n_keys, 0, 0, is_lazy=False)
        held = are_held(keys, room)
        q_groups, k_groups = group_rows(queries, keys, lazy_pairs(op), held=held)
        q_rows = [g.n_rows for g in q_groups]
        unknown = isnan(sum(q_rows))
        n_spans = len(k_groups) if isinstance(keys, Keys) else source_spans(q_groups, n_keys)
        return cls(
            None if unknown else int(sum(q_rows)),
            n_keys,
            *shape,
            query_rows=_UNKNOWN_CHUNK if unknown else int(max(q_rows)),
            key_rows=max((int(g.n_rows) for g in k_groups), default=-(-n_keys // n_spans)),
            n_groups=len(q_groups),
            n_spans=n_spans,
            is_lazy=True,
            held=held_bytes(keys) if held and isinstance(keys, Keys) else 0,
        )


def is_lazy(queries: Queries, keys: Keys | KeySource) -> bool:
    """Whether a graph is built."""
    return isinstance(keys, Keys) or has_dask(queries)


def _known(n_keys: float) -> float:
    if isnan(n_keys):
        raise InputError(
            "the number of keys must be known, got a Dask array of unknown chunk sizes; call "
            "compute_chunk_sizes() on it, or lp.prepare(keys), first"
        )
    return n_keys


def _n_outputs(keys: Keys | KeySource) -> int:
    if not isinstance(keys, Keys):
        return keys.n_outputs or 0
    return 0 if keys.values is None else int(np.prod(keys.values.shape[1:]))
