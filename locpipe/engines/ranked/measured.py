"""From proposed neighbours to the best of them, with the distances of the reference."""

from __future__ import annotations

import numpy as np

from locpipe.blocks import KeyBlock
from locpipe.reductions.base import NO_KEY
from locpipe.reductions.top_k import TopKState, best_order

__all__ = ["best_of", "is_graded", "present", "surrogates"]


def surrogates(metric: str, q: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Surrogate distances (n, k) of queries (n, d) from keys (n, k, d), as the metric rounds them.

    Sums run over the features in ascending order, in float64.
    """
    total = np.zeros(keys.shape[:2])
    for j in range(q.shape[1]):
        gap = q[:, j, None].astype(np.float64) - keys[:, :, j]
        total += np.abs(gap) if metric == "manhattan" else gap * gap
    return 0.5 * total if metric == "cosine" else total


def best_of(surrogate: np.ndarray, index: np.ndarray, k: int) -> TopKState:
    """The k of least surrogate of each row, ties by index; fewer leave places empty."""
    score = -surrogate
    index = np.where(score > -np.inf, index, NO_KEY)
    lacking = max(0, k - score.shape[1])
    score = np.pad(score, ((0, 0), (0, lacking)), constant_values=-np.inf)
    index = np.pad(index, ((0, 0), (0, lacking)), constant_values=NO_KEY)
    order = best_order(score, index, k)
    return TopKState(*(np.take_along_axis(array, order, axis=1) for array in (score, index)))


def present(k: KeyBlock) -> np.ndarray:
    """Columns of the keys whose weight is not 0."""
    if k.log_sample_weight is None:
        return np.arange(k.n_rows)
    return np.flatnonzero(k.log_sample_weight > -np.inf)


def is_graded(k: KeyBlock) -> bool:
    """Whether weights take part in the score, rather than saying which keys are there."""
    given = k.log_sample_weight
    return given is not None and bool(np.any((given != 0) & (given > -np.inf)))
