"""Local mean and variance in one pass."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.graph import fold
from locpipe.reductions import LogMass, WeightedVariance
from locpipe.testing import assert_close
from locpipe.testing.reference import log_weights_reference

X, Y = np.array([0.0, 1, 2, 4]), np.array([1.0, 3, 2, 5])


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e6, -1e9]))
def test_mean_and_variance_equal_their_definition(seed, offset):
    rng = np.random.default_rng(seed)
    q, k, v = rng.normal(size=(5, 2)), rng.normal(size=(400, 2)), rng.normal(size=(400, 3))
    kernel = lp.kernels.Gaussian(0.5)
    mean, variance = fold(WeightedVariance(3), q, lp.Keys(k, values=v + offset), kernel)
    w = np.exp(log_weights_reference(q, k, 0.5))
    w /= w.sum(1, keepdims=True)
    v = (v + offset) - offset  # what the float64 values are
    expected = w @ v
    gap = v[None] - expected[:, None]
    np.testing.assert_allclose(mean - offset, expected, rtol=0, atol=1e-12 + 1e-15 * abs(offset))
    np.testing.assert_allclose(variance, np.einsum("qk,qkj->qj", w, gap**2), rtol=1e-11)


def test_values_far_from_zero_that_an_offset_of_squares_would_lose():
    # Two clusters of values in each tile, far apart; near a query all values are of one.
    rng = np.random.default_rng(0)
    k = np.r_[rng.normal(size=500), rng.normal(size=500) + 100]
    v = np.where(k > 50, 1e6, 0.0) + rng.normal(size=1000)
    order = rng.permutation(1000)
    keys = lp.Keys(k[order], values=v[order])
    _, variance = fold(WeightedVariance(1), [100.0], keys, lp.kernels.Uniform(20.0))
    assert_close(variance[0, 0], np.var(v[k > 50]), 1e-9)


def test_the_nearly_unbiased_variance():
    keys = lp.Keys(X, values=Y)
    _, variance = fold(WeightedVariance(1), [1.5], keys, lp.kernels.Uniform(9.0))
    n = fold(LogMass(), [1.5], X, lp.kernels.Uniform(9.0))[1]
    assert_close(variance[:, 0] * n / (n - 1), [Y.var(ddof=1)], 1e-14)


@pytest.mark.parametrize(("empty", "expected"), [(np.nan, np.nan), (0.0, 0.0)])
def test_no_neighbour(empty, expected):
    keys, kernel = lp.Keys(X, values=Y), lp.kernels.Uniform(9.0)
    mean, variance = fold(WeightedVariance(1), [1.5, 99.0], keys, kernel, empty=empty)
    np.testing.assert_array_equal([mean[1, 0], variance[1, 0]], [expected] * 2)
    assert mean[0, 0] == Y.mean()


def test_no_neighbour_takes_the_value_of_the_nearest():
    keys, kernel = lp.Keys(X, values=Y), lp.kernels.Uniform(0.75)
    queries = np.array([1.5, 99.0, 2.9])
    mean, variance = lp.fold(WeightedVariance(1), queries, keys, kernel, empty="nearest")
    np.testing.assert_array_equal(mean[:, 0], [2.5, 5.0, 2.0])
    np.testing.assert_array_equal(variance[:, 0], [0.25, 0.0, 0.0])


@pytest.mark.parametrize("offset", [1e9, -1e12])
@pytest.mark.parametrize("chunks", [None, 7, 300, 1999])
def test_many_tiles_of_values_far_from_zero_are_exact(offset, chunks):
    rng = np.random.default_rng(0)
    k, v = rng.normal(size=2000), offset + rng.normal(scale=0.01, size=2000)
    v[0], k[0] = 0.0, 6.0  # nearly weightless: no origin to measure from
    q = rng.normal(size=3)
    values, x = (v, k) if chunks is None else (da.from_array(a, chunks=chunks) for a in (v, k))
    _, variance = lp.fold(
        WeightedVariance(1), q, lp.Keys(x, values=values), lp.kernels.Gaussian(0.3)
    )
    w = np.exp(log_weights_reference(q[:, None], k[:, None], 0.3))
    w /= w.sum(1, keepdims=True)
    near, w = np.longdouble(v) - np.longdouble(offset), np.longdouble(w)
    expected = w @ near**2 - (w @ near) ** 2
    np.testing.assert_allclose(np.asarray(variance)[:, 0], np.float64(expected), rtol=1e-10)


def test_equal_values_have_no_variance():
    keys = lp.Keys(np.linspace(0, 1, 1000), values=np.full(1000, 1e9 + 0.1))
    mean, variance = lp.fold(WeightedVariance(1), [0.3], keys, lp.kernels.Gaussian(0.3))
    assert mean[0, 0] == 1e9 + 0.1
    assert variance[0, 0] < 1e-30
