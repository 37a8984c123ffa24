"""Weights that were computed elsewhere, read by tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, PairSource, QueryBlock, block_span
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel, KernelSpec
from locpipe.pairs import as_pairs, unmasked

__all__ = ["Precomputed"]


_WHAT, _ADVICE = "precomputed weights", "give 0 where a pair has none"


@dataclass(frozen=True, repr=False)
class Precomputed(Kernel):
    """A weight per (query, key) pair, given as a matrix or a `PairSource`.

    Parameters
    ----------
    pairs : array (n_queries, n_keys), NumPy or Dask, scipy.sparse matrix, or PairSource
        Non-negative weights; 0, and what a sparse matrix does not store, means no neighbour.
        Rows and columns go by global row index.  A Dask array stays lazy.

    Raises
    ------
    InputError
        If it is not a matrix of real numbers, or masked.  While tiles are read: a weight is
        negative, infinite, NaN or masked.

    Notes
    -----
    Two such kernels are equal only if they share one `PairSource`.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> kernel = lp.kernels.Precomputed(np.array([[1.0, 3.0]]))
    >>> print(lp.local_mean([0.0], [0.0, 0.0], [4.0, 8.0], kernel))
    [7.]
    """

    pairs: Any
    tile_arrays = 7  # a full tile of a sparse matrix

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", as_pairs(self.pairs, _WHAT))

    def __repr__(self) -> str:
        return f"Precomputed(pairs of shape {tuple(self.pairs.shape)})"

    @property
    def allows_missing(self) -> bool:
        """Coordinates are not looked at."""
        return True

    def pair_sources(self) -> tuple[PairSource, ...]:
        """The one source."""
        return (self.pairs,)

    def with_pair_sources(self, change: Callable[[PairSource], PairSource]) -> Precomputed:
        """Weights read from ``change(source)``."""
        return Precomputed(change(self.pairs))

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Log of the tile's weights; ``-inf`` for a weight of 0."""
        tile = unmasked(self.pairs.tile(block_span(q), block_span(k))[0], _WHAT, _ADVICE)
        xp = array_namespace(tile)
        w = xp.astype(tile, xp.float64, copy=False)
        if not bool(xp.all((w >= 0) & (w < xp.inf))):
            raise InputError(
                f"{_WHAT} must be finite non-negative numbers, and some are negative, infinite or "
                f"NaN; {_ADVICE}"
            )
        some = w > 0
        log_w = xp.log(xp.where(some, w, xp.ones((), dtype=w.dtype)))
        return xp.where(some, log_w, xp.asarray(-xp.inf, dtype=w.dtype))

    def lower(self, n_features: int) -> KernelSpec:
        """Nothing is known but the tiles."""
        return KernelSpec()
