"""Masks of a tile of pairs, and whether a tile is empty under them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from locpipe.blocks import KeyBlock, QueryBlock, row_ids, row_times
from locpipe.kernels.masks import Causal, ExcludeSelf, Mask, Window
from locpipe.kernels.times import at_most

__all__ = ["allowed_pairs", "serves"]

_SERVED = (Causal, ExcludeSelf, Window)


def serves(masks: tuple[Mask, ...]) -> bool:
    """Whether all masks are ones that a tile can be asked about."""
    return all(type(mask) in _SERVED for mask in masks)


def allowed_pairs(masks: tuple[Mask, ...], q: QueryBlock, k: KeyBlock) -> NDArray[np.bool_] | bool:
    """Which pairs of a tile may be neighbours: all, none, or a matrix (n_queries, n_keys)."""
    found = []
    for mask in masks:
        found.append(_ids_differ(q, k) if isinstance(mask, ExcludeSelf) else _in_time(mask, q, k))
        if found[-1] is False:
            return False
    matrices = [matrix for matrix in found if not isinstance(matrix, bool)]
    return np.logical_and.reduce(matrices) if matrices else True


def _ids_differ(q: QueryBlock, k: KeyBlock) -> NDArray[np.bool_] | bool:
    a, b = row_ids(q), row_ids(k)
    if a.max() < b.min() or b.max() < a.min():
        return True
    differ: NDArray[np.bool_] = a[:, None] != b[None, :]
    return differ


def _in_time(mask: Mask, q: QueryBlock, k: KeyBlock) -> NDArray[np.bool_] | bool:
    t, s = row_times(q), row_times(k)
    ends_t, ends_s = np.stack([t.min(), t.max()]), np.stack([s.min(), s.max()])
    if isinstance(mask, Causal):
        return _until(s, t, mask.offset, ends_s, ends_t)
    assert isinstance(mask, Window)
    past = _until(s, t, 0, ends_s, ends_t)
    gone = _until(s, t, -mask.width, ends_s, ends_t)
    if past is False or gone is True:
        return False
    return past if gone is False else past & ~np.asarray(gone)


def _until(s: Any, t: Any, offset: float, ends_s: Any, ends_t: Any) -> NDArray[np.bool_] | bool:
    """``s_j <= t_i + offset``, by the ends alone where they decide."""
    corners = at_most(ends_s, ends_t, offset)
    if corners[0, 1]:
        return True
    allowed: NDArray[np.bool_] | bool = at_most(s, t, offset) if corners[1, 0] else False
    return allowed
