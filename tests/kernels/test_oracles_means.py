"""Theory sheet 1.1 and 1.3 to 1.6: every number and identity that is a kernel's, as a test."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.graph import fold
from locpipe.kernels import Epanechnikov, Gaussian, Nearest, Precomputed, StudentT, Tricube, Uniform
from locpipe.kernels.masks import ExcludeSelf
from locpipe.reductions import LogMass, WeightedMean
from locpipe.testing import assert_close

# Sheet 0: toy sets T and U.
X, Y, Q = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0, 5.0]), np.array([1.5])
U = np.array([0.0, 1.0, 3.0])
# Sheet 1.1 (a), (b): local mean and n_eff.
ROWS = {
    Gaussian(1.0): (2.3232380317338, 2.734153324154),
    Epanechnikov(3.0): (2.3796296296296, 3.534545454545),
    Tricube(3.0): (2.1989591911938, 3.076659569584),
    StudentT(3.0, 1.0): (2.3937990468815, 2.906152417484),
}


@pytest.mark.parametrize("kernel", ROWS, ids=str)
def test_local_means(kernel):  # sheet 1.1 (a)
    assert_close(lp.local_mean(Q, X, Y, kernel), [ROWS[kernel][0]], 1e-13)


@pytest.mark.parametrize("kernel", ROWS, ids=str)
def test_effective_numbers(kernel):  # sheet 1.1 (b)
    assert_close(fold(LogMass(), Q, X, kernel)[1], [ROWS[kernel][1]], 1e-12)


def test_the_effective_number_of_plain_weights():  # sheet 1.1 (b): w = (1, .5, .25)
    kernel = Precomputed([[1.0, 0.5, 0.25]])
    assert_close(fold(LogMass(), [0.0], np.zeros(3), kernel)[1], [7 / 3])


def states(reduction, kernel, q, k, cuts):
    """State of each span of the keys."""
    edges = [0, *sorted(cuts), k.n_rows]
    blocks = [k.rows(slice(a, b)) for a, b in pairwise(edges) if b > a]
    return [
        reduction.update(reduction.init(q), kernel.log_weights(q, block), q, block)
        for block in blocks
    ]


@given(st.lists(st.integers(1, 49), max_size=6), st.randoms(use_true_random=False))
def test_any_split_in_any_order(cuts, random):  # sheet 1.1 (c): every naive exp() underflows
    rng = np.random.default_rng(0)
    q = QueryBlock(np.array([[343.5]]))
    k = KeyBlock(rng.uniform(0, 4, (50, 1)), values=rng.uniform(1, 2, (50, 1)))
    kernel, mean = Gaussian(1.0), WeightedMean(1)
    log_w = kernel.log_weights(q, k)
    assert -5.9e4 < log_w.min() < log_w.max() < -5.7e4
    assert np.exp(log_w.max()) == 0
    parts = states(mean, kernel, q, k, cuts)
    random.shuffle(parts)
    whole = mean.finalize(mean.update(mean.init(q), log_w, q, k), np.nan)[0]
    assert_close(mean.finalize(reduce(mean.merge, parts), np.nan)[0], whole, 1e-15)


def test_far_queries_take_the_nearest_value():  # sheet 1.1 (d)
    assert_close(lp.local_mean([-1e6, 1e6], X, Y, Gaussian()), [1.0, 5.0])
    pair = lp.local_mean(
        [[0.0, 1e6]], [[-1.0, 0.0], [1.0, 0.0], [0.0, -9.0]], [2, 8, 99], Gaussian()
    )
    assert_close(pair, [5.0])


@pytest.mark.parametrize("kernel", ROWS, ids=str)
def test_a_constant_factor_and_a_shift_change_nothing(kernel):  # sheet 1.1 (e)
    mean = lp.local_mean(Q, X, Y, kernel)
    assert_close(lp.local_mean(Q, X, Y, kernel, sample_weight=np.full(4, 1e-200)), mean)
    constant = Precomputed(np.full((1, 4), 7e30))
    assert_close(lp.local_mean(Q, X, Y, kernel * constant), mean)
    assert_close(lp.local_mean(Q + 1024, X + 1024, Y, kernel), mean)


def mixture(n=100):
    rng = np.random.default_rng(5)
    return np.where(rng.random(n) < 0.4, rng.normal(-2, 0.5, n), rng.normal(1, 1, n))


def test_the_sample_point_estimate_is_a_density():  # sheet 1.3 (a)
    x = mixture()
    keys = lp.Keys(x, bandwidth=lp.abramson_bandwidths(x, Gaussian(0.4)))
    grid, step = np.linspace(-30, 30, 12001, retstep=True)
    total = np.exp(lp.log_density(grid, keys, Gaussian(0.4))).sum() * step
    assert_close(total, 1.0000000000, 1e-10)


def test_the_product_of_the_factors_is_one():  # sheet 1.3 (a)
    assert_close(np.prod(lp.abramson_bandwidths(mixture(), Gaussian(0.4))), 1.0, 1e-11)


@pytest.mark.parametrize(
    ("i", "factor"), [(0, 0.9504964892087), (1, 0.9367728866184), (2, 1.1230915783176)]
)
def test_abramson_factors(i, factor):  # sheet 1.3 (b)
    assert_close(lp.abramson_bandwidths(U, Gaussian(0.8))[i], factor)


def test_the_adaptive_density():  # sheet 1.3 (b)
    keys = lp.Keys(U, bandwidth=lp.abramson_bandwidths(U, Gaussian(0.8)))
    assert_close(np.exp(lp.log_density([0.5], keys, Gaussian(0.8))), [0.28600505024050])


def test_the_density_of_one_bandwidth():  # sheet 1.3 (b)
    assert_close(np.exp(lp.log_density([0.5], U, Gaussian(0.8))), [0.27472674797331])


def ball_density(q, x, k):
    rows = lp.Queries(q, bandwidth=lp.neighbour_bandwidths(q, k, x))
    return np.exp(lp.log_density(rows, x, Uniform()))


def test_loftsgaarden_and_quesenberry():  # sheet 1.3 (c)
    assert_close(ball_density([3.1], [0.0, 1.0, 2.0, 4.0, 8.0], 2), [2 / (5 * 2 * 1.1)])


def test_local_scaling_has_no_unit():  # sheet 1.3 (d)
    x = np.random.default_rng(1).normal(size=(12, 2))

    def log_mass(c):
        root = np.sqrt(lp.neighbour_bandwidths(c * x, 3))
        rows = lp.Queries(c * x, bandwidth=root), lp.Keys(c * x, bandwidth=root)
        return lp.log_mass(*rows, Gaussian(2**-0.5))

    d = np.linalg.norm(x[:, None] - x, axis=2)
    s = np.sort(d, axis=1)[:, 3]
    assert_close(log_mass(1.0), np.log(np.exp(-(d**2) / np.outer(s, s)).sum(1)))
    np.testing.assert_array_equal(log_mass(4.0), log_mass(1.0))
    assert_close(log_mass(0.3), log_mass(1.0))


def test_the_balloon_has_tails_without_an_integral():  # sheet 1.3 (e)
    x = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    far = np.array([1e4, -1e4, 1e6, 1e8])
    # f(q) = k / (2 n r_k), and r_k grows as |q|.
    np.testing.assert_allclose(ball_density(far, x, 2) * np.abs(far), 2 / (2 * 5), rtol=1e-3)


def sample(n=40, d=2):
    rng = np.random.default_rng(2)
    return rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=(15, d))


@pytest.mark.parametrize("k", [2, 5, 11])
def test_leaving_a_row_out_of_its_own_mean(k):  # sheet 1.4 (a)
    x, y, _ = sample()
    residual = (y - lp.local_mean(x, x, y, Nearest(k))) / (1 - 1 / k)
    assert_close(y - residual, lp.local_mean(x, x, y, Nearest(k - 1) * ExcludeSelf()), 1e-10)


def gaussian_weights(d):
    return np.exp(-0.5 * (d / 0.7) ** 2)


def test_all_neighbours_under_gaussian_weights():  # sheet 1.4 (b)
    x, y, q = sample()
    theirs = KNeighborsRegressor(len(x), weights=gaussian_weights).fit(x, y).predict(q)
    assert_close(lp.local_mean(q, x, y, Gaussian(0.7)), theirs, 1e-11)
    assert_close(lp.local_mean(q, x, y, Nearest(len(x)) * Gaussian(0.7)), theirs, 1e-11)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_neighbours_as_in_scikit_learn(k, weights):  # sheet 1.4 and appendix A
    x, y, q = sample()
    q[0] = x[3]
    theirs = KNeighborsRegressor(k, weights=weights).fit(x, y).predict(q)
    assert_close(lp.local_mean(q, x, y, Nearest(k, weights)), theirs, 1e-10)
    labels = np.digitize(y, [-0.5, 0.5])
    chances = KNeighborsClassifier(k, weights=weights).fit(x, labels).predict_proba(q)
    ours = lp.local_mean(q, x, np.eye(3)[labels], Nearest(k, weights))
    np.testing.assert_allclose(ours, chances, rtol=1e-10, atol=1e-15)


def plain_lowess(x, y, k):
    """Local line at each x under tricube weights of the distance in k-th distances."""
    fitted = np.empty_like(y)
    for i, at in enumerate(x):
        d = np.abs(x - at)
        w = np.clip(1 - (d / np.sort(d)[k - 1]) ** 3, 0, None) ** 1.5
        basis = np.c_[w, w * (x - at)]
        fitted[i] = np.linalg.lstsq(basis, w * y, rcond=None)[0][0]
    return fitted


@pytest.mark.parametrize("frac", [0.3, 2 / 3])
def test_lowess(frac):  # sheet 1.4 (c): statsmodels' lowess(it=0, delta=0) is this
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0, 10, 50))
    y = np.sin(x) + rng.normal(0, 0.2, 50)
    k = int(frac * 50 + 1e-10)
    moments = np.c_[x, x * x, y, x * y]
    mx, mxx, my, mxy = lp.local_mean(x, x, moments, Nearest(k, "tricube")).T
    line = my + (x - mx) * (mxy - mx * my) / (mxx - mx * mx)
    np.testing.assert_allclose(line, plain_lowess(x, y, k), rtol=1e-9, atol=1e-10)


def normal_density(x, z, h, weight=None):
    return np.exp(lp.log_density(x, z, Gaussian(h), sample_weight=weight))


def test_a_gaussian_of_a_gaussian():  # sheet 1.5 (a): a^2 = .25, b^2 = .64, x - y = 1.3
    expected = 0.16363616409378
    assert_close(normal_density([1.3], [0.0], np.sqrt(0.25 + 0.64)), [expected])
    z, dz = np.linspace(-12, 12, 4001, retstep=True)
    w = normal_density(z, [0.0], 0.8)
    assert_close(normal_density([1.3], z, 0.5, w) * w.sum() * dz, [expected])


def test_a_product_of_gaussians_adds_precisions():  # sheet 1.5, definition
    x, y, q = sample()
    one = lp.local_mean(q, x, y, Gaussian([0.5, 2.0]) * Gaussian(0.9))
    h = 1 / np.sqrt(1 / np.array([0.5, 2.0]) ** 2 + 1 / 0.81)
    assert_close(one, lp.local_mean(q, x, y, Gaussian(h)), 1e-11)


def test_rows_of_a_composition_sum_to_one():  # sheet 1.5 (b)
    x, _, q = sample()
    z = x[:11] + 0.3
    inner = lp.local_mean(z, x, np.eye(len(x)), Tricube(3.0))
    composed = lp.local_mean(q, z, inner, Gaussian(0.5))
    assert_close(composed.sum(1), np.ones(len(q)))
    assert (composed >= 0).all()


def as_plane(rows):
    """Two features out of three: the two spaces meet here."""
    return rows[:, :2] + rows[:, 2:]


def other_plane(rows):
    return np.c_[rows[:, 0], rows[:, 0] ** 2]


def test_a_round_trip_between_two_spaces():  # sheet 1.5 (c)
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(7, 3)), rng.normal(size=(5, 1))
    there = lp.local_mean(x, y, np.eye(5), Gaussian().on(query=as_plane, key=other_plane))
    back = lp.local_mean(y, x, np.eye(7), Gaussian().on(query=other_plane, key=as_plane))
    d2 = ((as_plane(x)[:, None] - other_plane(y)) ** 2).sum(2)
    K = np.exp(-0.5 * d2)
    rows, columns = K.sum(1), K.sum(0)
    singular = np.linalg.svd(K / np.sqrt(np.outer(rows, columns)), compute_uv=False)
    found = np.sort(np.linalg.eigvals(there @ back).real)[::-1][:5]
    np.testing.assert_allclose(found, singular**2, rtol=1e-9, atol=1e-12)
    assert_close(found[0], 1.0)
    law = rows / rows.sum()
    assert_close(law @ there @ back, law)


LEVELS = np.r_[np.zeros(7), np.ones(5)]


def bilateral(x, y, h_x, h_y):
    kernel = h_x * Gaussian(h_y).on(query="values", key="values")
    return lp.local_mean(lp.Queries(x, values=y), lp.Keys(x, values=y), kernel=kernel)


def test_two_levels():  # sheet 1.6 (a): flat k_x, h_y = .4
    smoothed = bilateral(np.arange(12.0), LEVELS[:, None], Uniform(1e3), 0.4)[:, 0]
    e = np.exp(-3.125)
    assert_close(smoothed[0], 0.030428568312296)
    assert_close(smoothed[0], 5 * e / (7 + 5 * e))
    assert_close(smoothed[-1], 5 / (7 * e + 5))


def test_a_wide_bandwidth_in_the_values_is_a_local_mean():  # sheet 1.6 (b)
    x, y, _ = sample()
    plain = lp.local_mean(x, x, y[:, None], Gaussian(0.8))
    assert_close(bilateral(x, y[:, None], Gaussian(0.8), 1e9), plain, 1e-10)


def test_a_wide_bandwidth_in_space_is_a_mean_shift_of_the_values():  # sheet 1.6 (b)
    x, y, _ = sample()
    shift = lp.local_mean(y, y, y[:, None], Gaussian(0.3))
    assert_close(bilateral(x, y[:, None], Gaussian(1e9), 0.3), shift, 1e-10)


def test_a_bilateral_step_is_part_of_a_mean_shift_step():  # sheet 1.6 (c)
    x, y, _ = sample()
    joint = np.c_[x / 0.8, y / 0.3]
    step = lp.local_mean(joint, joint, joint, Gaussian())[:, 2:] * 0.3
    assert_close(bilateral(x, y[:, None], Gaussian(0.8), 0.3), step, 1e-10)
