"""Asserts in the measure that `rtol` promises, and a scheduler that refuses to compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["assert_close", "assert_log_close", "assert_mean_close", "no_compute"]


def assert_close(actual: ArrayLike, expected: ArrayLike, rtol: float = 1e-12) -> None:
    """Equal shape, equal infinities, relative difference at most `rtol`."""
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=rtol, atol=0)


def assert_log_close(actual: ArrayLike, expected: ArrayLike, rtol: float) -> None:
    """``|error of log mass| <= rtol max(1, |log mass|)``."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    _assert_bounded(actual, expected, rtol * np.maximum(1, np.abs(expected)), "log mass")


def assert_mean_close(
    actual: ArrayLike, expected: ArrayLike, mean_of_abs: ArrayLike, rtol: float
) -> None:
    """``|error of mean_k| <= rtol (local mean of |v_k|)``: a signed mean can be near 0."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    _assert_bounded(actual, expected, rtol * np.asarray(mean_of_abs), "local mean")


def _assert_bounded(actual: Any, expected: Any, bound: Any, what: str) -> None:
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    comparable = np.isfinite(actual) & np.isfinite(expected)
    with np.errstate(invalid="ignore"):
        near = comparable & (np.abs(actual - expected) <= bound)
    # Infinities must agree exactly: an infinite bound would let anything pass.
    wrong = ~(near | (actual == expected))
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{what}: {wrong.sum()} of {wrong.size} entries off; at {at} "
            f"{actual[at]!r} instead of {expected[at]!r}"
        )


def _refuse(*args: Any, **kwargs: Any) -> None:
    raise AssertionError("a Dask graph was computed where nothing may compute")


@contextmanager
def no_compute() -> Iterator[None]:
    """Inside the block, computing any Dask graph fails the test.

    Examples
    --------
    >>> import dask.array as da
    >>> with no_compute():
    ...     x = da.ones(3).sum()
    >>> float(x.compute())
    3.0
    """
    import dask

    with dask.config.set(scheduler=_refuse):
        yield
