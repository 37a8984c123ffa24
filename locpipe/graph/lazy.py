"""Dask arrays in, Dask arrays out: graphs built from metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import is_dask_array

from locpipe.blocks import QueryBlock
from locpipe.graph.checked import CheckedKeys, no_weight
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.layer import Group, Layer, nth, row_blocks
from locpipe.graph.operation import Operation, put_rows, with_ranks
from locpipe.graph.pair_blocks import lazy_pairs, with_pair_blocks, without_lazy_pairs
from locpipe.graph.sources import KeySource
from locpipe.graph.spans import KeySpans, Span, are_held, group_rows, pair_chunks
from locpipe.graph.symmetric import is_mirror

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

__all__ = ["fold_lazily"]

_MERGE_AT_A_TIME = 8


def fold_lazily(
    op: Operation, queries: Queries, keys: Keys | KeySource, room: float = inf
) -> tuple[DaskArray, ...]:
    """Results as Dask arrays, chunked as the queries; nothing is computed here.

    A leaf is one group of query chunks over one span of keys and gives a state; states merge in
    a tree.  **stream** is the tree of one span: keys in memory or in a store (`KeySource`).
    **tree**: keys that are Dask arrays, a span per group of chunks; or few queries over many
    keys.  **symmetric**: the queries are the keys, and a leaf
    serves both of its groups.  **summary**: spans are summarised, and queries ask the summary.
    Keys of more than `room` bytes are read again for each group of queries and each pass.
    """
    layer, pairs = Layer(), lazy_pairs(op)
    held = are_held(keys, room)
    q_groups, k_groups = group_rows(queries, keys, pairs, held=held)
    mirror = is_mirror(op, queries, keys) and bool(k_groups) and held
    k_groups = q_groups if mirror else k_groups
    q_blocks = row_blocks(layer, queries, q_groups)
    spans = KeySpans(layer, keys, q_groups, k_groups, held)
    blocks_of_pairs = [pair_chunks(array, q_groups, spans.first) for array in pairs]
    weight = _weight_check(layer, keys, len(spans.first))
    build = _Build(layer, without_lazy_pairs(op), spans, blocks_of_pairs, weight)
    targets = [_Target(i, q, g.start) for i, (q, g) in enumerate(_zip(q_blocks, q_groups))]
    if mirror:
        results = build.mutual_results(targets)
    else:
        results = [build.results(build.op, target) for target in targets]
    return _arrays(layer, op, queries, q_groups, results)


@dataclass(frozen=True, eq=False)
class _Target:
    """A group of queries: its number, the task that makes its block, its first row."""

    i: int
    q: Any
    row: int


@dataclass(frozen=True, eq=False)
class _Build:
    """The tasks of one fold."""

    layer: Layer
    op: Operation
    spans: KeySpans
    pairs: Sequence[DaskArray]
    weight: Any
    """The task that fails where no key weighs anything, or None."""

    def results(self, op: Operation, target: _Target) -> Any:
        """Results of a group of queries."""
        first = op.first_pass()
        if first is not None:
            ranked = self.layer.add(with_ranks, target.q, self._state(first, target))
            target = _Target(target.i, ranked, target.row)
        return self._answer(op, target, self._state(op, target))

    def mutual_results(self, targets: Sequence[_Target]) -> list[Any]:
        """Results where the queries are the keys: one leaf per pair of groups, not two."""
        states: list[list[Any]] = [[] for _ in targets]
        spans = self.spans.first
        for i, a in enumerate(targets):
            states[i].append(self._leaf(self.op, a, i, spans[i]))
            for j, b in enumerate(targets[:i]):
                both = self.layer.add(self.op.mutual, a.q, spans[i].keys, b.q, spans[j].keys)
                states[i].append(self.layer.add(nth, both, 0))
                states[j].append(self.layer.add(nth, both, 1))
        merged = [self._merged(self.op.merge, found) for found in states]
        return [self._answer(self.op, target, state) for target, state in _zip(targets, merged)]

    def _state(self, op: Operation, target: _Target) -> Any:
        if op.engine is not None:
            return self._consulted(op, target)
        leaves = [self._leaf(op, target, j, span) for j, span in enumerate(self.spans.take())]
        return self._merged(op.merge, leaves)

    def _consulted(self, op: Operation, target: _Target) -> Any:
        """State from the summary of all keys; the doubtful rows are folded pair by pair."""
        asked = self.layer.add(op.ask, self.summary, target.q)
        state, doubtful = (self.layer.add(nth, asked, n) for n in (0, 1))
        few = _Target(target.i, self.layer.add(op.some, target.q, doubtful), target.row)
        repaired = self._state(replace(op, engine=None), few)
        return self.layer.add(put_rows, state, doubtful, repaired)

    @cached_property
    def summary(self) -> Any:
        """Summary of all keys, made once and sent to every group of queries."""
        spans = self.spans.take()
        leaves = [self.layer.add(self.op.summary, s.keys, s.start, s.stop) for s in spans]
        return self._merged(self.op.merge_summaries, leaves)

    def _leaf(self, op: Operation, target: _Target, j: int, span: Span) -> Any:
        if not self.pairs:
            return self.layer.add(op.span, target.q, span.keys, span.start, span.stop)
        blocks = [self.layer.chunk(array, target.i, j) for array in self.pairs]
        place = (target.row, span.column)
        return self.layer.add(
            _span_with_pairs, op, place, blocks, target.q, span.keys, span.start, span.stop
        )

    def _merged(self, merge: Callable[[Any], Any], states: list[Any]) -> Any:
        while len(states) > 1:
            groups = range(0, len(states), _MERGE_AT_A_TIME)
            states = [self.layer.add(merge, states[i : i + _MERGE_AT_A_TIME]) for i in groups]
        return states[0]

    def _answer(self, op: Operation, target: _Target, state: Any) -> Any:
        """Results of a state that has seen all keys."""
        results, fallback = self.layer.add(_finish, op, state, self.weight), op.fallback()
        if fallback is None:
            return results
        lonely = self.layer.add(op.reduction.no_neighbour, state)
        few = _Target(target.i, self.layer.add(op.some, target.q, lonely), target.row)
        return self.layer.add(put_rows, results, lonely, self.results(fallback, few))


def _weight_check(layer: Layer, keys: Keys | KeySource, n_spans: int) -> Any:
    """A task that fails where no key weighs anything; None where that is seen otherwise."""
    if isinstance(keys, CheckedKeys) and n_spans > 1:
        return layer.add(_refuse, [layer.add(keys.weighs_something)])
    weight: Any = keys.sample_weight if isinstance(keys, Keys) else None
    if weight is None or not is_dask_array(weight):
        return None
    chunks = [layer.chunk(weight, i) for i in range(weight.numblocks[0])]
    return layer.add(_refuse, [layer.add(np.any, chunk) for chunk in chunks])


def _refuse(some: list[bool]) -> None:
    if not any(some):
        raise no_weight()


def _finish(op: Operation, state: Any, weight: None) -> tuple[Any, ...]:
    """Results of a state, once `weight` has been looked at."""
    return op.finish(state)


def _span_with_pairs(
    op: Operation, place: tuple[int, int], blocks: list[Any], q: Any, keys: Any, *span: Any
) -> Any:
    return with_pair_blocks(op, blocks, *place).span(q, keys, *span)


def _zip(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return zip(a, b, strict=True)


def _arrays(
    layer: Layer, op: Operation, queries: Queries, groups: Sequence[Group], results: list[Any]
) -> tuple[DaskArray, ...]:
    chunks = [n for group in groups for n in group.sizes]
    parts = [part for group, result in _zip(groups, results) for part in _cut(layer, group, result)]
    metas = op.meta(QueryBlock(np.empty((0, queries.data.shape[1]))))
    arrays = [layer.array(parts, i, chunks, meta) for i, meta in enumerate(metas)]
    return type(metas)(*arrays) if hasattr(metas, "_fields") else tuple(arrays)


def _cut(layer: Layer, group: Group, result: Any) -> list[Any]:
    """Results of a group, one reference per chunk of the queries."""
    if len(group.sizes) == 1:
        return [result]
    stops = np.cumsum(group.sizes).tolist()
    return [layer.add(_rows, result, stop - n, stop) for n, stop in _zip(group.sizes, stops)]


def _rows(results: tuple[Any, ...], start: int, stop: int) -> tuple[Any, ...]:
    return tuple(array[start:stop] for array in results)
