"""Nonuniform Fourier transforms, and pairs of real sums packed into complex ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from locpipe.blocks import Array

__all__ = ["Transform", "packed", "stretched", "unpacked"]

_WORTH_THREADS = 2**17
"""Points or modes below which threads wait for each other longer than they work."""


@dataclass(frozen=True, eq=False)
class Transform:
    """Transforms of type 1 or 2 at fixed points, which are sorted once.

    Attributes
    ----------
    kind : {1, 2}
    angles : list of n_features arrays (n,)
    modes : tuple of n_features odd ints
    eps : float
        Error by the sum of the sizes of what is summed.
    fine : float
        Ratio of the grid worked on to that of the modes, per feature.
    n_threads : int
    library : str
        Module that has the transforms.
    """

    kind: int
    angles: list[Array]
    modes: tuple[int, ...]
    eps: float
    fine: float
    n_threads: int
    library: str = "finufft"

    def sums(self, strengths: Iterable[Array]) -> Array:
        """``sum_j c_j exp(-i k y_j)`` of each array of strengths, complex (n_arrays, *modes)."""
        return np.stack([self._plan.execute(c) for c in strengths])

    def values(self, coefficients: Iterable[Array]) -> tuple[Array, Array]:
        """``sum_k g_k exp(i k x)``, complex (n_arrays, n), and ``sum_k |g_k|`` of each array."""
        values, sizes = [], []
        for g in coefficients:
            sizes.append(float(np.abs(g).sum()))
            values.append(self._plan.execute(g))
        return np.stack(values), np.asarray(sizes)

    @cached_property
    def _plan(self) -> Any:
        sign = -1 if self.kind == 1 else 1
        worth = max(self.angles[0].shape[0], prod(self.modes)) >= _WORTH_THREADS
        threads = self.n_threads if worth else 1
        options: dict[str, Any] = {"isign": sign, "nthreads": threads, "upsampfac": self.fine}
        if self.library == "finufft":  # more threads than cores are worth no line on stderr
            options["showwarn"] = 0
        plan = import_module(self.library).Plan(self.kind, self.modes, eps=self.eps, **options)
        plan.setpts(*self.angles)
        return plan


def packed(real: Array, imaginary: Array | None = None) -> Array:
    """Two real arrays as one complex array."""
    out = np.zeros(real.shape, dtype=np.complex128)
    out.real = real
    if imaginary is not None:
        out.imag = imaginary
    return out


def unpacked(pairs: Array, n_channels: int) -> Array:
    """The real arrays of complex ones (n_pairs, n), as (n_channels, n)."""
    whole = np.stack([pairs.real, pairs.imag], axis=1)
    return whole.reshape(-1, pairs.shape[1])[:n_channels]


def stretched(modes: Array, real: Any, imaginary: Any) -> Array:
    """Coefficients of ``real a + i imaginary b`` from those of ``a + i b``, both real sums.

    The factors are numbers, or real coefficients that are even in the mode.  The coefficients of
    a real sum at opposite modes are conjugates, which tells the two sums apart.
    """
    opposite = np.conj(modes[(slice(None, None, -1),) * modes.ndim])
    return modes * (0.5 * (real + imaginary)) + opposite * (0.5 * (real - imaginary))
