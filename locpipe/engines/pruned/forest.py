"""The summary of the keys: trees of small blocks, each with its box and its weights."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numba import types

from locpipe.blocks import KeyBlock, row_ids
from locpipe.engines.pruned.entry import entry
from locpipe.engines.pruned.kd import order_in_blocks

__all__ = ["Forest", "grow", "join"]

_LARGEST_TREE = 2**22
"""Keys up to which trees are put together into one."""
_OF_KEYS = ("data", "values", "log_weight", "weight", "ids")
_OF_NODES = ("right", "start", "stop", "low", "high", "log_peak", "log_total")


class Forest(NamedTuple):
    """Keys in k-d order, and the nodes of one tree per key block that was summarised.

    Quantities are the weights, and for each output the weights times the values' sizes; or the
    weights and their squares.

    Attributes
    ----------
    data : array (n_features, n)
        One row per feature; float32 where no digit is lost by it, else float64.
    values : float64 array (n_outputs, n)
    log_weight, weight : float64 arrays (n,), or empty where all weights are 1
        The sample weights, and these over the largest of their leaf.
    ids, by_id : int64 arrays (n,), or empty where ids are not asked for
        Identity of each key; the places of the keys in order of their ids.
    right, start, stop : int64 arrays (n_nodes,)
        As in `Blocks`, of all trees one after another.
    low, high : float64 arrays (n_nodes, n_features)
    log_peak : float64 array (n_nodes,)
        Log of the largest weight below each node.
    log_total : float64 array (n_nodes, n_quantities)
        Log of the sums of the quantities below each node.
    roots : int64 array (n_trees,)
    """

    data: Any
    values: Any
    log_weight: Any
    weight: Any
    ids: Any
    by_id: Any
    right: Any
    start: Any
    stop: Any
    low: Any
    high: Any
    log_peak: Any
    log_total: Any
    roots: Any

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights."""
        if not self.log_weight.size:
            return float(self.n_keys)
        return float(np.exp(self.log_total[self.roots, 0]).sum())

    @property
    def squares(self) -> bool:
        """Whether the second quantity is the squared weights."""
        return bool(self.log_total.shape[1] > len(self.values) + 1)

    @property
    def n_keys(self) -> int:
        """Keys of positive weight."""
        return int(self.data.shape[1])


def grow(k: KeyBlock, scale: Any, size: int, *, squares: bool, ids: bool) -> Forest:
    """The forest of one tree, in leaves of `size` keys; keys of weight 0 stay out.

    Notes
    -----
    O(n n_features log n) time.
    """
    there = slice(None) if k.log_sample_weight is None else k.log_sample_weight > -np.inf
    blocks = order_in_blocks(k.data[there], scale, size)
    order = blocks.order

    def ordered(array: Any, dtype: Any = np.float64) -> Any:
        return np.empty(0, dtype) if array is None else np.asarray(array[there], dtype)[order]

    values = np.empty((len(order), 0)) if k.values is None or squares else ordered(k.values)
    log_weight = ordered(k.log_sample_weight)
    log_peak, log_total = _totals(blocks, log_weight, values, squares)
    names = ordered(row_ids(k), np.int64) if ids else np.empty(0, np.int64)
    return Forest(
        data=np.ascontiguousarray(_narrow(ordered(k.data)).T),
        values=np.ascontiguousarray(values.T),
        log_weight=log_weight,
        weight=_relative(blocks, log_weight, log_peak),
        ids=names,
        by_id=np.argsort(names, kind="stable"),
        right=blocks.right,
        start=blocks.start,
        stop=blocks.stop,
        low=blocks.low,
        high=blocks.high,
        log_peak=log_peak,
        log_total=log_total,
        roots=np.zeros(min(1, len(blocks.right)), np.int64),
    )


def join(a: Forest, b: Forest, scale: Any, size: int) -> Forest:
    """One forest of both; of trees of about the same size one new tree is grown.

    So keys that come in many small parts end in a few trees, each key having been in
    O(log n) of them.
    """
    trees = sorted([*_trees(a), *_trees(b)], key=lambda tree: tree.n_keys)
    place = 0
    while place + 1 < len(trees):
        small, large = trees[place], trees[place + 1]
        if large.n_keys > 2 * small.n_keys or small.n_keys + large.n_keys > _LARGEST_TREE:
            place += 1
            continue
        both = _regrown(_together([small, large]), scale, size)
        trees = sorted([*trees[:place], both, *trees[place + 2 :]], key=lambda tree: tree.n_keys)
    return _together(trees) if trees else a


def _trees(forest: Forest) -> list[Forest]:
    """Forests of one tree each, as views."""
    edges = [*forest.roots.tolist(), len(forest.right)]
    return [_tree(forest, first, last) for first, last in pairwise(edges)]


