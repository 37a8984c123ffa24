"""The k nearest keys, in three weightings."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, block_span
from locpipe.errors import InputError, shown
from locpipe.kernels.base import Kernel, KernelSpec, Ranking
from locpipe.kernels.names import RADIAL
from locpipe.kernels.nearness import Nearness
from locpipe.kernels.radial import Radial
from locpipe.metrics import METRICS, metric_of

__all__ = ["Nearest"]


@dataclass(frozen=True)
class Nearest(Kernel):
    """Weight for the `k` nearest keys of a query only.

    Parameters
    ----------
    k : int
        At least 1.  Equal distances at rank k: the lowest key index is in.
    weights : {"uniform", "distance"}, kernel name or radial kernel
        ``"uniform"``: equal weights.  ``"distance"``: ``1 / d``, and where keys are at distance 0
        they alone count, equally.  A radial kernel as profile: ``K(d / (h r_k))`` with its
        bandwidth ``h`` and the distance ``r_k`` of the k-th key; a name means ``h = 1``.
    metric : {"euclidean", "manhattan", "cosine", "nan-euclidean", "haversine"}
        As in `locpipe.nearest`.

    Raises
    ------
    InputError
        If k is not a whole number of at least 1, or `weights` or `metric` is not one of these.

    Notes
    -----
    It needs a first pass over all keys, which `locpipe.local_mean` and `locpipe.fold` make.  With
    ``h = 1`` a profile of compact support gives the k-th key weight 0, as lowess does.  Where
    fewer than k keys may be neighbours, ``r_k`` is the distance of the last.  With ``r_k = 0``
    (duplicates) weights are equal.
    In a product, ``Nearest(k) * mask`` ranks the keys that the mask allows, and any other factor
    weighs the k found.  Bandwidths that ride in the blocks do not enter.  No normaliser.

    References
    ----------
    Stone (1977), Consistent nonparametric regression; Cleveland (1979), for the profiles.

    Examples
    --------
    >>> import locpipe as lp
    >>> kernel = lp.kernels.Nearest(3, "tricube")
    >>> kernel.k, kernel.weights
    (3, Tricube(bandwidth=1.0, metric='euclidean'))
    """

    k: int
    weights: str | Radial = "uniform"
    metric: str = "euclidean"
    tile_arrays = 8

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise InputError(f"k must be a whole number of at least 1, got {shown(self.k)}")
        score = Nearness(self.metric)
        checked = {"k": int(self.k), "weights": _checked(self.weights), "metric": score.metric}
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def allows_missing(self) -> bool:
        """As the metric says."""
        return METRICS[self.metric].allows_missing

    def ranking(self) -> Ranking:
        """The k nearest under the metric."""
        return Ranking(self.k, Nearness(self.metric))

    def nearness(self) -> Nearness:
        """The metric's."""
        return Nearness(self.metric)

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Log weights of the k nearest, ``-inf`` elsewhere.

        Raises
        ------
        InputError
            If the queries carry nothing of a first pass.
        """
        xp = array_namespace(q.data, k.data)
        ranks = _ranks(q)
        score = Nearness(self.metric).log_weights(q, k)
        among = _among(score, ranks, k)
        finite = xp.where(among, score, xp.zeros((), dtype=score.dtype))
        log_w = self._log_of(finite, ranks, int(q.data.shape[1]))
        return xp.where(among, log_w, xp.asarray(-xp.inf, dtype=score.dtype))

    def _log_of(self, score: Array, ranks: _Ranks, n_features: int) -> Array:
        """Log weights of scores that are all finite."""
        if self.weights == "uniform":
            return array_namespace(score).zeros_like(score)
        squared = metric_of(self.metric, n_features).squared
        if isinstance(self.weights, Radial):
            u2 = _in_bandwidths(squared(-score), squared(-ranks.kth_score), self.weights)
            return self.weights.log_profile(u2, n_features)
        return _log_inverse(squared(-score), ranks)

    def lower(self, n_features: int) -> KernelSpec:
        """A distance, its bound where there is one, no normaliser."""
        metric_of(self.metric, n_features)
        if isinstance(self.weights, Radial):
            return KernelSpec("nearest", self.metric, log_bound=self.weights.log_peak)
        return KernelSpec("nearest", self.metric, log_bound=_LOG_BOUNDS[self.weights])


_LOG_BOUNDS = {"uniform": 0.0, "distance": inf}


def _checked(weights: object) -> str | Radial:
    if isinstance(weights, str) and weights in _LOG_BOUNDS:
        return weights
    profile = RADIAL[weights]() if isinstance(weights, str) and weights in RADIAL else weights
    if not isinstance(profile, Radial):
        raise InputError(
            f"weights must be 'uniform', 'distance', a radial kernel or one of {sorted(RADIAL)}, "
            f"got {shown(weights)}"
        )
    if not isinstance(profile.bandwidth, float) or profile.metric != "euclidean":
        raise InputError(
            "the profile of nearest neighbours must have one bandwidth, a factor on the k-th "
            f"distance, and leave the metric to Nearest, got {shown(profile)}"
        )
    return profile


class _Ranks(NamedTuple):
    """What a first pass found, as columns (n_queries, 1)."""

    best_score: Array
    kth_score: Array
    kth_index: Array


def _ranks(q: QueryBlock) -> _Ranks:
    if q.best_score is None or q.kth_score is None or q.kth_index is None:
        raise InputError(
            "this kernel needs a first pass over all keys, and the queries carry none of its "
            "results; call lp.local_mean or lp.fold"
        )
    return _Ranks(q.best_score[:, None], q.kth_score[:, None], q.kth_index[:, None])


def _among(score: Array, ranks: _Ranks, k: KeyBlock) -> Array:
    """Whether each key is among the k nearest that the first pass allowed, bool."""
    xp, span = array_namespace(score), block_span(k)
    index = xp.arange(span.start, span.stop, dtype=xp.int64)[None, :]
    tied = (score == ranks.kth_score) & (index <= ranks.kth_index)
    among = (score > ranks.kth_score) | tied
    # What is nearer than the best was masked out of the first pass.
    return among & (score <= ranks.best_score) & (score > -xp.inf)


def _in_bandwidths(d2: Array, r2: Array, profile: Radial) -> Array:
    """``(d / (h r))^2``; all of the k are at distance 0 where r is."""
    xp, (h,) = array_namespace(d2), profile.scale(1)
    return d2 / xp.where(r2 == 0, xp.ones((), dtype=d2.dtype), r2) / h**2


def _log_inverse(d2: Array, ranks: _Ranks) -> Array:
    """Log of ``1 / d``; beside a key at distance 0 no other counts."""
    xp = array_namespace(d2)
    exact = d2 == 0
    log_w = -0.5 * xp.log(xp.where(exact, xp.ones((), dtype=d2.dtype), d2))
    shadowed = (ranks.best_score == 0) & ~exact
    return xp.where(shadowed, xp.asarray(-xp.inf, dtype=d2.dtype), log_w)
