"""Radial kernels of other distances: weights, missing values, what is refused."""

import numpy as np
import pytest
from sklearn.metrics import pairwise

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.kernels import Epanechnikov, Exponential, Gaussian, StudentT, Uniform
from locpipe.kernels.names import RADIAL
from locpipe.metrics import METRICS
from locpipe.testing import assert_close

THEIRS = {
    "euclidean": pairwise.euclidean_distances,
    "manhattan": pairwise.manhattan_distances,
    "cosine": pairwise.cosine_distances,
    "nan-euclidean": pairwise.nan_euclidean_distances,
    "haversine": pairwise.haversine_distances,
}
KERNELS = [*sorted(set(RADIAL.values()), key=lambda kernel: kernel.__name__), StudentT]


def make(kernel, *args, **metric):
    return kernel(3.0, *args, **metric) if kernel is StudentT else kernel(*args, **metric)


def blocks(metric, seed=0):
    rng = np.random.default_rng(seed)
    d = 2 if metric == "haversine" else 3
    q, k = rng.uniform(-0.7, 0.7, (6, d)), rng.uniform(-0.7, 0.7, (8, d))
    if metric == "nan-euclidean":
        q[0, 0] = k[1, 2] = np.nan
    return QueryBlock(q), KeyBlock(k)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_are_the_profile_of_the_distance(kernel, metric):
    q, k = blocks(metric)
    h = 0.9
    u = THEIRS[metric](q.data, k.data) / h
    weights = np.exp(make(kernel, h, metric=metric).log_weights(q, k))
    np.testing.assert_allclose(
        weights, np.exp(make(kernel).log_profile(u * u, q.data.shape[1])), rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize("metric", METRICS)
def test_bandwidths_of_rows_multiply(metric):
    q, k = blocks(metric)
    wide = QueryBlock(q.data, bandwidth=np.full(6, 2.0))
    expected = Gaussian(1.4, metric=metric).log_weights(q, k)
    assert_close(Gaussian(0.7, metric=metric).log_weights(wide, k), expected)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "nan-euclidean"])
def test_a_bandwidth_per_feature_scales_the_coordinates(metric):
    q, k = blocks(metric)
    h = np.array([0.5, 1.0, 2.0])
    expected = Gaussian(metric=metric).log_weights(QueryBlock(q.data / h), KeyBlock(k.data / h))
    assert_close(Gaussian(h, metric=metric).log_weights(q, k), expected)


@pytest.mark.parametrize("metric", ["cosine", "haversine"])
def test_a_bandwidth_per_feature_needs_scaled_coordinates(metric):
    with pytest.raises(InputError, match=f"one number with metric='{metric}'.*got 2 numbers"):
        Gaussian([1.0, 2.0], metric=metric)


@pytest.mark.parametrize("metric", ["taxi", None, ["euclidean"]])
def test_metrics_are_checked(metric):
    with pytest.raises(InputError, match=r"metric must be one of .*'cosine'.*got "):
        Gaussian(1.0, metric=metric)
    with pytest.raises(InputError, match=r"metric must be one of .*'cosine'.*got "):
        StudentT(3.0, metric=metric)


def test_haversine_wants_latitude_and_longitude():
    with pytest.raises(InputError, match="rows of 2 features, got 3"):
        lp.log_mass(np.zeros((1, 3)), np.zeros((1, 3)), Gaussian(metric="haversine"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_only_euclidean_kernels_have_a_normaliser(kernel):
    spec = make(kernel, 2.0, metric="manhattan").lower(3)
    assert (spec.metric, spec.scale, spec.log_normalizer) == ("manhattan", (2.0,) * 3, None)
    assert make(kernel, 2.0).lower(3).log_normalizer is not None
    with pytest.raises(InputError, match=r"needs a kernel with a normaliser, got .*'manhattan'"):
        lp.log_density([0.0], [0.0], make(kernel, metric="manhattan"))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.filterwarnings("error")
def test_rows_that_share_no_feature_are_no_neighbours(kernel):
    kernel = make(kernel, metric="nan-euclidean")
    q = QueryBlock(np.array([[1.0, np.nan]]), bandwidth=np.array([2.0]))
    k = KeyBlock(np.array([[np.nan, 1.0], [1.0, 9.0]]))
    log_w = kernel.log_weights(q, k)
    assert log_w[0, 0] == -np.inf
    assert log_w[0, 1] == kernel.log_peak
    assert kernel.allows_missing
    assert not Gaussian().allows_missing


def test_nearness_goes_on_beyond_the_support():
    q, k = QueryBlock(np.zeros((1, 1))), KeyBlock(np.array([[9.0], [5.0], [0.1]]))
    kernel = Epanechnikov(2.0)
    assert (kernel.log_weights(q, k) > -np.inf).tolist() == [[False, False, True]]
    nearness = kernel.nearness()
    assert_close(nearness.log_weights(q, k), [[-20.25, -6.25, -0.0025]])
    assert nearness.nearness() is nearness
    assert (nearness.lower(1).profile, nearness.lower(1).log_bound) == ("nearness", 0.0)
    assert (nearness.symmetric, nearness.allows_missing) == (True, False)


def test_nearness_is_formed_from_differences():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 40)) + 1e4
    x[3] = x[1]
    score = Gaussian(0.3).nearness().log_weights(QueryBlock(x), KeyBlock(x))
    np.testing.assert_array_equal(np.diag(score), 0)
    np.testing.assert_array_equal(score[1], score[3])


