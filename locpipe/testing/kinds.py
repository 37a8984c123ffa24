"""The same rows as arrays of another library."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.graph import Keys, Queries

__all__ = ["as_keys", "as_kind", "as_queries", "block_as_kind"]


def as_kind(array: Any, kind: str, chunks: tuple[int, ...] | None = None) -> Any:
    """A NumPy array as ``"numpy"``, ``"strict"`` or ``"dask"`` (with these row chunks).

    Examples
    --------
    >>> as_kind(np.zeros((3, 2)), "dask", (2, 0, 1)).chunks
    ((2, 0, 1), (2,))
    """
    if kind == "strict":
        return _strict().asarray(array)
    if kind == "dask":
        import dask.array as da

        rest = array.shape[1:]
        return da.from_array(array, chunks=(chunks or (len(array),), *((n,) for n in rest)))
    return array


def _strict() -> Any:
    try:
        import array_api_strict
    except ImportError as error:
        raise ImportError(
            "comparing with array-api-strict needs it; install it with: "
            'pip install array-api-strict, or leave "strict" out of kinds'
        ) from error
    return array_api_strict


def block_as_kind(block: Any, kind: str) -> Any:
    """A block with all its arrays as another kind."""
    arrays = {f.name: getattr(block, f.name) for f in fields(block) if f.name != "start"}
    return replace(block, **{k: as_kind(a, kind) for k, a in arrays.items() if a is not None})


def as_queries(q: QueryBlock, kind: str = "numpy", chunks: Any = None) -> Queries:
    """`lp.Queries` of a block's rows; with ``"dask"`` in these chunks."""
    return Queries(**_rows(q, Queries, kind, chunks))


def as_keys(k: KeyBlock, kind: str = "numpy", chunks: Any = None) -> Keys:
    """`lp.Keys` of a block's rows; with ``"dask"`` in these chunks."""
    given = _rows(k, Keys, kind, chunks)
    if k.log_sample_weight is not None:
        given["sample_weight"] = as_kind(np.exp(k.log_sample_weight), kind, chunks)
    return Keys(**given)


def _rows(block: Any, target: Any, kind: str, chunks: Any) -> dict[str, Any]:
    given = {f.name: getattr(block, f.name, None) for f in fields(target)}
    return {name: as_kind(a, kind, chunks) for name, a in given.items() if a is not None}
