"""The engines of a fold: from what its rows are, by metadata, and from where the keys lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from locpipe.engines import Engine, Need, Spread, SummaryEngine, choices, pairwise
from locpipe.engines.base import PairEngine
from locpipe.engines.dense import Dense
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.operation import Operation
from locpipe.graph.place import Place
from locpipe.graph.sizes import Sizes
from locpipe.graph.sources import ArrayKeys, KeySource

__all__ = ["Chosen", "with_engines"]

_DEFAULT_RTOL = {32: 1e-6, 64: 1e-10}
_WORTH_A_LOOK_SECONDS = 0.2
"""Work of the reference engine from which a look at where the keys lie costs nothing."""
_FEW_FEATURES = 8
_TO_BE_LOOKED_AT = ("auto", "pruned", "spectral")


@dataclass(frozen=True)
class Chosen:
    """An operation with its engine, what the engine was asked, and what the first pass was.

    Attributes
    ----------
    op : Operation
    need : Need
    ranking : Need or None
        What the engine of the first pass was asked, where there is one.
    """

    op: Operation
    need: Need
    ranking: Need | None = None

    @property
    def engine(self) -> Engine:
        """The engine that answers; its rows in doubt go to `Operation.pairwise`."""
        engine: Engine = self.op.engine or self.op.pairwise  # type: ignore[assignment]
        return engine

    @property
    def compiles(self) -> bool:
        """Whether anything but the reference engine is at work."""
        engines = (self.op.engine or self.op.pairwise, self.op.pairwise, self.op.ranker)
        return not all(isinstance(engine, Dense) for engine in engines)

    def seconds(self) -> float:
        """Seconds of one thread, over all passes."""
        passes = [(self.engine, self.need), (self.op.ranker, self.ranking)]
        return sum(_seconds(engine, need) for engine, need in passes if need is not None)


def _seconds(engine: Any, need: Need) -> float:
    return float(getattr(engine, "seconds", Dense.seconds)(need))


def with_engines(
    op: Operation,
    queries: Queries,
    keys: Keys | KeySource,
    sizes: Sizes,
    place: Place,
    *,
    engine: str | PairEngine | SummaryEngine,
    rtol: float | None,
    spread: Spread | None,
) -> Iterator[Chosen]:
    """`op` with the engine of that name, or the one that is given; with several, best first.

    Those of ``"auto"`` end with the reference engine for all passes, which needs least memory.

    Raises
    ------
    InputError
        If the engine cannot serve: why, and which can.
    """
    need = _need(op, queries, keys, sizes, place, rtol)
    ranking = _ranking(op, need)
    if not isinstance(engine, str):
        yield Chosen(_given(op, engine), need, ranking)
        return
    need = replace(need, spread=_looked_at(engine, need, keys) if spread is None else spread)
    ranker = Dense() if ranking is None or engine == "dense" else pairwise(ranking)
    for one in choices(engine, need):
        yield Chosen(_given(replace(op, ranker=ranker), one, need), need, ranking)
    if engine == "auto" and not isinstance(ranker, Dense):
        yield Chosen(op, need, ranking)


def _given(op: Operation, engine: Any, need: Need | None = None) -> Operation:
    if isinstance(engine, SummaryEngine):
        repairs = op.pairwise if need is None else pairwise(need)
        return replace(op, engine=engine, pairwise=repairs)
    return replace(op, pairwise=engine)


def _need(
    op: Operation,
    queries: Queries,
    keys: Keys | KeySource,
    sizes: Sizes,
    place: Place,
    rtol: float | None,
) -> Need:
    held = keys.block if isinstance(keys, ArrayKeys) else keys
    of_rows = {"queries": vars(queries), "keys": vars(held) if hasattr(held, "data") else {}}
    numbers = [of_rows[rows].get(name) for rows in of_rows for name in ("data", "values")]
    single = hasattr(held, "data") and all(_bits(a) == 32 for a in numbers if a is not None)
    return Need(
        kernel=op.kernel,
        reduction=op.reduction,
        n_queries=sizes.n_queries or sizes.n_keys,
        n_keys=sizes.n_keys,
        n_features=sizes.n_features,
        n_outputs=sizes.n_outputs,
        rtol=_DEFAULT_RTOL.get(_bits(queries.data), 1e-10) if rtol is None else rtol,
        library=_library(queries.data),
        single=single,
        attributes=_attributes(of_rows),
        has_pairs=bool(op.pair_sources()),
        n_threads=place.pool,
        n_blocks=max(1, sizes.n_groups),
    )


def _ranking(op: Operation, need: Need) -> Need | None:
    """What the first pass asks."""
    first = op.first_pass()
    if first is None:
        return None
    return replace(need, kernel=first.kernel, reduction=first.reduction, has_pairs=False)


def _attributes(of_rows: dict[str, dict[str, Any]]) -> frozenset[str]:
    names = {"log_sample_weight": "sample_weight"}
    return frozenset(
        f"{rows}.{names.get(name, name)}"
        for rows, arrays in of_rows.items()
        for name, array in arrays.items()
        if array is not None and name not in ("data", "start") and not name.startswith("_")
    )


def _bits(array: Any) -> int:
    return int(array.dtype.itemsize) * 8 if hasattr(array.dtype, "itemsize") else 64


def _library(array: Any) -> str:
    """Name of the library of an array, or of its chunks."""
    name: str = array_namespace(getattr(array, "_meta", array)).__name__
    return name.removeprefix("array_api_compat.")


def _looked_at(engine: str, need: Need, keys: Keys | KeySource) -> Spread | None:
    """Where keys in memory lie, if it matters; others have to be prepared."""
    if engine not in _TO_BE_LOOKED_AT or not isinstance(keys, ArrayKeys):
        return None
    if need.library not in ("numpy", "cupy") or need.n_features > _FEW_FEATURES:
        return None
    if engine == "auto" and Dense.seconds(need) < _WORTH_A_LOOK_SECONDS:
        return None
    return _spread(keys)


def _spread(keys: ArrayKeys) -> Spread | None:
    block = keys.block
    data, weight = _on_host(block.data), None
    if block.log_sample_weight is not None:
        log_weight = _on_host(block.log_sample_weight)
        data, log_weight = data[log_weight > -inf], log_weight[log_weight > -inf]
        weight = np.exp(log_weight - log_weight.max(initial=-inf))
    if len(data) == 0 or not np.isfinite(data).all():
        return None
    # A column at a time: reductions along the rows of narrow arrays are slow.
    columns = (np.ascontiguousarray(data[:, j], np.float64) for j in range(data.shape[1]))
    numbers = [_of_column(column, weight) for column in columns]
    return Spread(*zip(*numbers, strict=True))


def _on_host(array: Any) -> Any:
    return np.asarray(array.get() if hasattr(array, "get") else array)


def _of_column(column: Any, weight: Any) -> tuple[float, float, float, float]:
    """Least, largest, mean and variance."""
    mean = float(np.average(column, weights=weight))
    gap = column - mean
    variance = float(np.average(gap * gap, weights=weight))
    return float(column.min()), float(column.max()), mean, variance