@pytest.mark.parametrize("metric", ["manhattan", "haversine", "cosine"])
def test_a_local_mean_under_another_metric(metric):
    q, k = blocks(metric)
    v = np.arange(8.0)
    w = np.exp(-THEIRS[metric](q.data, k.data) / 0.3)
    mean = lp.local_mean(q.data, k.data, v, Exponential(0.3, metric=metric))
    np.testing.assert_allclose(mean, w @ v / w.sum(1), rtol=1e-6)


def test_a_ball_on_the_sphere_is_an_angle():
    # A degree of latitude is pi / 180 in radians, wherever it lies.
    north, south = np.deg2rad([[60.0, 10.0]]), np.deg2rad([[59.0, 10.0], [57.0, 10.0]])
    kernel = Uniform(np.deg2rad(2.0), metric="haversine")
    assert np.exp(lp.log_mass(north, south, kernel)).tolist() == [1.0]


def test_rows_of_zeros_are_at_cosine_distance_one():  # D12
    q, k = np.zeros((1, 2)), np.array([[1.0, 0.0], [0.0, 0.0]])
    assert_close(lp.log_mass(q, k, Exponential(0.5, metric="cosine")), [np.log(2) - 2])


def test_missing_values_in_queries_and_keys():  # D14
    q, k = np.array([[3.0, np.nan, 5.0]]), np.array([[1.0, 2.0, np.nan], [np.nan, 7.0, np.nan]])
    kernel = Exponential(2.0, metric="nan-euclidean")
    assert_close(kernel.log_weights(QueryBlock(q), KeyBlock(k))[0], [-np.sqrt(12) / 2, -np.inf])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "nan-euclidean"])
def test_differences_are_divided_not_coordinates(metric):
    # On the lattice equal differences are exact at any offset, and 0.3 divides none of them.
    x = np.arange(12.0)[:, None] * [1.0, 2.0] + [0.0, 2.0**40]
    kernel = Exponential((0.3, 0.7), metric=metric)
    log_w = kernel.log_weights(QueryBlock(x), KeyBlock(x))
    for lag in range(1, 12):
        assert len(set(np.diag(log_w, lag)) | set(np.diag(log_w, -lag))) == 1
    near = kernel.log_weights(QueryBlock(x - [0, 2.0**40]), KeyBlock(x - [0, 2.0**40]))
    np.testing.assert_array_equal(log_w, near)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "nan-euclidean"])
@pytest.mark.parametrize("kernel", [k for k in KERNELS if make(k).support == np.inf])
def test_no_distance_is_infinite(kernel, metric):
    sizes = 10.0 ** np.linspace(-150, 150, 31)
    q, k = QueryBlock(np.zeros((1, 1))), KeyBlock(sizes[:, None])
    for h in (1e-150, 1e-8, 1.0, 1e150):
        for row in (1e-140, 1.0, 1e140):
            rows = QueryBlock(q.data, bandwidth=np.array([row]))
            for block in (q, rows):
                log_w = make(kernel, h, metric=metric).log_weights(block, k)
                assert np.isfinite(log_w).all()
                assert (np.diff(log_w) <= 0).all()


def test_bandwidths_that_undo_each_other_do_not_overflow():
    q, k = QueryBlock(np.zeros((1, 1)), bandwidth=np.array([1e150])), KeyBlock(np.array([[1e10]]))
    assert_close(Gaussian(1e-150).log_weights(q, k), [[-0.5e20]])
    tiny = QueryBlock(q.data, bandwidth=np.array([1e-150]))
    assert Gaussian(1e-150).log_weights(tiny, KeyBlock(q.data)).tolist() == [[0.0]]


def test_a_mean_far_beyond_float64_is_a_number():
    assert lp.local_mean([1e150], [1.0, 2.0], [1.0, 2.0], Gaussian(1e-8)).tolist() == [1.5]
