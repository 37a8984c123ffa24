"""What is kept of the keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, inf

import numpy as np

from locpipe.blocks import Array
from locpipe.engines.spectral.transform import stretched

__all__ = ["Summary", "merge"]


@dataclass(frozen=True, eq=False)
class Summary:
    """Fourier coefficients of sums over keys: two real sums, *channels*, to a complex array.

    Attributes
    ----------
    modes : complex array (ceil(n_channels / 2), *grid)
        Of weights, and of squared weights or weights times values.
    sizes : complex array of the same shape, optional
        The same with the sizes of the values; None where no value is negative.
    log_scale : float
        Weights are those of the keys by ``exp(log_scale)``; ``-inf`` without keys of weight.
    scales : array (n_channels,)
        Factor that each channel was multiplied by.
    totals : array (n_channels,)
        Sum of the sizes of what each channel sums, scaled; that of the first is all weight.
    key_weight : float
        Plain sum of the sample weights.
    """

    modes: Array
    sizes: Array | None
    log_scale: float
    scales: Array
    totals: Array
    key_weight: float


def merge(a: Summary, b: Summary, powers: tuple[int, ...]) -> Summary:
    """Summary of the keys of both; `powers` says which power of the weight each channel sums."""
    if b.log_scale > a.log_scale:
        a, b = b, a
    if b.log_scale == -inf:
        return replace(a, key_weight=a.key_weight + b.key_weight)
    shrink = exp(b.log_scale - a.log_scale)
    of_weights = np.asarray([shrink**power for power in powers])
    # The larger sums set the scale: theirs is the smaller factor.
    scales = np.minimum(a.scales, b.scales)
    to_a, to_b = scales / a.scales, of_weights * (scales / b.scales)
    signed = a.sizes is not None or b.sizes is not None
    return Summary(
        modes=_rescaled(a.modes, to_a) + _rescaled(b.modes, to_b),
        sizes=_rescaled(_sizes(a), to_a) + _rescaled(_sizes(b), to_b) if signed else None,
        log_scale=a.log_scale,
        scales=scales,
        totals=to_a * a.totals + to_b * b.totals,
        key_weight=a.key_weight + b.key_weight,
    )


def _sizes(summary: Summary) -> Array:
    return summary.modes if summary.sizes is None else summary.sizes


def _rescaled(modes: Array, factors: Array) -> Array:
    """Coefficients with each channel multiplied by its factor."""
    if (factors == 1).all():
        return modes
    even = np.append(factors, 1.0) if len(factors) % 2 else factors
    pairs = zip(modes, even.reshape(-1, 2), strict=True)
    return np.stack([m * x if x == y else stretched(m, x, y) for m, (x, y) in pairs])
