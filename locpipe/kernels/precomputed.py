"""Weights that were computed elsewhere, read by tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array, ArrayPairs, KeyBlock, PairSource, QueryBlock, block_span
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel, KernelSpec

__all__ = ["Precomputed"]


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A weight per (query, key) pair, given as a matrix or a `PairSource`.

    Parameters
    ----------
    pairs : array (n_queries, n_keys) or PairSource
        Non-negative weights; 0 means no neighbour.  Rows and columns go by global row index.

    Raises
    ------
    InputError
        While tiles are read: a weight is negative or NaN.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> kernel = lp.kernels.Precomputed(np.array([[1.0, 3.0]]))
    >>> print(lp.local_mean([0.0], [0.0, 0.0], [4.0, 8.0], kernel))
    [7.]
    """

    pairs: Any

    def __post_init__(self) -> None:
        if not isinstance(self.pairs, PairSource):
            object.__setattr__(self, "pairs", ArrayPairs(np.asarray(self.pairs)))

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Log of the tile's weights; ``-inf`` for a weight of 0."""
        tile = self.pairs.tile(block_span(q), block_span(k))[0]
        xp = array_namespace(tile)
        w = xp.astype(tile, xp.float64, copy=False)
        if not bool(xp.all(w >= 0)):
            raise InputError(
                "precomputed weights must be non-negative numbers, and some are negative or NaN; "
                "give 0 where a pair has none"
            )
        some = w > 0
        log_w = xp.log(xp.where(some, w, xp.ones((), dtype=w.dtype)))
        return xp.where(some, log_w, xp.asarray(-xp.inf, dtype=w.dtype))

    def lower(self, n_features: int) -> KernelSpec:
        """Nothing is known but the tiles."""
        return KernelSpec()
