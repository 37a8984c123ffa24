"""The strategy ``stream``: a task owns a block of queries and folds all key blocks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from array_api_compat import array_namespace

from locpipe.blocks import Array, QueryBlock, row_slices
from locpipe.engines import single_threaded_libraries
from locpipe.graph.operation import Operation
from locpipe.graph.plan import Plan
from locpipe.graph.sources import KeySource

__all__ = ["fold_in_memory"]

_KEPT = 4
"""Summaries that prepared keys keep, the latest ones."""


def fold_in_memory(
    op: Operation, q: QueryBlock, keys: KeySource, plan: Plan, summaries: dict[Any, Any]
) -> tuple[Array, ...]:
    """Results of queries in memory: a pool of threads over query blocks.

    Blocks begin at multiples of the reference engine's tile, so the tiles, and with them the bits
    of its result, are the same for any number of threads and any memory limit.  A summary that
    is not among `summaries` is made and put there.
    """
    results = _uninitialized(op.meta(q), q.n_rows)
    summary = None if op.engine is None else _summary(op, keys, summaries)

    def run(rows: slice) -> None:
        for whole, part in zip(results, op.stream(q.rows(rows), keys, summary), strict=True):
            whole[rows, ...] = part

    _run_all(run, list(row_slices(q.n_rows, plan.query_rows)), plan.n_threads)
    return results


def _summary(op: Operation, keys: KeySource, summaries: dict[Any, Any]) -> Any:
    of = op.engine, op.reduction, op.kernel, op.weights_as_mask
    if of not in summaries:
        while len(summaries) >= _KEPT:
            summaries.pop(next(iter(summaries)))
        summaries[of] = op.summary(keys)
    return summaries[of]


def _run_all(run: Callable[[slice], None], blocks: list[slice], n_threads: int) -> None:
    if min(n_threads, len(blocks)) <= 1:
        for rows in blocks:
            run(rows)
        return
    with ThreadPoolExecutor(n_threads) as pool, single_threaded_libraries():
        for _ in pool.map(run, blocks):
            pass  # raises the first error of a block


def _uninitialized(metas: Any, n_rows: int) -> tuple[Array, ...]:
    """Arrays of `n_rows` rows like the results of no rows, a named tuple where they are."""
    arrays = [
        array_namespace(meta).empty((n_rows, *meta.shape[1:]), dtype=meta.dtype) for meta in metas
    ]
    return type(metas)(*arrays) if hasattr(metas, "_fields") else tuple(arrays)
