"""Oracles of reductions: each in a few lines over the whole matrix of log weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import logsumexp

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.reductions import (
    ArgBest,
    Gather,
    LocalMoments,
    LogMass,
    Reduction,
    TopK,
    WeightedMean,
    WeightedSum,
    WeightedVariance,
)
from locpipe.reductions.local_moments import exponents

__all__ = ["reduction_reference"]

Floats = Any
"""A float64 array."""


def reduction_reference(
    reduction: Reduction, log_w: Floats, q: QueryBlock, k: KeyBlock
) -> tuple[Any, ...]:
    """Results from log weights (n_queries, n_keys) that include the sample weights.

    Empty neighbourhoods give NaN.  `MajorizationStep` has `majorization_reference`.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return _FORMULAS[type(reduction)](reduction, log_w, q, k)


def _relative(log_w: Floats) -> Floats:
    """Weights that add up to 1; NaN where there is none."""
    return np.exp(log_w - logsumexp(log_w, axis=1, keepdims=True))


def _log_mass(_: Any, log_w: Floats, q: Any, k: Any) -> tuple[Any, ...]:
    n = 1 / (_relative(log_w) ** 2).sum(1)
    given = np.zeros(k.n_rows) if k.log_sample_weight is None else k.log_sample_weight
    total = np.full(q.n_rows, np.exp(given).sum())
    return logsumexp(log_w, axis=1), np.nan_to_num(n), total


def _mean(_: Any, log_w: Floats, q: Any, k: Any) -> tuple[Any, ...]:
    return (_relative(log_w) @ k.values,)


def _variance(_: Any, log_w: Floats, q: Any, k: Any) -> tuple[Any, ...]:
    w = _relative(log_w)
    mean = w @ k.values
    gap = np.asarray(k.values)[None, :, :] - mean[:, None, :]
    return mean, np.einsum("qk,qkj->qj", w, gap**2)


def _sum(_: Any, log_w: Floats, q: Any, k: Any) -> tuple[Any, ...]:
    return (np.exp(log_w) @ k.values,)


def _top(reduction: Any, log_w: Floats, q: Any, k: Any) -> tuple[Any, ...]:
    short = max(0, reduction.k - k.n_rows)
    padded = np.pad(log_w, ((0, 0), (0, short)), constant_values=-np.inf)
    index = np.argsort(-padded, axis=1, kind="stable")[:, : reduction.k]
    score = np.take_along_axis(padded, index, axis=1)
    return score, np.where(score > -np.inf, index, -1)


def _arg_best(_: Any, log_w: Floats, q: Any, k: Any) -> tuple[Any, ...]:
    return tuple(a[:, 0] for a in _top(TopK(1), log_w, q, k))


def _gather(reduction: Any, log_w: Floats, q: Any, k: Any) -> tuple[Any, ...]:
    score, index = _top(reduction, log_w, q, k)
    none, values = (index < 0)[..., None], k.values
    values = np.zeros((k.n_rows, 0)) if not reduction.n_outputs else values
    return score, index, *(np.where(none, np.nan, rows[index]) for rows in (k.data, values))


def _moments(reduction: Any, log_w: Floats, q: Any, k: Any) -> tuple[Any, ...]:
    shift = log_w.max(axis=1)
    w = np.exp(log_w - np.where(np.isneginf(shift), 0, shift)[:, None])
    u = (k.data[None] - q.data[:, None]) / np.asarray(reduction.scale)
    d, p = len(reduction.scale), reduction.order
    moments = [(w * (u**a).prod(2)).sum(1) for a in exponents(d, 2 * p)]
    values = [(w * (u**a).prod(2)) @ k.values for a in exponents(d, p)]
    return shift, np.stack(moments, axis=1), np.stack(values, axis=1)


_FORMULAS: Mapping[type[Reduction], Callable[..., tuple[Any, ...]]] = {
    LogMass: _log_mass,
    WeightedMean: _mean,
    WeightedVariance: _variance,
    WeightedSum: _sum,
    TopK: _top,
    ArgBest: _arg_best,
    Gather: _gather,
    LocalMoments: _moments,
}
