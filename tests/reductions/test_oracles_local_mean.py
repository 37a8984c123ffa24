"""Oracles of theory sheet 1, sections 2.1 and 2.3; each test names its line."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import locpipe as lp
from locpipe.graph import fold
from locpipe.kernels import Gaussian, Nearest, Uniform
from locpipe.reductions import WeightedMean, WeightedVariance
from locpipe.testing import assert_close

X, Y, Q = np.array([0.0, 1, 2, 4]), np.array([1.0, 3, 2, 5]), np.array([1.5])


def means(reduction, kernel, q=Q, x=X, y=Y):
    return fold(reduction, q, lp.Keys(x, values=y), kernel)


# 2.1 Chk: T Gaussian, m = 2.3232380317338, v = 0.646639403369.
def test_2_1_mean_and_variance():
    mean, variance = means(WeightedVariance(1), Gaussian(1.0))
    assert_close(mean, [[2.3232380317338]], 1e-12)
    assert_close(variance, [[0.646639403369]], 1e-11)


# 2.1 Num: offset 1e6, true variance 12.332: squares lose 1.6e-3, Chan keeps 1e-10.
def test_2_1_a_large_offset():
    rng = np.random.default_rng(11)
    x, y = rng.normal(size=5000), rng.normal(size=5000) * np.sqrt(12.332)
    keys = {"x": x, "kernel": Gaussian(0.5), "q": np.zeros(1)}
    _, plain = means(WeightedVariance(1), y=y, **keys)
    _, moved = means(WeightedVariance(1), y=y + 1e6, **keys)
    np.testing.assert_allclose(moved, plain, rtol=0, atol=1e-9)
    squares, mean = (means(WeightedMean(1), y=v, **keys)[0] for v in ((y + 1e6) ** 2, y + 1e6))
    assert abs(squares - mean**2 - plain) > 1e-4


# 2.1 Num and Chk: X ~ N(0, s^2), y = x, Gaussian h: m(x) = x s^2 / (s^2 + h^2); s = 1, h = .5: .8.
def test_2_1_population_attenuation():
    # Quadrature in place of a sample: weights are the normal density on a fine grid.
    x = np.linspace(-9, 9, 4001)
    keys = lp.Keys(x, values=x, sample_weight=np.exp(-0.5 * x**2))
    mean, variance = fold(WeightedVariance(1), [1.0, -0.5], keys, Gaussian(0.5))
    assert_close(mean[:, 0], [0.8, -0.4], 1e-12)
    # The local variance of y = x is that of a product of two Gaussians.
    assert_close(variance[:, 0], [0.2, 0.2], 1e-12)


# 2.3 Def: probabilities are local means of one-hot values; the mode is their largest.
def probabilities(q, x, labels, kernel):
    classes = np.unique(labels)
    one_hot = (labels[:, None] == classes).astype(float)
    (mean,) = means(WeightedMean(len(classes)), kernel, q, x, one_hot)
    return mean, classes[np.argmax(mean, axis=1)]


def test_2_3_ties_go_to_the_lowest_class():
    proba, mode = probabilities([0.0], np.array([-1.0, 1.0]), np.array([7, 3]), Gaussian(1.0))
    np.testing.assert_array_equal(proba, [[0.5, 0.5]])
    np.testing.assert_array_equal(mode, [3])


# 2.3 Chk: proba rows sum to 1; h -> inf: the global majority.
def test_2_3_rows_sum_to_one_and_the_wide_limit_is_the_majority():
    rng = np.random.default_rng(3)
    x, labels, q = rng.normal(size=(60, 2)), rng.integers(0, 3, 60), rng.normal(size=(9, 2))
    proba, _ = probabilities(q, x, labels, Gaussian(0.4))
    assert_close(proba.sum(axis=1), np.ones(9), 1e-13)
    proba, mode = probabilities(q, x, labels, Gaussian(1e6))
    counts = np.bincount(labels)
    np.testing.assert_allclose(proba, np.broadcast_to(counts / 60, (9, 3)), rtol=1e-9)
    np.testing.assert_array_equal(mode, np.full(9, counts.argmax()))


# 2.3 Chk: the uniform k-NN kernel is KNeighborsClassifier(weights="uniform"), lowest-code ties.
@pytest.mark.parametrize("k", [1, 4, 10])
def test_2_3_nearest_neighbours_equal_scikit_learn(k):
    rng = np.random.default_rng(k)
    x, labels, q = rng.normal(size=(90, 2)), rng.integers(0, 4, 90), rng.normal(size=(40, 2))
    theirs = KNeighborsClassifier(k, weights="uniform").fit(x, labels)
    proba, mode = probabilities(q, x, labels, Nearest(k))
    assert_close(proba, theirs.predict_proba(q), 1e-14)
    np.testing.assert_array_equal(mode, theirs.predict(q))


# 2.3 Num: empty -> flag.
def test_2_3_no_neighbour_is_nan():
    proba, _ = probabilities([50.0], X, np.array([0, 1, 1, 0]), Uniform(1.0))
    assert np.isnan(proba).all()
