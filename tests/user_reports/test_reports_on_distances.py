"""User reports, section 1: distances and nearest neighbours (reports D01 to D17 and their kind)."""

import numpy as np
import pytest
from report_cuts import every_cut, layouts, results

import locpipe as lp
from locpipe.errors import InputError
from locpipe.metrics import METRICS
from locpipe.testing import assert_close, nearest_reference

KEYED = {"euclidean": 5.0, "manhattan": 7.0}


@every_cut
@pytest.mark.parametrize("metric", KEYED)
@pytest.mark.parametrize("offset", [0, 30_000, 3e6])
def test_d01_float32_far_from_the_origin(cut, metric, offset):
    a = np.float32([[offset, -offset]])
    b = np.float32([[offset + 3, 4 - offset]])
    distances, _ = results(lp.nearest(cut(a), cut(b), 1, metric=metric))
    assert distances.dtype == np.float32
    assert_close(distances, [[KEYED[metric]]], rtol=1e-6)


def test_d01_weights_and_densities_far_from_the_origin():
    a, b = np.float32([[30_000, -30_000]]), np.float32([[30_003, -29_996]])
    log_mass = lp.log_mass(a, b, lp.kernels.Gaussian(2.0))
    assert_close(log_mass, [-25 / 8], rtol=1e-6)
    near_0 = lp.log_density(a - a, b - a, lp.kernels.Gaussian(2.0))
    assert_close(lp.log_density(a, b, lp.kernels.Gaussian(2.0)), near_0, rtol=1e-6)


@every_cut
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "nan-euclidean"])
def test_d03_self_distance_is_zero_and_none_is_negative(cut, metric):
    x = np.float32(np.random.default_rng(7).normal(size=(200, 64)) + 500)
    distances, index = results(lp.nearest(cut(x), cut(x), 200, metric=metric))
    assert not np.isnan(distances).any()
    assert (distances >= 0).all()
    if metric != "cosine":
        assert (distances[:, 0] == 0).all()
        assert (index[:, 0] == np.arange(200)).all()
    else:
        assert (distances[:, 0] <= 1e-12).all()


def test_d03_own_weight_is_the_largest():
    x = np.float32(np.random.default_rng(7).normal(size=(200, 64)) + 500)
    for kernel in (lp.kernels.Gaussian(4.0), lp.kernels.Epanechnikov(4.0)):
        log_weight, index = lp.fold(lp.reductions.TopK(1), x, x, kernel)
        np.testing.assert_allclose(log_weight, 0, atol=1e-10)
        assert (index[:, 0] == np.arange(200)).all()


@every_cut
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_d03b_near_identical_wide_rows(cut, dtype):
    x = np.full((1, 512), 37.5, dtype)
    y = x + np.dtype(dtype).type(2**-8)
    distances, _ = results(lp.nearest(cut(x), cut(y), 1))
    assert_close(distances, [[0.08838834764831845]], rtol=1e-6)
    log_mass = results(lp.log_mass(cut(x), cut(y), lp.kernels.Gaussian(0.01)))
    assert_close(log_mass, [-0.0078125 / 2e-4], rtol=1e-6)


@every_cut
@pytest.mark.parametrize("metric", METRICS)
def test_d06_ties_go_to_the_lowest_index(cut, metric):
    x, q = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]), np.array([[0, 0]])
    distances, index = results(lp.nearest(cut(q), cut(x), 2, metric=metric))
    np.testing.assert_array_equal(index, [[0, 1]])
    assert_close(distances, [[1.0, 1.0]], rtol=1e-15)


@every_cut
def test_d06_votes_that_tie_are_equal_to_the_bit(cut):
    x, q = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]), np.array([[0, 0]])
    labels = np.array(["b", "a", "a", "b"])
    kinds, code = np.unique(labels, return_inverse=True)
    for weights in ("uniform", "distance", "gaussian"):
        kernel = lp.kernels.Nearest(4, weights)
        votes = results(lp.local_mean(cut(q), cut(x), cut(np.eye(2)[code]), kernel))
        assert votes[0, 0] == votes[0, 1]
        assert kinds[np.argmax(votes[0])] == "a"  # so the smallest label wins


@every_cut
def test_d06_ties_at_rank_k_keep_the_lowest_index_in_a_mean(cut):
    x, q, y = np.array([[1], [-1], [1], [-1]]), np.array([[0]]), np.array([1.0, 2.0, 4.0, 8.0])
    for k, mean in ((1, 1.0), (2, 1.5), (3, 7 / 3), (4, 3.75)):
        found = results(lp.local_mean(cut(q), cut(x), cut(y), lp.kernels.Nearest(k)))
        assert_close(found, [mean], rtol=1e-15)


@every_cut
def test_d08_exact_matches_count_alone(cut):
    x, y = np.array([[0], [0], [2], [5]]), np.array([4, 8, 100, -100])
    kernel = lp.kernels.Nearest(3, "distance")
    mean = results(lp.local_mean(cut([[0]]), cut(x), cut(y), kernel))
    assert_close(mean, [6.0], rtol=1e-15)


