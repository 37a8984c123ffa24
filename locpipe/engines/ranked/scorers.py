"""Scores of all pairs of a tile, and what they may be wrong by."""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp
from typing import Any, Protocol

import numpy as np

from locpipe.engines.ranked.best import Best, Bound, Pairs, Rows, fold_tile, room_for
from locpipe.engines.ranked.loops import (
    MANHATTAN,
    MISSING,
    SQUARED,
    centre_rows,
    pair_scores,
    squared_lengths,
)
from locpipe.engines.ranked.sides import Side, read_only

__all__ = ["DOUBLE", "EXACT", "SINGLE", "Scorer", "product_slack", "scorer"]

SINGLE, DOUBLE, EXACT = range(3)
"""Scores by a product in float32, by one in float64, and from differences."""
_KINDS = {"euclidean": SQUARED, "cosine": SQUARED, "manhattan": MANHATTAN, "nan-euclidean": MISSING}
_SAMPLE = 64
_LARGEST_SINGLE = 1e30
_MEASURED = 1 / 8
"""Share of a tile's pairs beyond which measuring them costs more than better scores."""
_FAR, _PLAIN_REACH = 4.0, 1e6
"""Rows in this range are multiplied as they are, unless their spread is a small part of them."""


class Scorer(Protocol):
    """Keys of one tile, ready to meet queries."""

    def fold(
        self, q: Side, best: Best, allowed: np.ndarray | None, first: int, room: np.ndarray
    ) -> int:
        """Fold the keys into the queries from row `first`; the first row that was not done.

        `room` holds 8 bytes per pair, for the scores.
        """


def scorer(level: int, metric: str, keys: Side, queries: Side) -> Scorer:
    """The scorer of a level for some keys; of `queries` the size is looked at."""
    factor = 0.5 if metric == "cosine" else 1.0
    if level == EXACT:
        features = np.ascontiguousarray(keys.data.T, dtype=np.float64)
        return _Differences(_KINDS[metric], factor, keys, features)
    return _product(np.float32 if level == SINGLE else np.float64, factor, keys, queries)


@dataclass(frozen=True, eq=False)
class _Differences:
    """Surrogates themselves, to the bit of the reference."""

    kind: int
    factor: float
    keys: Side
    features: np.ndarray

    def fold(
        self, q: Side, best: Best, allowed: np.ndarray | None, first: int, room: np.ndarray
    ) -> int:
        """All of them."""
        near = _scores(room, np.float64, q.data.shape[0], self.features.shape[1])
        pair_scores(q.data, self.features, self.kind, self.factor, near)
        near[q.none] = -1.0
        near[:, self.keys.none] = -1.0
        pairs = Pairs(_masked(near, allowed), np.zeros(near.shape[1]))
        bound = Bound(0.0, 0.0, 2.0, self.factor, True)
        rows, keys = (_rows(s, np.zeros(s.data.shape[0])) for s in (q, self.keys))
        work = room_for(near.shape[1], best.score.shape[1])
        return int(fold_tile(rows, keys, pairs, bound, best, first, np.inf, work))


@dataclass(frozen=True)
class _Frame:
    """Where rows are multiplied: around a centre in a unit, or as they are where None."""

    dtype: Any
    centre: np.ndarray | None
    scale: float

    def rows(self, x: np.ndarray) -> np.ndarray:
        """Rows as they are multiplied."""
        if self.centre is None:
            return x
        moved = np.empty(x.shape, dtype=self.dtype)
        centre_rows(x, self.centre, self.scale, moved)
        return read_only(moved)


