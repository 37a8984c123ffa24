"""Gathered neighbours, and local polynomials from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import row_slices
from locpipe.errors import InputError
from locpipe.graph import fold
from locpipe.kernels import Epanechnikov, Gaussian
from locpipe.reductions import (
    Gather,
    Gathered,
    LocalMoments,
    TopK,
    gathered_moments,
    local_design,
)
from locpipe.testing import assert_close
from locpipe.testing.laws import assert_same


def rows(seed, n_q=7, n_k=300, d=2, p=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_q, d)), rng.normal(size=(n_k, d)), rng.normal(size=(n_k, p))


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 40, 300, 320]))
def test_rows_and_values_of_the_nearest(seed, k):
    q, x, v = rows(seed)
    x[10:20] = x[0]
    kernel = Epanechnikov(1.0)
    found = fold(Gather(k, 2, 2), q, lp.Keys(x, values=v), kernel)
    score, index = fold(TopK(k), q, x, kernel)
    np.testing.assert_array_equal(found.index, index)
    np.testing.assert_array_equal(found.log_weight, score)
    some = index >= 0
    np.testing.assert_array_equal(found.data[some], x[index[some]])
    np.testing.assert_array_equal(found.values[some], v[index[some]])
    assert np.isnan(found.data[~some]).all()
    assert np.isnan(found.values[~some]).all()


@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.sampled_from([Gaussian, Epanechnikov]))
def test_gathered_and_streamed_moments_agree(seed, order, kernel):
    q, x, v = rows(seed)
    q[0] = 50.0
    scale, keys = (0.5, 2.0), lp.Keys(x, values=v)
    found = fold(Gather(len(x), 2, 2), q, keys, kernel(scale))
    streamed = fold(LocalMoments(order, scale, 2), q, keys, kernel(scale))
    assert_same(gathered_moments(found, q, order, scale), streamed, 1e-9, 1e-10)


def test_without_values():
    q, x, _ = rows(0)
    found = fold(Gather(len(x), 2), q, x, Gaussian(1.0))
    assert found.values.shape == (7, 300, 0)
    streamed = fold(LocalMoments(1, (1.0, 1.0)), q, x, Gaussian(1.0))
    assert_same(gathered_moments(found, q, 1, (1.0, 1.0)), streamed, 1e-10, 1e-12)


def test_local_linear_fit_beyond_what_can_be_streamed():
    d = 40
    q, x, _ = rows(1, 12, 500, d)
    slope = np.arange(1.0, d + 1)
    y = 3 + x @ slope
    with pytest.raises(InputError, match="use Gather"):
        LocalMoments(1, (1.0,) * d, 1)
    found = fold(Gather(90, d, 1), q, lp.Keys(x, values=y), Gaussian(4.0))
    fits = []
    for batch in row_slices(len(q), 5):
        problem = local_design(Gathered(*(a[batch] for a in found)), q[batch], 1, (4.0,) * d)
        root = np.sqrt(problem.weight)[..., None]
        fits.append((np.linalg.pinv(root * problem.design) @ (root * problem.values))[..., 0])
    fit = np.concatenate(fits)
    # An affine function comes out exactly: its value at the query, and its slope.
    assert_close(fit[:, 0], 3 + q @ slope, 1e-11)
    assert_close(fit[:, 1:] / 4.0, np.broadcast_to(slope, (12, d)), 1e-10)


def test_places_without_a_key_have_no_weight():
    found = fold(
        Gather(3, 1, 1), [[0.0]], lp.Keys([0.0, 9.0], values=[5.0, 7.0]), Epanechnikov(1.0)
    )
    problem = local_design(found, np.array([[0.0]]), 1, (1.0,))
    np.testing.assert_array_equal(problem.weight, [[1, 0, 0]])
    assert np.isfinite(problem.design).all()
    np.testing.assert_array_equal(problem.values[0, :, 0], [5, 0, 0])


def test_k_is_checked():
    with pytest.raises(InputError, match="k must be a whole number of at least 1, got 0"):
        Gather(0, 2)
