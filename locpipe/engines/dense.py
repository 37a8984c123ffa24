"""The reference engine: log weights of one tile at a time, any array library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, PairSource, QueryBlock, block_span, row_slices
from locpipe.engines.base import Need
from locpipe.engines.costs import kernel_ns, reduction_ns
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction, State

__all__ = [
    "TILE_KEYS",
    "TILE_QUERIES",
    "Dense",
    "concat_rows",
    "fold",
    "take_rows",
    "widen",
    "with_sample_weight",
]

# 256 x 256 float64 = 512 KiB: one array of a tile fills the second-level cache of one core.
TILE_QUERIES = 256
TILE_KEYS = 256
_PAIR_ARRAYS = 4
_FLOAT = 8


@dataclass(frozen=True)
class Dense:
    """Every pair in float64: serves all, and is what the others are tested against."""

    name: ClassVar[str] = "dense"

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """Nothing is refused."""
        return None

    @classmethod
    def seconds(cls, need: Need) -> float:
        """Seconds of one thread."""
        kernel = kernel_ns(need.kernel, need.n_features)
        return 1e-9 * need.n_pairs * (kernel + reduction_ns(need.reduction, need.n_outputs))

    @classmethod
    def build(cls, need: Need) -> Self:
        """The same for all."""
        return cls()

    def tile_bytes(self, need: Need) -> int:
        """Bytes of the temporaries of a tile."""
        kernel = need.kernel
        n_arrays = need.reduction.tile_arrays + (0 if kernel is None else kernel.tile_arrays)
        n_arrays += _PAIR_ARRAYS * need.has_pairs
        coordinates = 2 * (TILE_QUERIES + TILE_KEYS) * need.n_features
        return _FLOAT * (n_arrays * TILE_QUERIES * TILE_KEYS + coordinates)

    def fold(
        self,
        reduction: Reduction,
        state: Any,
        q: QueryBlock,
        k: KeyBlock,
        kernel: Kernel | None = None,
        pairs: PairSource | None = None,
    ) -> State:
        """`state` with the keys of a block folded in."""
        return fold(reduction, state, q, k, kernel, pairs)


def fold(
    reduction: Reduction,
    state: State,
    q: QueryBlock,
    k: KeyBlock,
    kernel: Kernel | None = None,
    pairs: PairSource | None = None,
    tile_keys: int = TILE_KEYS,
) -> State:
    """`state` with the keys of a block folded in, so many at a time.

    Coordinates are widened to float64 first, so float32 data keeps its accuracy far from the
    origin; only a tile of pairs exists at any time.

    Notes
    -----
    O(n_queries n_keys n_features) time, one tile of memory.
    """
    if q.n_rows == 0 or k.n_rows == 0:
        return state
    _keep_freed_tiles()
    q, k = widen(q), widen(k)
    tiles = [k.rows(columns) for columns in row_slices(k.n_rows, tile_keys)]
    if q.n_rows <= TILE_QUERIES:
        return _fold_tiles(reduction, state, q, tiles, kernel, pairs)
    xp = array_namespace(*state)
    whole = type(state)(*(xp.empty_like(array) for array in state))
    for rows in row_slices(q.n_rows, TILE_QUERIES):
        part = _fold_tiles(reduction, take_rows(state, rows), q.rows(rows), tiles, kernel, pairs)
        for array, new in zip(whole, part, strict=True):
            array[rows, ...] = new
    return whole


@lru_cache(maxsize=1)
def _keep_freed_tiles() -> None:
    """Teach the allocator that tiles come again.

    The C library on Linux hands freed memory back to the system as soon as there is more of it
    than twice the largest block ever handed back, which the temporaries of a tile are: half of the
    time then goes into pages that come and go.  One block of 8 MiB, freed untouched, raises that
    bound for good.
    """
    np.empty(8 * 2**20, dtype=np.uint8)


def _fold_tiles(
    reduction: Reduction,
    state: State,
    q: QueryBlock,
    tiles: Sequence[KeyBlock],
    kernel: Kernel | None,
    pairs: PairSource | None,
) -> State:
    for tile in tiles:
        log_w = _log_weights(kernel, q, tile) if kernel is not None else None
        pair = None if pairs is None else pairs.tile(block_span(q), block_span(tile))
        state = reduction.update(state, log_w, q, tile, pair)
    return state


def _log_weights(kernel: Kernel, q: QueryBlock, k: KeyBlock) -> Array:
    return with_sample_weight(kernel.log_weights(q, k), k)


def with_sample_weight(log_w: Array, k: KeyBlock) -> Array:
    """Log weights with those of the keys added, where they have any."""
    return log_w if k.log_sample_weight is None else log_w + k.log_sample_weight[None, :]


def widen(block: Any) -> Any:
    """The block with every numeric array but ids and times in float64."""
    xp = array_namespace(block.data)
    names = ("data", "values", "bandwidth", "log_sample_weight")
    narrow = {
        name: xp.astype(array, xp.float64)
        for name in names
        if (array := getattr(block, name, None)) is not None and array.dtype != xp.float64
    }
    return replace(block, **narrow) if narrow else block


def take_rows(state: Any, rows: slice) -> State:
    """Part of a state, as views."""
    cut: State = type(state)(*(array[rows, ...] for array in state))
    return cut


def concat_rows(parts: list[Any]) -> tuple[Array, ...]:
    """Tuples of arrays as one, row after row; a named tuple keeps its names."""
    xp = array_namespace(*parts[0])
    columns = [xp.concat(arrays, axis=0) for arrays in zip(*parts, strict=True)]
    kind = type(parts[0])
    return kind(*columns) if hasattr(kind, "_fields") else tuple(columns)
