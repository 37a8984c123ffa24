"""Queries and keys in the form that distances are formed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines.ranked.loops import unit_rows
from locpipe.engines.ranked.score import Score, whole_ids

__all__ = ["Side", "directions", "read_only", "sides_of"]


@dataclass(frozen=True, eq=False)
class Side:
    """Queries or keys.

    Attributes
    ----------
    data : array (n, n_features), C order, read-only
        float32 or float64, the same on both sides.
    none : bool array (n,)
        Rows without a direction.
    ids, index : int64 arrays
        As in `locpipe.engines.ranked.best.Rows`.
    """

    data: np.ndarray
    none: np.ndarray
    ids: np.ndarray
    index: np.ndarray

    def rows(self, part: slice) -> Side:
        """Part of the side, as views."""
        return Side(self.data[part], self.none[part], self.ids[part], self.index[part])


def sides_of(score: Score, q: QueryBlock, k: KeyBlock, index: np.ndarray) -> tuple[Side, Side]:
    """Both sides of a fold; `index` holds the global index of each key."""
    pair = np.asarray(q.data), np.asarray(k.data)
    rows = _directions(*pair) if score.metric == "cosine" else _as_given(*pair)
    ids = whole_ids(score, q, k) or (_NO_IDS, _NO_IDS)
    return Side(*rows[0], ids[0], _NO_IDS), Side(*rows[1], ids[1], index)


_NO_IDS = np.zeros(0, dtype=np.int64)


def _as_given(*sides: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    single = all(x.dtype == np.float32 for x in sides)
    dtype = np.float32 if single else np.float64
    return [
        (read_only(np.asarray(x, dtype=dtype)), np.zeros(len(x), dtype=np.bool_)) for x in sides
    ]


def directions(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit rows in float64, to the bit of the metric; and which rows are zeros, and stay so."""
    unit = np.zeros(x.shape)
    return unit, unit_rows(read_only(x), unit)


def _directions(*sides: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Unit rows; a row of zeros gets a direction of its side's own, at distance 1 from all."""
    found = [directions(x) for x in sides]
    if any(none.any() for _, none in found):
        found = [(_apart(unit, none, side), none) for side, (unit, none) in enumerate(found)]
    return [(read_only(unit), none) for unit, none in found]


def _apart(unit: np.ndarray, none: np.ndarray, side: int) -> np.ndarray:
    wider = np.pad(unit, ((0, 0), (0, 2)))
    wider[none, side - 2] = 1.0
    return wider


def read_only(x: np.ndarray) -> np.ndarray:
    """Read-only and in C order, so that loops are compiled for that kind alone."""
    view = np.ascontiguousarray(x).view()
    view.flags.writeable = False
    return view
