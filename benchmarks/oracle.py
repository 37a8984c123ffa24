"""The truth, in plain float64 NumPy, on a sample of queries; and errors by the measure of `rtol`.

Errors of means are by the local mean of the values' sizes, of log masses by their own size where
it is above 1: what `rtol` bounds (see `lp.functions.Run`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

PAIRS = 20_000_000  # at a time


class Truth(NamedTuple):
    """Log mass (n,), local mean and local mean of sizes (n, n_outputs)."""

    log_mass: np.ndarray
    mean: np.ndarray
    size: np.ndarray


def gaussian(u2: np.ndarray) -> np.ndarray:
    """Log weight at a squared distance of `u2` squared bandwidths."""
    return -u2 / 2


def epanechnikov(u2: np.ndarray) -> np.ndarray:
    """As `gaussian`, with support 1."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(1 - u2, 0))


def truth(
    q: Any, k: Any, v: Any, bandwidth: float, log_profile: Callable[[Any], Any] = gaussian
) -> Truth:
    """The local means of a few queries, from differences, in the log domain."""
    q, k = np.asarray(q, float), np.asarray(k, float)
    v = np.ones((len(k), 1)) if v is None else np.asarray(v, float).reshape(len(k), -1)
    step = max(1, PAIRS // len(k))
    blocks = [q[start : start + step] for start in range(0, len(q), step)]
    parts = [_truth(log_profile(cdist(b, k, "sqeuclidean") / bandwidth**2), v) for b in blocks]
    return Truth(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _truth(log_w: np.ndarray, v: np.ndarray) -> Truth:
    shift = log_w.max(axis=1, keepdims=True)
    w = np.exp(log_w - shift)
    mass = w.sum(axis=1, keepdims=True)
    return Truth((shift + np.log(mass))[:, 0], w @ v / mass, w @ np.abs(v) / mass)


def mean_error(mean: Any, true: Truth) -> float:
    """Largest error of means by the local mean of the values' sizes."""
    mean = np.asarray(mean, float).reshape(true.mean.shape)
    return float((np.abs(mean - true.mean) / true.size).max())


def mass_error(log_mass: Any, true: Truth) -> float:
    """Largest error of log masses, by their own size where that is above 1."""
    wrong = np.abs(np.asarray(log_mass, float) - true.log_mass)
    return float((wrong / np.maximum(1, np.abs(true.log_mass))).max())


def neighbours(q: np.ndarray, k: np.ndarray, n: int) -> np.ndarray:
    """Indices of the `n` nearest keys by exact differences, the lower of two equals first."""
    keys = k.astype(float)
    distances = (cdist(row[None].astype(float), keys, "sqeuclidean")[0] for row in q)
    return np.array([np.argsort(row, kind="stable")[:n] for row in distances])