@every_cut
def test_d08_prediction_on_the_training_data_is_the_training_data(cut):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    kernel = lp.kernels.Nearest(5, "distance")
    np.testing.assert_array_equal(results(lp.local_mean(cut(x), cut(x), cut(y), kernel)), y)


@every_cut
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float32", "float64"])
def test_d10_no_neighbour_is_nan_or_the_documented_fallback(cut, dtype):
    """Never 0 unless asked for, never the least integer, and other rows are untouched."""
    x, y, q = np.array([[0], [1], [2]]), np.array([1, 2, 3], dtype), np.array([[1], [50]])
    kernel = lp.kernels.Epanechnikov(1.0)
    for empty, fallback in (("nan", np.nan), ("zero", 0.0), ("nearest", 3.0)):
        mean = results(lp.local_mean(cut(q), cut(x), cut(y), kernel, empty=empty))
        assert mean.dtype == np.float64
        np.testing.assert_array_equal(mean, [2.0, fallback])
    np.testing.assert_array_equal(
        results(lp.local_mean(cut(q), cut(x), cut(y), kernel)), [2.0, np.nan]
    )


@every_cut
@pytest.mark.parametrize(
    "kernel", [lp.kernels.Uniform(1.0), lp.kernels.Tricube(1.5), lp.kernels.Triangular(1.5)]
)
def test_d10_every_kernel_of_bounded_support_has_one_policy(cut, kernel):
    x, q = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [50.0]])
    mean = results(lp.local_mean(cut(q), cut(x), cut([1.0, 2.0, 3.0]), kernel))
    assert_close(mean[:1], [2.0], rtol=1e-15)
    assert np.isnan(mean[1])
    assert results(lp.log_mass(cut(q), cut(x), kernel))[1] == -np.inf
    assert results(lp.log_density(cut(q), cut(x), kernel))[1] == -np.inf


@every_cut
def test_d12_a_query_of_zeros_is_at_cosine_distance_one_from_all(cut):
    x, q = np.array([[1, 0], [0, 1]]), np.array([[0, 0]])
    distances, index = results(lp.nearest(cut(q), cut(x), 2, metric="cosine"))
    np.testing.assert_array_equal(distances, [[1.0, 1.0]])
    np.testing.assert_array_equal(index, [[0, 1]])


def test_d12_keys_of_zeros_and_kernels_of_cosine_distance():
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    distances, index = lp.nearest([[6.0, 8.0], [0.0, 0.0]], x, 2, metric="cosine")
    np.testing.assert_allclose(distances, [[0.0, 1.0], [1.0, 1.0]], atol=1e-15)
    np.testing.assert_array_equal(index, [[1, 0], [0, 1]])
    kernel = lp.kernels.Exponential(0.5, metric="cosine")
    assert_close(lp.log_mass([[0.0, 0.0]], x, kernel), [np.log(2) - 2])


@every_cut
def test_d14_missing_values_in_keys_and_in_queries(cut):
    nan = np.nan
    q, x = np.array([[3, nan, 5]]), np.array([[nan, 7, nan], [1, 2, nan]])
    distances, index = results(lp.nearest(cut(q), cut(x), 2, metric="nan-euclidean"))
    assert_close(distances, [[3.4641016151377544, np.inf]], rtol=1e-15)
    np.testing.assert_array_equal(index, [[1, -1]])
    for kernel in (
        lp.kernels.Gaussian(1e3, metric="nan-euclidean"),
        lp.kernels.Nearest(2, metric="nan-euclidean"),
    ):
        mean = results(lp.local_mean(cut(q), cut(x), cut([10.0, 20.0]), kernel))
        assert_close(mean, [20.0])


@pytest.mark.parametrize("metric", sorted(set(METRICS) - {"nan-euclidean"}))
def test_d14_other_metrics_refuse_missing_values(metric):
    whole, holed = np.array([[0.1, 0.2]]), np.array([[0.1, 0.2], [np.nan, 0.2]])
    with pytest.raises(InputError, match="queries must be finite, got nan in row 1"):
        lp.nearest(holed, whole, 1, metric=metric)
    with pytest.raises(InputError, match="keys must be finite, got nan in row 1"):
        lp.nearest(whole, holed, 1, metric=metric)


@every_cut
def test_d17_indices_have_64_bits(cut):
    index = results(lp.nearest(cut(np.zeros((3, 1))), cut(np.zeros((5, 1))), 2))[1]
    assert index.dtype == np.int64
    best = results(lp.fold(lp.reductions.ArgBest(), [0.0], cut([0.0, 1.0]), lp.kernels.Gaussian()))
    assert best[1].dtype == np.int64


@every_cut
def test_layouts_of_memory_change_no_bit(cut):
    x = np.random.default_rng(3).integers(0, 4, (20, 3)).astype(float)
    expected = nearest_reference(x, x, 6)
    for name, rows in layouts(x):
        found = results(lp.nearest(cut(rows), cut(rows), 6))
        for ours, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, right, err_msg=name)
