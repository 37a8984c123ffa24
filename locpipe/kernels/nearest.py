"""The k nearest keys, in three weightings."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, block_span
from locpipe.errors import InputError
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
            raise InputError(f"k must be a whole number of at least 1, got {self.k!r}")
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
        if q.best_score is None or q.kth_score is None or q.kth_index is None:
            raise InputError(
                "this kernel needs a first pass over all keys, and the queries carry none of its "
                "results; call lp.local_mean or lp.fold"
            )
        xp = array_namespace(q.data, k.data)
        score = Nearness(self.metric).log_weights(q, k)
        among = _among(score, q, k)
        zero = xp.zeros((), dtype=score.dtype)
        log_w = self._log_of(xp.where(among, score, zero), q)
        return xp.where(among, log_w, xp.asarray(-xp.inf, dtype=score.dtype))

    def _log_of(self, score: Array, q: QueryBlock) -> Array:
        """Log weights of scores that are all finite."""
        if self.weights == "uniform":
            return array_namespace(score).zeros_like(score)
        squared = metric_of(self.metric, int(q.data.shape[1])).squared
        if isinstance(self.weights, Radial):
            return _log_profile(self.weights, squared(-score), squared(-q.kth_score), q)
        return _log_inverse(squared(-score), q)

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
            f"got {weights!r}"
        )
    if not isinstance(profile.bandwidth, float) or profile.metric != "euclidean":
        raise InputError(
            "the profile of nearest neighbours must have one bandwidth, a factor on the k-th "
            f"distance, and leave the metric to Nearest, got {profile!r}"
        )
    return profile


def _among(score: Array, q: QueryBlock, k: KeyBlock) -> Array:
    """Whether each key is among the k nearest that the first pass allowed, bool."""
    xp = array_namespace(score)
    span, kth = block_span(k), q.kth_score[:, None]
    index = xp.arange(span.start, span.stop, dtype=xp.int64)[None, :]
    among = (score > kth) | ((score == kth) & (index <= q.kth_index[:, None]))
    # What is nearer than the best was masked out of the first pass.
    return among & (score <= q.best_score[:, None]) & (score > -xp.inf)


def _log_profile(profile: Radial, d2: Array, r2: Array, q: QueryBlock) -> Array:
    """Log of ``K(d / (h r))``."""
    xp = array_namespace(d2)
    one = xp.ones((), dtype=d2.dtype)
    # r = 0: all of the k are at distance 0.
    u2 = d2 / xp.where(r2 == 0, one, r2)[:, None] / profile.bandwidth / profile.bandwidth
    return profile.log_profile(u2, int(q.data.shape[1]))


def _log_inverse(d2: Array, q: QueryBlock) -> Array:
    """Log of ``1 / d``; beside a key at distance 0 no other counts."""
    xp = array_namespace(d2)
    exact = d2 == 0
    log_w = -0.5 * xp.log(xp.where(exact, xp.ones((), dtype=d2.dtype), d2))
    shadowed = (q.best_score == 0)[:, None] & ~exact
    return xp.where(shadowed, xp.asarray(-xp.inf, dtype=d2.dtype), log_w)
