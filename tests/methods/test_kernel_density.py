import dask.array as da
import numpy as np
import pytest
from scipy.stats import gaussian_kde
from sklearn import neighbors
from sklearn.exceptions import NotFittedError

import locpipe as lp
from locpipe.errors import InputError
from locpipe.methods.resolve import bandwidth_by_rule
from locpipe.testing import assert_close, assert_log_close, no_compute


@pytest.fixture
def X():  # noqa: N802 - the field's name for a data matrix
    return np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 2.0, 5.0]


def test_equals_scikit_learn(X):
    ours = lp.KernelDensity(bandwidth=0.8).fit(X).score_samples(X)
    theirs = neighbors.KernelDensity(bandwidth=0.8).fit(X)
    assert_log_close(ours, theirs.score_samples(X), 1e-10)
    assert_close(lp.KernelDensity(bandwidth=0.8).fit(X).score(X), theirs.score(X), 1e-10)


@pytest.mark.parametrize("name", ["tophat", "epanechnikov", "exponential", "linear", "cosine"])
def test_kernels_by_name_equal_scikit_learn(X, name):
    theirs = neighbors.KernelDensity(kernel=name, bandwidth=3.0).fit(X).score_samples(X)
    ours = lp.KernelDensity(kernel=name, bandwidth=3.0).fit(X).score_samples(X)
    assert_log_close(ours, theirs, 1e-10)


def test_rules_equal_scipy_on_whitened_axes(X):
    # SciPy scales by the full covariance: on one axis that is the variance.
    for rule in ("scott", "silverman"):
        theirs = gaussian_kde(X[:, 0], bw_method=rule)
        ours = lp.KernelDensity(bandwidth=rule).fit(X[:, :1])
        assert_close(np.exp(ours.score_samples(X[:5, :1])), theirs(X[:5, 0]), 1e-10)


def test_weighted_rule_with_equal_weights_is_the_plain_rule(X):
    assert_close(bandwidth_by_rule("scott", X, np.full(200, 3.0)), bandwidth_by_rule("scott", X))


def test_bandwidths_that_ride_in_the_keys_count():  # K13
    kde = lp.KernelDensity(bandwidth=1.0).fit(lp.Keys([0.0, 4.0], bandwidth=[0.5, 2.0]))
    assert_close(np.exp(kde.score_samples([0.0])), [0.41244002202972974], 1e-14)
    # Variance of the mixture: (0.25 + 4) / 2 within, 4 between; one bandwidth of 1 gives 5.
    assert abs(kde.sample(20_000).var() - 6.125) < 0.3


def test_integrates_to_one():
    x = np.random.default_rng(1).normal(size=50)
    grid = np.linspace(-12, 12, 4001)
    density = np.exp(lp.KernelDensity(bandwidth="scott").fit(x).score_samples(grid))
    assert abs(np.trapezoid(density, grid) - 1) < 1e-9


def test_lazy_on_dask(X):
    kde = lp.KernelDensity(bandwidth=0.8).fit(X)
    with no_compute():
        lazy = kde.score_samples(da.from_array(X, chunks=(33, -1)))
    np.testing.assert_array_equal(lazy.compute(), kde.score_samples(X))


def test_samples_have_the_right_moments_and_seed(X):
    kde = lp.KernelDensity(bandwidth=0.5).fit(X)
    draws = kde.sample(20_000, random_state=3)
    np.testing.assert_array_equal(draws, kde.sample(20_000, random_state=3))
    np.testing.assert_allclose(draws.mean(0), X.mean(0), atol=0.15)
    np.testing.assert_allclose(draws.var(0), X.var(0) + 0.25, rtol=0.1)


def test_samples_come_only_from_keys_with_weight():
    kde = lp.KernelDensity(bandwidth=0.1).fit([[0.0], [100.0]], sample_weight=[1, 0])
    assert np.abs(kde.sample(100)).max() < 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_in_is_dtype_out(X, dtype):  # K12
    X = X.astype(dtype)
    assert lp.KernelDensity().fit(X).score_samples(X).dtype == dtype


def test_a_constant_column(X):  # K05
    X = np.c_[np.linspace(0, 1, 50), np.full(50, 5.0)]
    with pytest.raises(InputError, match=r"column\(s\) \[1\] are constant"):
        lp.KernelDensity(bandwidth="scott").fit(X)
    assert np.isfinite(lp.KernelDensity(bandwidth=0.5).fit(X).score_samples(X)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gausian"}, "one of .*'gaussian'.* or an object, got 'gausian'"),
        ({"bandwidth": -1}, "positive finite"),
        ({"bandwidth": "scot"}, r"one of \['scott', 'silverman'\], got 'scot'"),
        ({"bandwidth": [1.0, 2.0]}, r"one per feature \(3\), got 2"),
        ({"kernel": lp.kernels.Gaussian(1.0), "bandwidth": 2.0}, "set bandwidth=None"),
    ],
)
def test_bad_parameters(X, parameters, message):  # P08
    with pytest.raises(InputError, match=message):
        lp.KernelDensity(**parameters).fit(X)


def test_bad_data_and_order_of_calls(X):
    with pytest.raises(NotFittedError):
        lp.KernelDensity().score_samples(X)
    with pytest.raises(InputError, match="at least two samples, got 1"):
        lp.KernelDensity().fit(X[:1])
    with pytest.raises(InputError, match="n_samples must be at least 1, got -1"):
        lp.KernelDensity().fit(X).sample(-1)
    with pytest.raises(InputError, match=r"got \['gaussian'\]"):
        lp.KernelDensity(kernel=["gaussian"]).fit(X)
    kernel = lp.kernels.Gaussian(1.0) * lp.masks.Causal()
    kde = lp.KernelDensity(kernel=kernel, bandwidth=None).fit(X)
    with pytest.raises(InputError, match="sampling needs the Gaussian kernel"):
        kde.sample()