@dataclass(frozen=True, eq=False)
class _Products:
    """Scores by a matrix product.

    With ``x`` and ``y`` the rows as they are multiplied, ``score = x.y - (1 - c) |y|^2 / 2``, and
    ``(1 - c) |x|^2 - 2 score`` is a lower bound of the squared distance as the reference rounds it.
    `product_slack` gives ``c``.
    """

    frame: _Frame
    keys: Rows
    moved: np.ndarray
    half: np.ndarray
    bound: Bound

    def fold(
        self, q: Side, best: Best, allowed: np.ndarray | None, first: int, room: np.ndarray
    ) -> int:
        """Nothing where the numbers leave the range of the product's dtype."""
        moved = self.frame.rows(q.data)
        squares = squared_lengths(moved)
        if not (_fits(squares, moved.dtype) and _fits(self.keys.squares, moved.dtype)):
            return first
        near = _scores(room, moved.dtype, moved.shape[0], self.moved.shape[0])
        np.matmul(moved, self.moved.T, out=near)
        pairs = Pairs(_masked(near, allowed), self.half)
        work = room_for(near.shape[1], best.score.shape[1])
        rows, most = _rows(q, squares), _MEASURED * near.shape[1]
        return int(fold_tile(rows, self.keys, pairs, self.bound, best, first, most, work))


def _product(dtype: Any, factor: float, keys: Side, queries: Side) -> _Products:
    frame = _frame(dtype, _sample(keys), _sample(queries), keys.data.dtype == dtype)
    moved = frame.rows(keys.data)
    squares = squared_lengths(moved)
    slack, tiny = product_slack(dtype, moved.shape[1])
    weight = frame.scale * frame.scale / factor
    half = (0.5 * (1.0 - slack) * squares).astype(dtype)
    bound = Bound(slack, tiny + moved.shape[1] * weight * 2.0**-1060, weight, factor, False)
    return _Products(frame, _rows(keys, squares), moved, half, bound)


def _frame(dtype: Any, keys: np.ndarray, queries: np.ndarray, same: bool) -> _Frame:
    """The frame for rows like these; no move where it would hardly shorten them."""
    centre = keys.mean(axis=0)
    reach = max(_reach(keys - centre), _reach(queries - centre))
    largest = max(_reach(keys), _reach(queries))
    if same and largest <= _FAR * reach and 1 / _PLAIN_REACH < reach < _PLAIN_REACH:
        return _Frame(dtype, None, 1.0)
    return _Frame(dtype, centre, _power_of_two(reach))


def product_slack(dtype: Any, d: int) -> tuple[float, float]:
    """Factor ``c`` on ``|x|^2 + |y|^2`` that bounds the error of a score, and what underflows.

    In units of the roundoff u of the product, on ``|x|^2 + |y|^2``: d from the product in any
    order of sums (Higham 2002, eq. 3.5), 4 from moving the rows, 1 from ``|y|^2``, 2 from the
    difference, 5 from the bound that it is compared with.  In units of that of float64: d from
    the squares, 2 (d + 2) from the reference itself.
    """
    u, least = float(np.finfo(dtype).eps) / 2, float(np.finfo(dtype).tiny)
    return 1.1 * ((d + 16) * u + (3 * d + 16) * 2.0**-53), (d + 16) * 64 * least


def _scores(room: np.ndarray, dtype: Any, n_queries: int, n_keys: int) -> np.ndarray:
    near: np.ndarray = room.view(dtype)[: n_queries * n_keys].reshape(n_queries, n_keys)
    return near


def _masked(near: np.ndarray, allowed: np.ndarray | None) -> np.ndarray:
    """The scores with those that masks forbid taken out, in place."""
    if allowed is not None:
        near[~allowed] = -np.inf
    return near


def _fits(squares: np.ndarray, dtype: Any) -> bool:
    return dtype == np.float64 or bool(np.max(squares, initial=0.0) < _LARGEST_SINGLE)


def _sample(side: Side) -> np.ndarray:
    return side.data[:: max(1, side.data.shape[0] // _SAMPLE)].astype(np.float64)


def _reach(moved: np.ndarray) -> float:
    return float(np.abs(moved).max(initial=0.0))


def _power_of_two(reach: float) -> float:
    """What brings `reach` near 1 without rounding anything."""
    exponent = frexp(reach)[1] if reach > 0 else 0
    return float(2.0 ** -max(-500, min(500, exponent)))


def _rows(side: Side, squares: np.ndarray) -> Rows:
    return Rows(side.data, side.none, squares, side.ids, side.index)
