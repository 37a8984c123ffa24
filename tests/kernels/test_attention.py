"""Attention is a local mean: oracles of theory sheet 2, section 1, and of user reports."""

import dask.array as da
import numpy as np
import pytest

import locpipe as lp
from locpipe.errors import InputError
from locpipe.testing import assert_close

ROW, COLUMN, T = np.arange(3)[:, None], np.arange(2)[None], np.arange(3)
Q, K = np.sin(2 * ROW + COLUMN + 1), np.cos(2 * ROW + COLUMN + 1)
V = np.array([[0.0, 1], [2, 9], [4, 25]])


def test_causal_attention():
    kernel = lp.kernels.DotProduct() * lp.masks.Causal()
    expected = [[0, 1], [0.9871960368724, 4.9487841474896], [1.9616557988641, 10.3376913320624]]
    np.testing.assert_allclose(lp.local_mean(Q, K, V, kernel), expected, rtol=1e-12)
    log_mass = [0.053915100086, 0.957036486745, 1.297901125577]
    np.testing.assert_allclose(lp.log_mass(Q, K, kernel), log_mass, rtol=1e-11)


def test_full_attention_and_windows():
    full = lp.local_mean(Q, K, V, lp.kernels.DotProduct())[:, 0]
    assert_close(full, [2.630478935130, 1.563092869998, 1.961655798864], 1e-11)
    window = lp.local_mean(Q, K, V, lp.kernels.DotProduct() * lp.masks.Window(2))
    assert_close(window[2, 0], 2.469217282456, 1e-11)


def test_a_linear_time_kernel_on_top():
    # ALiBi with slope ln 2 and no content: the last row of weights is (1, 2, 4) / 7.
    slope = lp.kernels.Exponential(1 / np.log(2)).on(query="time", key="time")
    kernel = lp.kernels.DotProduct() * slope * lp.masks.Causal()
    zeros = np.zeros((3, 2))
    rows = lp.local_mean(lp.Queries(zeros, time=T), lp.Keys(zeros, time=T), np.eye(3), kernel)
    assert_close(rows[2], np.array([1, 2, 4]) / 7, 1e-14)


def test_attention_is_a_gaussian_local_mean_for_keys_of_equal_norm():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(5, 8)), rng.normal(size=(20, 8)), rng.normal(size=(20, 3))
    k /= np.linalg.norm(k, axis=1, keepdims=True)
    attention = lp.local_mean(q, k, v, lp.kernels.DotProduct())
    gaussian = lp.local_mean(q, k, v, lp.kernels.Gaussian(8**0.25))
    np.testing.assert_allclose(attention, gaussian, rtol=1e-12)


def test_a_fully_masked_row_is_zero_and_alone():  # A01
    mask = np.array([[1.0, 1.0], [0.0, 0.0]])
    kernel = lp.kernels.DotProduct(1 / np.sqrt(2)) * lp.kernels.Precomputed(mask)
    mean = lp.local_mean(np.eye(2), np.eye(2), [[10.0], [20.0]], kernel, empty="zero")
    np.testing.assert_allclose(mean, [[13.30238451], [0]], rtol=1e-9)
    assert np.isnan(lp.local_mean(np.eye(2), np.eye(2), [10.0, 20.0], kernel)[1])


def test_large_logits():  # A04
    mean = lp.local_mean([[1000.0]], [[1.0], [0.999]], [10.0, 20.0], lp.kernels.DotProduct(1.0))
    assert_close(mean, [12.689414213699951], 1e-13)


def test_precomputed_weights_on_dask_equal_the_matrix_product():
    rng = np.random.default_rng(1)
    w, v = rng.uniform(0, 1, (30, 40)), rng.normal(size=(40, 2))
    w[rng.random(w.shape) < 0.3] = 0
    expected = w @ v / w.sum(1, keepdims=True)
    q, k, kernel = np.zeros((30, 1)), np.zeros((40, 1)), lp.kernels.Precomputed(w)
    assert_close(lp.local_mean(q, k, v, kernel), expected, 1e-12)
    lazy = lp.local_mean(
        da.from_array(q, chunks=(7, 1)), da.from_array(k, chunks=(9, 1)), v, kernel
    )
    assert_close(lazy.compute(scheduler="sync"), expected, 1e-12)


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_precomputed_weights_are_checked(weight):
    with pytest.raises(InputError, match="non-negative numbers"):
        lp.log_mass([0.0], [0.0], lp.kernels.Precomputed([[weight]]))


@pytest.mark.parametrize("scale", [np.inf, np.nan, "1", True])
def test_scales_are_checked(scale):
    with pytest.raises(InputError, match="scale must be a finite number"):
        lp.kernels.DotProduct(scale)


def test_rows_without_a_place_have_no_precomputed_weights():
    x = da.arange(10, chunks=5).astype(float)
    with pytest.raises(InputError, match=r"rows of known number.*call compute_chunk_sizes\(\)"):
        lp.log_mass(x[x > 3], np.zeros(3), lp.kernels.Precomputed(np.ones((10, 3))))


def test_rows_without_a_place_have_no_time():
    x = da.arange(10, chunks=5).astype(float)
    lazy = lp.log_mass(x[x > 3], np.zeros(3), lp.masks.Causal())
    with pytest.raises(InputError, match="chunk sizes before them are unknown"):
        lazy.compute(scheduler="sync")
