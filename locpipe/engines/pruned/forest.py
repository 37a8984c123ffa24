"""The summary of the keys: trees of small blocks, each with its box and its weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locpipe.blocks import KeyBlock, row_ids
from locpipe.engines.pruned.kd import order_in_blocks

__all__ = ["Forest", "grow", "join"]


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


def join(a: Forest, b: Forest) -> Forest:
    """The trees of both."""
    if a.n_keys == 0 or b.n_keys == 0:
        return b if a.n_keys == 0 else a
    n_keys, n_nodes = a.n_keys, len(a.right)
    a, b = _same_kind(a, b), _same_kind(b, a)
    moved = b._replace(
        right=np.where(b.right < 0, b.right, b.right + n_nodes),
        start=b.start + n_keys,
        stop=b.stop + n_keys,
        roots=b.roots + n_nodes,
    )
    rows = {name: _concat(name, getattr(a, name), getattr(moved, name)) for name in Forest._fields}
    return Forest(**rows)._replace(by_id=np.argsort(rows["ids"], kind="stable"))


def _concat(name: str, a: Any, b: Any) -> Any:
    return np.concatenate([a, b], axis=1 if name in ("data", "values") else 0)


def _same_kind(forest: Forest, other: Forest) -> Forest:
    """`forest` with weights if the other has some."""
    if forest.log_weight.size or not other.log_weight.size:
        return forest
    n = forest.n_keys
    return forest._replace(log_weight=np.zeros(n), weight=np.ones(n))


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
    for node in range(n_nodes - 1, -1, -1):
        if blocks.right[node] >= 0:
            pair = node + 1, blocks.right[node]
            peak[node] = max(peak[i] for i in pair)
            total[node] = np.logaddexp(*(total[i] for i in pair))
    return peak, total