def _tree(forest: Forest, first: int, last: int) -> Forest:
    start, stop = int(forest.start[first]), int(forest.stop[first])
    nodes = {name: getattr(forest, name)[first:last] for name in _OF_NODES}
    keys = {name: getattr(forest, name)[..., start:stop] for name in _OF_KEYS}
    tree = Forest(**nodes, **keys, by_id=forest.by_id[:0], roots=np.zeros(1, np.int64))
    right = np.where(tree.right < 0, tree.right, tree.right - first)
    return tree._replace(right=right, start=tree.start - start, stop=tree.stop - start)


def _regrown(forest: Forest, scale: Any, size: int) -> Forest:
    k = KeyBlock(
        data=forest.data.T,
        values=forest.values.T,
        log_sample_weight=forest.log_weight if forest.log_weight.size else None,
        ids=forest.ids,
    )
    return grow(k, scale, size, squares=forest.squares, ids=forest.ids.size > 0)


def _together(trees: list[Forest]) -> Forest:
    """One forest of all trees, one after another."""
    some = any(tree.log_weight.size for tree in trees)
    parts, n_keys, n_nodes = [], 0, 0
    for tree in trees:
        parts.append(_moved(_with_weights(tree) if some else tree, n_keys, n_nodes))
        n_keys, n_nodes = n_keys + tree.n_keys, n_nodes + len(tree.right)
    whole = {name: _concat(name, parts) for name in Forest._fields}
    return Forest(**whole)._replace(by_id=np.argsort(whole["ids"], kind="stable"))


def _concat(name: str, parts: list[Forest]) -> Any:
    return np.concatenate(
        [getattr(part, name) for part in parts], axis=-1 if name in _OF_KEYS else 0
    )


def _moved(tree: Forest, n_keys: int, n_nodes: int) -> Forest:
    """The tree after so many keys and nodes of others."""
    return tree._replace(
        right=np.where(tree.right < 0, tree.right, tree.right + n_nodes),
        start=tree.start + n_keys,
        stop=tree.stop + n_keys,
        roots=tree.roots + n_nodes,
    )


def _with_weights(tree: Forest) -> Forest:
    if tree.log_weight.size:
        return tree
    return tree._replace(log_weight=np.zeros(tree.n_keys), weight=np.ones(tree.n_keys))


def _narrow(data: Any) -> Any:
    with np.errstate(over="ignore"):
        narrow = data.astype(np.float32)
    return narrow if np.array_equal(narrow, data) else data


def _relative(blocks: Any, log_weight: Any, log_peak: Any) -> Any:
    if not log_weight.size:
        return log_weight
    leaves = blocks.right < 0
    return np.exp(log_weight - np.repeat(log_peak[leaves], (blocks.stop - blocks.start)[leaves]))


def _totals(blocks: Any, log_weight: Any, values: Any, squares: bool) -> tuple[Any, Any]:
    """Log of the largest weight, and of the sum of each quantity, below each node."""
    n, nodes = len(blocks.order), len(blocks.right)
    weight = log_weight if log_weight.size else np.zeros(n)
    with np.errstate(divide="ignore"):
        logs = [weight, *([2 * weight] if squares else [weight + np.log(abs(v)) for v in values.T])]
    sums = [_log_sums(blocks, column) for column in logs]
    peak = sums[0][0] if n else np.empty(nodes)
    return peak, np.stack([total for _, total in sums], axis=1)


def _log_sums(blocks: Any, logs: Any) -> tuple[Any, Any]:
    """Largest and log of the sum of ``exp(logs)`` below each node."""
    n_nodes = len(blocks.right)
    peak, total = np.full(n_nodes, -np.inf), np.full(n_nodes, -np.inf)
    leaves = np.flatnonzero(blocks.right < 0)
    if not leaves.size:
        return peak, total
    starts = blocks.start[leaves]
    peak[leaves] = np.maximum.reduceat(logs, starts)
    guard = np.where(peak[leaves] > -np.inf, peak[leaves], 0.0)
    sizes = (blocks.stop - blocks.start)[leaves]
    with np.errstate(divide="ignore"):
        total[leaves] = guard + np.log(
            np.add.reduceat(np.exp(logs - np.repeat(guard, sizes)), starts)
        )
    _fill_up()(blocks.right, peak, total)
    return peak, total


@lru_cache(maxsize=1)
def _fill_up() -> Any:
    return entry("fill_up", types.void(types.int64[::1], *(types.float64[::1],) * 2), _fill)


def _fill(right: Any, peak: Any, total: Any) -> None:
    """From leaves to roots: children come after their parents."""
    for node in range(right.size - 1, -1, -1):
        if right[node] >= 0:
            a, b = node + 1, right[node]
            peak[node] = max(peak[a], peak[b])
            larger, less = max(total[a], total[b]), min(total[a], total[b])
            total[node] = larger
            if less > -np.inf:  # else both may be
                total[node] += math.log1p(math.exp(less - larger))
