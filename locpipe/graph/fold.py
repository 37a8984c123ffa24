"""One entry for every method: fold keys into queries, in memory or lazily."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Any, Unpack

import numpy as np

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.engines import Spread
from locpipe.errors import InputError
from locpipe.graph.checked import CheckedKeys, check_total
from locpipe.graph.fit import check_kinds, check_reduction
from locpipe.graph.inputs import Keys, Queries, as_queries, has_dask, on_sphere
from locpipe.graph.layer import log_weight
from locpipe.graph.lazy import fold_lazily
from locpipe.graph.operation import Operation
from locpipe.graph.pair_blocks import lazy_pairs
from locpipe.graph.plan import Plan, plan_fold
from locpipe.graph.prepare import PreparedKeys, checked_keys, prepared_of
from locpipe.graph.sources import ArrayKeys, KeySource
from locpipe.graph.spans import room_for_keys
from locpipe.graph.stream import fold_in_memory
from locpipe.graph.symmetric import fold_symmetric
from locpipe.kernels.base import Kernel
from locpipe.kernels.product import Product
from locpipe.options import Checked
from locpipe.pairs import as_pairs
from locpipe.reductions.base import Reduction

__all__ = ["fold", "fold_checked", "plan_checked"]


def fold(
    reduction: Reduction,
    queries: Any,
    keys: Any,
    kernel: Kernel | None = None,
    pairs: Any = None,
    **how: Unpack[Checked],
) -> tuple[Array, ...]:
    """Fold all keys into each query and finalize.

    Parameters
    ----------
    reduction : Reduction
        What is kept.
    queries : array or Queries
        (n_queries, n_features); NumPy or Dask.
    keys : array, Keys, KeySource or PreparedKeys
        (n_keys, n_features); NumPy, Dask, or read block by block.
    kernel : Kernel, optional
        Who is near whom; not needed by reductions that work on `pairs` alone.
    pairs : array or PairSource, optional
        Data per pair, shape (n_queries, n_keys); a Dask array makes the results lazy.
    **how
        Options that were checked (`locpipe.options.Checked`).

    Returns
    -------
    tuple of float64 arrays
        What the reduction finalizes to.  Dask arrays, lazy and chunked as the queries, if
        queries or keys are Dask arrays.
    """
    missing = kernel is not None and kernel.allows_missing
    return fold_checked(
        reduction,
        as_queries(queries, allow_missing=missing),
        checked_keys(keys, allow_missing=missing),
        kernel,
        pairs,
        prepared=prepared_of(keys),
        **how,
    )


def fold_checked(
    reduction: Reduction,
    queries: Queries,
    keys: Keys | KeySource,
    kernel: Kernel | None = None,
    pairs: Any = None,
    *,
    prepared: PreparedKeys | None = None,
    weights_as_mask: bool = False,
    **how: Unpack[Checked],
) -> tuple[Array, ...]:
    """`fold` for rows that have come through `as_queries` and `checked_keys`.

    `prepared` is what the keys come from, if they were.  With `weights_as_mask` sample weights
    only say which keys are there.
    """
    pairs = None if pairs is None else as_pairs(pairs, "pairs")
    if pairs is None and not reduction.reads_kernel:
        raise InputError(
            f"{type(reduction).__name__} works on pairs, got pairs=None; give a matrix "
            "(n_queries, n_keys)"
        )
    op = Operation(reduction, kernel, pairs, how.get("empty", nan), weights_as_mask=weights_as_mask)
    queries, keys = _as_blocks(op, queries, keys)
    plan = plan_fold(op, queries, keys, spread=_spread(prepared), **how)
    op = replace(plan.op, key_rows=plan.key_rows)
    if isinstance(keys, Keys) or has_dask(queries):
        return fold_lazily(op, queries, keys, room_for_keys(plan))
    q = QueryBlock(**vars(queries))
    if plan.strategy == "symmetric" and isinstance(keys, ArrayKeys):
        return fold_symmetric(op, q, keys.block, plan.n_threads)
    return fold_in_memory(op, q, keys, plan, {} if prepared is None else prepared.summaries)


def plan_checked(
    op: Operation,
    queries: Queries,
    keys: Keys | KeySource,
    prepared: PreparedKeys | None = None,
    **how: Unpack[Checked],
) -> Plan:
    """The plan that `fold_checked` would follow."""
    queries, keys = _as_blocks(op, queries, keys)
    return plan_fold(op, queries, keys, spread=_spread(prepared), **how)


def _spread(prepared: PreparedKeys | None) -> Spread | None:
    return None if prepared is None else prepared.spread


def _as_blocks(op: Operation, queries: Queries, keys: Any) -> tuple[Queries, Keys | KeySource]:
    """Rows that fit each other; keys as a source, unless they are lazy."""
    queries, keys = _with_columns(queries), _with_columns(keys)
    _check_sizes(op, queries, keys)
    check_reduction(op, queries, keys)
    check_kinds(op, queries, keys)
    check_total(keys)
    if _reads_angles(op.kernel, queries.data.shape[1]):
        queries, keys = on_sphere(queries), on_sphere(keys)
        keys = replace(keys, angles=True) if isinstance(keys, CheckedKeys) else keys
    op.fallback()  # says now what it would say in a task
    return queries, keys if has_dask(keys) or lazy_pairs(op) else _source(keys)


def _check_sizes(op: Operation, queries: Queries, keys: Any) -> None:
    n_q, d = queries.data.shape
    n_k, d_k = keys.data.shape if isinstance(keys, Keys) else (keys.n_keys, keys.n_features)
    if op.kernel is None and op.reduction.reads_kernel:
        raise InputError(f"{type(op.reduction).__name__} needs a kernel, got None")
    if n_k == 0:
        raise InputError("there must be at least one key, got none")
    ranking = None if op.kernel is None else op.kernel.ranking()
    if ranking is not None and ranking.k > n_k:
        raise InputError(f"k must be at most the number of keys ({n_k}), got {ranking.k}")
    metric = "euclidean" if op.kernel is None else op.kernel.lower(d).metric
    if d != d_k and metric != "none":
        raise InputError(f"queries and keys must have as many features, got {d} and {d_k}")
    for source in op.pair_sources():
        if np.isnan([n_q, n_k]).any():
            raise InputError(
                "pairs need rows of known number, got Dask arrays of unknown chunk sizes; "
                "call compute_chunk_sizes() on queries and keys first"
            )
        if source.shape != (n_q, n_k):
            raise InputError(
                f"pairs must have shape (n_queries, n_keys) = ({n_q}, {n_k}), got {source.shape}"
            )


def _reads_angles(kernel: Kernel | None, n_features: int) -> bool:
    """Whether a kernel takes the coordinates for latitudes and longitudes."""
    factors = kernel.factors if isinstance(kernel, Product) else (kernel,)
    return any(f is not None and f.lower(n_features).metric == "haversine" for f in factors)


def _source(keys: Any) -> KeySource:
    if not isinstance(keys, Keys):
        source: KeySource = keys
        return source
    rows = dict(vars(keys))
    weight = log_weight(rows.pop("sample_weight"))
    return ArrayKeys(KeyBlock(**rows, log_sample_weight=weight))


def _with_columns(rows: Any) -> Any:
    """The rows with 1-d values as a column: (n,) would broadcast where (n, 1) is meant."""
    values = getattr(rows, "values", None)
    if not isinstance(rows, Queries | Keys) or values is None or values.ndim == 2:
        return rows
    return replace(rows, values=values[:, None])
