"""Keys as they came, and what is made of them when the first query asks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Shelf"]


@dataclass(frozen=True, eq=False)
class Shelf:
    """Keys as they came.

    Attributes
    ----------
    data : tuple of float arrays (n_i, n_features)
    index, ids : tuples of integer arrays (n_i,)
        `ids` of any type, or of no rows where pairs of equal ids are kept.
    left : bool
        Whether all is left to pairs: weights take part in the score, or ids are no integers.
    """

    data: tuple[np.ndarray, ...]
    index: tuple[np.ndarray, ...]
    ids: tuple[np.ndarray, ...]
    left: bool = False
    _made: list[Any] = field(default_factory=list, init=False, repr=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False)

    def __reduce__(self) -> Any:
        return Shelf, (self.data, self.index, self.ids, self.left)

    @property
    def n_keys(self) -> int:
        """Keys of all parts."""
        return sum(map(len, self.data))

    def merge(self, other: Shelf) -> Shelf:
        """The keys of both."""
        return Shelf(
            self.data + other.data,
            self.index + other.index,
            self.ids + other.ids,
            self.left or other.left,
        )

    def rows(self, places: np.ndarray) -> np.ndarray:
        """The keys at some places among all, which ascend; in the dtype that holds all."""
        edges = np.cumsum([0, *map(len, self.data)])
        cuts = np.searchsorted(places, edges)
        parts = [
            part[places[a:b] - edge]
            for part, edge, a, b in zip(self.data, edges, cuts, cuts[1:], strict=False)
            if a < b
        ]
        return np.concatenate(parts, dtype=np.result_type(*self.data))

    def made(self, build: Callable[[Shelf], Any]) -> Any:
        """What `build` makes of the keys; made once."""
        with self._lock:
            if not self._made:
                self._made.append(build(self))
        return self._made[0]

    def in_order(self) -> Shelf:
        """The parts that hold keys, by ascending index."""
        parts = [part for part in zip(self.data, self.index, self.ids, strict=True) if len(part[0])]
        parts.sort(key=lambda part: int(part[1][0]))
        data, index, ids = zip(*parts, strict=True)
        return Shelf(data, index, ids)
