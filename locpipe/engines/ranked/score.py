"""What a ranking is by: a metric, and masks that say who may be a neighbour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from locpipe.blocks import KeyBlock, QueryBlock, row_ids
from locpipe.engines.base import Need
from locpipe.kernels.base import Kernel
from locpipe.kernels.masks import ExcludeSelf, Mask
from locpipe.kernels.nearness import Nearness
from locpipe.kernels.product import Product
from locpipe.reductions.top_k import TopK

__all__ = ["Score", "allowed_pairs", "no_ranking", "ranking_of", "score_of", "whole_ids"]


@dataclass(frozen=True)
class Score:
    """``Nearness(metric)`` times masks.

    Attributes
    ----------
    metric : str
    exclude_self : bool
        Whether pairs of equal ids are left out.
    masks : tuple of Mask
        All others.
    """

    metric: str
    exclude_self: bool = False
    masks: tuple[Mask, ...] = ()


def score_of(kernel: Kernel | None) -> Score | None:
    """The parts of a score; None of a kernel that is not made of them."""
    factors = kernel.factors if isinstance(kernel, Product) else (kernel,)
    metrics = [factor.metric for factor in factors if type(factor) is Nearness]
    masks = [factor for factor in factors if isinstance(factor, Mask)]
    if len(metrics) != 1 or len(masks) != len(factors) - 1:
        return None
    others = tuple(mask for mask in masks if type(mask) is not ExcludeSelf)
    return Score(metrics[0], len(others) < len(masks), others)


def no_ranking(need: Need) -> str | None:
    """Why engines that summarise keys find no nearest ones here; None where they may."""
    if need.library != "numpy":
        return f"takes NumPy arrays, got {need.library}"
    if type(need.reduction) is not TopK:
        return f"ranks by TopK, got {type(need.reduction).__name__}"
    score = score_of(need.kernel)
    if score is None or score.masks or need.has_pairs:
        return "ranks by one distance, with no mask but ExcludeSelf"
    return None


def ranking_of(need: Need) -> tuple[Score, TopK]:
    """What a need that was not refused ranks by, and what is kept."""
    score, reduction = score_of(need.kernel), need.reduction
    if score is None or not isinstance(reduction, TopK):
        raise TypeError("a need that was refused")
    return score, reduction


def whole_ids(score: Score, q: QueryBlock, k: KeyBlock) -> tuple[np.ndarray, np.ndarray] | None:
    """Ids of queries and keys as int64; None where none are needed or they are other numbers."""
    if not score.exclude_self:
        return None
    ids = np.asarray(row_ids(q)), np.asarray(row_ids(k))
    if not all(np.can_cast(each.dtype, np.int64) for each in ids):
        return None
    return ids[0].astype(np.int64), ids[1].astype(np.int64)


def allowed_pairs(score: Score, by_ids: bool, q: QueryBlock, k: KeyBlock) -> np.ndarray | None:
    """Which pairs the masks allow, bool (n_queries, n_keys); None where nothing is to be asked.

    With `by_ids` pairs of equal ids are left out elsewhere.
    """
    masks = score.masks if by_ids or not score.exclude_self else (*score.masks, ExcludeSelf())
    if not masks:
        return None
    allowed = np.ones((q.n_rows, k.n_rows), dtype=np.bool_)
    for mask in masks:
        allowed &= mask.log_weights(q, k) == 0
    return allowed
