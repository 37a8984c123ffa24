"""The real sums that a reduction asks for: what is summed over the keys, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Self

import numpy as np

from locpipe.blocks import Array, KeyBlock
from locpipe.engines.spectral.transform import packed
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.log_mass import LogMass, LogMassState
from locpipe.reductions.weighted_mean import WeightedMean, WeightedMeanState

__all__ = ["Sums", "WeightedKeys", "pairs_of", "powers_of"]

_LARGEST_SCALE = 1e290


def powers_of(reduction: Reduction) -> tuple[int, ...] | None:
    """The power of the weight that each channel sums; None of a reduction that is not served."""
    if type(reduction) is LogMass:
        return (1, 2)
    return (1,) * (1 + reduction.n_outputs) if type(reduction) is WeightedMean else None


def pairs_of(powers: tuple[int, ...]) -> list[tuple[int, int]]:
    """Powers of the channels, two by two; a last one alone stands beside an empty one."""
    even = powers + powers[-1:] * (len(powers) % 2)
    return list(zip(even[::2], even[1::2], strict=True))


@dataclass(frozen=True, eq=False)
class WeightedKeys:
    """Keys of positive weight, and what each channel sums over them.

    Attributes
    ----------
    data : array (n, n_features)
    weights : array (n,)
        By the largest.
    values : array (n, n_outputs), optional
        None: the second channel sums squared weights.
    log_scale : float
        Log of the largest weight, ``-inf`` without keys.
    key_weight : float
        Plain sum of the sample weights.
    """

    data: Array
    weights: Array
    values: Array | None
    log_scale: float
    key_weight: float

    @classmethod
    def of(cls, k: KeyBlock, reduction: Reduction) -> Self:
        """Those of a block."""
        values = None if type(reduction) is LogMass else k.values
        if k.log_sample_weight is None:
            largest = 0.0 if k.n_rows else -inf
            return cls(k.data, np.ones(k.n_rows), values, largest, float(k.n_rows))
        log_w = np.asarray(k.log_sample_weight, dtype=np.float64)
        largest = float(log_w.max(initial=-inf))
        weights = np.exp(log_w - (largest if largest > -inf else 0.0))
        with np.errstate(over="ignore"):
            whole = cls(k.data, weights, values, largest, float(np.exp(log_w).sum()))
        return whole if weights.all() else whole._chosen(weights > 0)

    def some(self) -> Self:
        """Every eighth key of many: what they sum to in size, all together exceed."""
        return self._chosen(slice(None, None, min(8, 1 + len(self.weights) // 2**14)))

    def _chosen(self, rows: Any) -> Self:
        values = None if self.values is None else self.values[rows]
        return replace(self, data=self.data[rows], weights=self.weights[rows], values=values)

    @property
    def signed(self) -> bool:
        """Whether a value is negative, so that sums of values say less than sums of sizes."""
        return self.values is not None and bool((self.values < 0).any())

    def scales(self) -> Array:
        """Factor of each channel: sums of ``w |v|`` are brought to that of the weights."""
        if self.values is None:
            return np.ones(2)
        size = np.abs(self.values).astype(np.float64, copy=False)
        largest = np.maximum(size.max(axis=0, initial=0.0), 1 / _LARGEST_SCALE)
        with np.errstate(divide="ignore", over="ignore"):
            scales = (self.weights.sum() or 1.0) / (self.weights @ (size / largest)) / largest
        return np.append(1.0, np.clip(scales, 1 / _LARGEST_SCALE, _LARGEST_SCALE))

    def totals(self, scales: Array) -> Array:
        """Sum of the sizes of what each channel sums."""
        return np.asarray([np.abs(self._channel(i, scales)).sum() for i in range(len(scales))])

    def strengths(self, scales: Array, *, sizes: bool = False) -> Iterator[Array]:
        """What is summed, two channels to a complex array (n,); with the values' sizes or not."""
        for i in range(0, len(scales), 2):
            pair = [self._channel(j, scales) for j in range(i, min(i + 2, len(scales)))]
            yield packed(*map(np.abs, pair)) if sizes else packed(*pair)

    def _channel(self, i: int, scales: Array) -> Array:
        if i == 0:
            return self.weights
        if self.values is None:
            return self.weights**2
        return self.weights * (self.values[:, i - 1].astype(np.float64) * scales[i])


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums at some queries, a row per channel, and a bound on the error of each channel.

    `sums` is (n_channels, n_queries), `errors` (n_channels,).
    """

    sums: Array
    errors: Array

    def least(self) -> Array:
        """What the size of each sum is at least."""
        return np.abs(self.sums) - self.errors[:, None]

    def right(self, least: Array, rtol: float) -> Array:
        """Queries where all channels of `least`, what their sizes are at least, are right.

        Errors of the mass and of a moment add up in the mean.
        """
        errors = self.errors[: len(least), None]
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(errors == 0, 0.0, np.where(least > 0, errors / least, inf))
        of_means: Array = relative[0] + relative[1:].max(axis=0, initial=0.0)
        return of_means <= rtol

    def chosen(self, queries: Array) -> Self:
        """Those of some queries."""
        return replace(self, sums=self.sums[:, queries])

    def state(self, reduction: Any, shift: float, key_weight: float, scales: Array) -> State:
        """The reduction's state at a shift."""
        shifts = np.where(self.sums[0] > 0, shift, -inf)
        if type(reduction) is LogMass:
            return LogMassState(
                shifts, self.sums[0], self.sums[1], np.full(shifts.shape, key_weight)
            )
        moment = np.ascontiguousarray((self.sums[1:] / scales[1:, None]).T)
        return WeightedMeanState(shifts, self.sums[0], moment)
