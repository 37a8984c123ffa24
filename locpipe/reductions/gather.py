"""The k best keys themselves: what they are, where, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.errors import InputError
from locpipe.reductions.base import NO_KEY, Reduction, check_outputs, check_whole, full
from locpipe.reductions.top_k import best_columns, best_order

__all__ = ["Gather", "Gathered"]


class Gathered(NamedTuple):
    """Keys per query, best first.

    Attributes
    ----------
    log_weight : array (n_queries, k)
    index : int64 array (n_queries, k)
    data : array (n_queries, k, n_features)
    values : array (n_queries, k, n_outputs)
    """

    log_weight: Array
    index: Array
    data: Array
    values: Array


@dataclass(frozen=True)
class Gather(Reduction):
    """The `k` keys of largest log weight per query, rows and values with them.

    For what needs a neighbourhood as a whole, such as local polynomials whose moments are too
    many to stream (`gathered_moments`, `local_designs`).  Finalizes to `Gathered`, ordered as
    by `TopK`; places without a key hold ``-inf``, -1 and the empty value.

    Parameters
    ----------
    k : int
    n_features : int
        Columns of the keys.
    n_outputs : int
        Columns of their values; 0 without values.

    Notes
    -----
    The state is ``k (2 + n_features + n_outputs)`` numbers per query.
    """

    k: int
    n_features: int
    n_outputs: int = 0
    ranks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name, least in (("k", 1), ("n_features", 1), ("n_outputs", 0)):
            check_whole(self, name, least)

    @property
    def tile_arrays(self) -> int:
        """As of `TopK`."""
        return 4

    def check(self, *, query_features: int, key_features: int, n_outputs: int) -> None:
        """Rows and values as wide as there is room for."""
        if key_features != self.n_features:
            raise InputError(
                f"Gather was made for n_features={self.n_features}, got keys with {key_features} "
                "feature(s); the two must be equal"
            )
        if self.n_outputs:
            check_outputs(self, self.n_outputs, n_outputs)

    def init(self, q: QueryBlock) -> Gathered:
        """No key yet."""
        xp = array_namespace(q.data)
        index = xp.full((q.n_rows, self.k), NO_KEY, dtype=xp.int64)
        data, values = (full(q, (self.k, n), 0.0) for n in (self.n_features, self.n_outputs))
        return Gathered(full(q, (self.k,), float("-inf")), index, data, values)

    def update(
        self, state: Any, log_w: Any, q: QueryBlock, k: KeyBlock, pair: Tile | None = None
    ) -> Gathered:
        """Keep the best of the old and the tile's."""
        xp = array_namespace(log_w)
        column = xp.astype(best_columns(log_w, min(self.k, k.n_rows)), xp.int64)
        score = xp.take_along_axis(log_w, column, axis=1)
        missing = score == -xp.inf
        index = xp.where(missing, xp.asarray(NO_KEY, dtype=xp.int64), column + k.start)
        data = _rows_at(k.data, column, missing)
        values = _rows_at(k.values, column, missing) if self.n_outputs else None
        values = state.values[:, : column.shape[1], :] if values is None else values
        return self.merge(state, Gathered(score, index, data, values))

    def merge(self, a: Any, b: Any) -> Gathered:
        """Best k of both by (log weight descending, index ascending)."""
        xp = array_namespace(a.log_weight)
        both = [xp.concat(pair, axis=1) for pair in zip(a, b, strict=True)]
        order = best_order(both[0], both[1], self.k)
        rows = xp.arange(order.shape[0], dtype=order.dtype)[:, None] * both[0].shape[1]
        flat = xp.reshape(rows + order, (-1,))
        return Gathered(*(_taken(array, flat, order.shape) for array in both))

    def finalize(self, state: Any, empty: float) -> Gathered:
        """What was gathered; an empty place has index -1."""
        xp = array_namespace(state.index)
        missing = state.index == NO_KEY
        fill = xp.asarray(empty, dtype=state.data.dtype)
        data, values = (
            xp.where(missing[:, :, None], fill, array) for array in (state.data, state.values)
        )
        index = xp.where(missing, xp.asarray(-1, dtype=xp.int64), state.index)
        return Gathered(state.log_weight, index, data, values)


def _rows_at(rows: Array, column: Array, missing: Array) -> Array:
    """Rows of a block per place (n_queries, k, n); 0 where there is none."""
    xp = array_namespace(rows)
    taken = _taken(rows[:, None, ...], xp.reshape(column, (-1,)), column.shape)
    return xp.where(missing[:, :, None], xp.zeros((), dtype=taken.dtype), taken)


def _taken(array: Array, flat: Array, shape: tuple[int, ...]) -> Array:
    """Places `flat` of the first two axes taken together, as `shape`."""
    xp, rest = array_namespace(array), tuple(array.shape[2:])
    taken = xp.take(xp.reshape(array, (array.shape[0] * array.shape[1], *rest)), flat, axis=0)
    return xp.reshape(taken, (*shape, *rest))
