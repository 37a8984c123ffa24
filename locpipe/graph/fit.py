"""Whether rows, pairs and the reduction fit each other, as far as metadata tells."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace

from locpipe.blocks import ArrayPairs
from locpipe.errors import InputError
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.operation import Operation
from locpipe.graph.sources import ArrayKeys

__all__ = ["check_kinds", "check_reduction"]

_TOGETHER = {"dask.array": "numpy"}
"""Dask arrays have chunks of NumPy, and go with it."""


def check_reduction(op: Operation, queries: Queries, keys: Any) -> None:
    """Ask the reduction whether the rows have as many columns as it was made for.

    Raises
    ------
    InputError
        Naming both numbers.
    """
    if isinstance(keys, Keys):
        width = keys.data.shape[1]
        n_outputs = 0 if keys.values is None else keys.values.shape[1]
    else:
        width, n_outputs = keys.n_features, keys.n_outputs or 0
    d = int(queries.data.shape[1])
    op.reduction.check(query_features=d, key_features=int(width), n_outputs=int(n_outputs))


def check_kinds(op: Operation, queries: Queries, keys: Any) -> None:
    """Refuse arrays of two libraries.

    Raises
    ------
    InputError
        Naming both.
    """
    held = keys.block if isinstance(keys, ArrayKeys) else keys
    given = {f"{name} of the queries": array for name, array in _arrays(queries)}
    given |= {f"{name} of the keys": array for name, array in _arrays(held)}
    given |= {
        f"pairs number {i}": source.delta
        for i, source in enumerate(op.pair_sources())
        if isinstance(source, ArrayPairs)
    }
    kinds = {what: _library(array) for what, array in given.items()}
    first = kinds["data of the queries"]
    for what, kind in kinds.items():
        if _TOGETHER.get(kind, kind) != _TOGETHER.get(first, first):
            raise InputError(
                f"all arrays must be of one library, got data of the queries of {first} and "
                f"{what} of {kind}; convert one of them"
            )


def _arrays(rows: Any) -> list[tuple[str, Any]]:
    given = vars(rows).items() if hasattr(rows, "data") else ()
    return [(name, array) for name, array in given if hasattr(array, "shape")]


def _library(array: Any) -> str:
    """Name of the library that an array belongs to."""
    name: str = array_namespace(array).__name__
    return name.removeprefix("array_api_compat.")
