"""Two blocks of rows that are queries and keys of each other: each pair is weighed once."""

from __future__ import annotations

from typing import Any, NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_slices
from locpipe.engines import dense
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction, State

__all__ = ["Rows", "fold_mutual"]


class Rows(NamedTuple):
    """The same rows as queries and as keys."""

    q: QueryBlock
    k: KeyBlock


def fold_mutual(
    reduction: Reduction, states: tuple[State, State], a: Rows, b: Rows, kernel: Kernel
) -> tuple[State, State]:
    """States of `a` over the keys of `b` and of `b` over the keys of `a`, folded in.

    `kernel` must be symmetric: the log weights of a tile serve one side as they are and the
    other transposed.

    Notes
    -----
    O(n_a n_b n_features) time for the log weights, half of what two folds take.
    """
    if a.q.n_rows == 0 or b.q.n_rows == 0:
        return states
    a, b = _widened(a), _widened(b)
    tiles_a, tiles_b = _tiles(a, states[0]), _tiles(b, states[1])
    for i, (part_a, state_a) in enumerate(tiles_a):
        for j, (part_b, state_b) in enumerate(tiles_b):
            log_w = kernel.log_weights(part_a.q, part_b.k)
            state_a = _update(reduction, state_a, log_w, part_a.q, part_b.k)
            back = array_namespace(log_w).permute_dims(log_w, (1, 0))
            tiles_b[j] = (part_b, _update(reduction, state_b, back, part_b.q, part_a.k))
        tiles_a[i] = (part_a, state_a)
    return _joined(tiles_a), _joined(tiles_b)


def _widened(rows: Rows) -> Rows:
    return Rows(dense.widen(rows.q), dense.widen(rows.k))


def _tiles(rows: Rows, state: State) -> list[tuple[Rows, State]]:
    return [
        (Rows(rows.q.rows(part), rows.k.rows(part)), dense.take_rows(state, part))
        for part in row_slices(rows.q.n_rows, dense.TILE_QUERIES)
    ]


def _update(reduction: Reduction, state: State, log_w: Array, q: QueryBlock, k: KeyBlock) -> State:
    return reduction.update(state, dense.with_sample_weight(log_w, k), q, k)


def _joined(tiles: list[tuple[Rows, Any]]) -> Any:
    return dense.concat_rows([state for _, state in tiles])
