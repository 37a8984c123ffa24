"""AsymmetricMDS against exact configurations, hand-worked sweeps and bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import procrustes
from sklearn.base import clone

import locpipe as lp
from locpipe.errors import InputError
from locpipe.methods.dissimilarities import as_cells, symmetric_and_skew


def planted(seed=0, m=120, n=90, p=2):
    """Row and column points, and the exact distances between them."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(m, p)), rng.normal(size=(n, p))
    return X, Y, distances(X, Y)


def distances(X, Y):
    return np.linalg.norm(X[:, None] - Y[None], axis=2)


def disparity(X, Y, mds):
    found = np.vstack([mds.embedding_, mds.key_embedding_])
    return procrustes(np.vstack([X, Y]), found)[2]


def assert_never_rises(history):
    assert len(history) > 1
    assert np.all(np.diff(history) <= 0)


def test_spectral_start_solves_error_free_distances():
    X, Y, D = planted()
    mds = lp.AsymmetricMDS(init="spectral").fit(D)
    assert mds.init_ == "spectral"
    assert mds.converged_
    assert disparity(X, Y, mds) < 1e-10
    assert mds.normalized_stress_ < 1e-20
    np.testing.assert_allclose(distances(mds.embedding_, mds.key_embedding_), D, atol=1e-10)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_best_of_ten_random_starts_solves_error_free_distances(seed):
    X, Y, D = planted(seed)
    mds = lp.AsymmetricMDS(init="random", n_init=10, random_state=seed).fit(D)
    assert mds.init_.startswith("random-")
    assert disparity(X, Y, mds) < 1e-6


@pytest.mark.parametrize("p", [1, 3])
def test_other_dimensions(p):
    X, Y, D = planted(3, 40, 30, p)
    mds = lp.AsymmetricMDS(n_components=p).fit(D)
    assert mds.embedding_.shape == (40, p)
    assert mds.key_embedding_.shape == (30, p)
    assert disparity(X, Y, mds) < 1e-10


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_little_noise_moves_the_map_little(noise):
    X, Y, D = planted(4)
    D = D * np.random.default_rng(0).normal(1, noise, D.shape).clip(0)
    mds = lp.AsymmetricMDS(init="spectral").fit(D)
    assert disparity(X, Y, mds) < noise**2
    assert mds.normalized_stress_ < 2 * noise**2


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_do_not_matter(unit):
    _, _, D = planted(5, 30, 20)
    noisy = D * np.random.default_rng(0).uniform(0.8, 1.2, D.shape)
    mds = lp.AsymmetricMDS(n_init=1).fit(noisy)
    scaled = lp.AsymmetricMDS(n_init=1).fit(noisy * unit)
    assert scaled.init_ == mds.init_
    np.testing.assert_allclose(
        scaled.embedding_, mds.embedding_ * unit, rtol=1e-6, atol=1e-9 * unit
    )


@pytest.mark.parametrize("seed", range(5))
def test_stress_never_rises(seed):
    # User report T03.
    D = np.random.default_rng(seed).uniform(0, 1, (30, 30))
    mds = lp.AsymmetricMDS(n_init=2, max_iter=50, tol=0).fit(D)
    assert_never_rises(mds.stress_history_)
    assert len(mds.stress_history_) == mds.n_iter_ + 1


@pytest.mark.parametrize("seed", range(4))
def test_at_the_bottom_only_rounding_is_left_and_the_search_ends(seed):
    D = np.random.default_rng(seed).uniform(0, 1, (6, 5))
    mds = lp.AsymmetricMDS(init="random", n_init=1, max_iter=20_000, tol=0).fit(D)
    assert mds.converged_
    assert np.all(np.diff(mds.stress_history_) < 0)


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(3, 40),
    n=st.integers(3, 40),
    missing=st.floats(0, 0.6),
    relaxation=st.sampled_from([1.0, 1.5, 1.9, 1.99]),
    init=st.sampled_from(["spectral", "random"]),
)
def test_stress_never_rises_with_missing_cells_and_weights(seed, m, n, missing, relaxation, init):
    rng = np.random.default_rng(seed)
    D, weight = rng.exponential(size=(m, n)), rng.uniform(0, 1, (m, n)) + 1e-3
    hole = rng.random((m, n)) < missing
    hole[np.arange(m), np.arange(m) % n] = False
    hole[np.arange(n) % m, np.arange(n)] = False
    D[hole] = np.nan
    options = {"init": init, "n_init": 1, "max_iter": 30, "tol": 0, "relaxation": relaxation}
    mds = lp.AsymmetricMDS(**options).fit(D, weight=weight)
    assert_never_rises(np.append(mds.stress_history_, mds.stress_history_[-1]))
    error = np.where(hole, 0, D - distances(mds.embedding_, mds.key_embedding_))
    whole = np.nansum(weight * D**2)
    stress = np.sum(weight * error**2)
    np.testing.assert_allclose(mds.stress_, stress, rtol=1e-9, atol=1e-15 * whole)
    np.testing.assert_allclose(mds.normalized_stress_, mds.stress_ / whole, rtol=1e-12)


def test_missing_cells_are_filled_by_the_map():
    X, Y, D = planted(6, 60, 50)
    hole = np.random.default_rng(1).random(D.shape) < 0.3
    mds = lp.AsymmetricMDS(max_iter=3000, tol=1e-9).fit(np.where(hole, np.nan, D))
    assert disparity(X, Y, mds) < 1e-8
    found = distances(mds.embedding_, mds.key_embedding_)
    np.testing.assert_allclose(found[hole], D[hole], atol=1e-3)


def test_weight_0_is_missing():
    _, _, D = planted(7, 20, 15)
    rng = np.random.default_rng(2)
    D *= rng.uniform(0.7, 1.3, D.shape)
    hole = rng.random(D.shape) < 0.2
    options = {"init": "random", "n_init": 1}
    by_nan = lp.AsymmetricMDS(**options).fit(np.where(hole, np.nan, D))
    by_weight = lp.AsymmetricMDS(**options).fit(D, weight=np.where(hole, 0.0, 1.0))
    np.testing.assert_array_equal(by_nan.embedding_, by_weight.embedding_)


def test_masked_cells_are_missing_and_masked_weights_are_0():
    D = np.random.default_rng(7).uniform(1, 2, (12, 10))
    hole = np.random.default_rng(2).random(D.shape) < 0.2
    holey = np.ma.array(np.where(hole, 1e6, D), mask=hole)
    weight = np.ma.array(np.where(hole, 1e6, 1.0), mask=hole)
    options = {"init": "random", "n_init": 1, "max_iter": 20}
    expected = lp.AsymmetricMDS(**options).fit(np.where(hole, np.nan, D)).embedding_
    for cells, w in ((holey, None), (list(holey), None), (D, weight), (holey, weight)):
        found = lp.AsymmetricMDS(**options).fit(cells, weight=w)
        np.testing.assert_array_equal(found.embedding_, expected)
    assert np.isnan(symmetric_and_skew(np.ma.masked_equal([[0, 2], [5, 0]], 5))[0][1, 0])


def test_over_relaxation_ends_lower_after_as_many_sweeps():
    D = np.random.default_rng(8).uniform(0, 1, (40, 40))
    options = {"init": "random", "n_init": 1, "max_iter": 40, "tol": 0}
    plain, relaxed = (lp.AsymmetricMDS(relaxation=r, **options).fit(D) for r in (1.0, 1.9))
    assert relaxed.stress_ < plain.stress_


def test_weights_decide_where_the_map_is_right():
    D = np.random.default_rng(9).uniform(0.5, 1.5, (30, 30))
    weight = np.full(D.shape, 0.01)
    weight[:, :3] = 1.0
    errors = []
    for w in (None, weight):
        mds = lp.AsymmetricMDS(n_init=1).fit(D, weight=w)
        errors.append(np.abs(D - distances(mds.embedding_, mds.key_embedding_))[:, :3].mean())
    assert errors[1] < 0.5 * errors[0]


def test_skew_part_is_kept():
    # User report T01.
    D = np.array([[0.0, 2.0], [5.0, 0.0]])
    symmetric, skew = symmetric_and_skew(D)
    np.testing.assert_array_equal(symmetric, [[0, 3.5], [3.5, 0]])
    np.testing.assert_array_equal(skew, [[0, -1.5], [1.5, 0]])
    np.testing.assert_array_equal(symmetric + skew, D)
    _, _, D = planted(10, 25, 25)
    mds = lp.AsymmetricMDS().fit(D)
    found = distances(mds.embedding_, mds.key_embedding_)
    assert np.abs(symmetric_and_skew(D)[1]).max() > 1
    np.testing.assert_allclose(symmetric_and_skew(found)[1], symmetric_and_skew(D)[1], atol=1e-9)


def test_asymmetric_input_of_two_things_fits_better_than_its_symmetric_part_could():
    # With one point each, |x_1 - x_2| = 3.5 is best: stress 2 * 1.5^2.
    mds = lp.AsymmetricMDS(n_components=1).fit([[0.0, 2.0], [5.0, 0.0]])
    assert mds.stress_ < 4.4


def test_symmetric_input_with_rounding_noise():
    # User report T01.
    points = np.random.default_rng(11).normal(size=(20, 2))
    D = distances(points, points)
    noisy = D + np.random.default_rng(12).uniform(0, 1e-16, D.shape)
    for matrix in (D, noisy):
        mds = lp.AsymmetricMDS().fit(matrix)
        assert disparity(points, points, mds) < 1e-10


@pytest.mark.parametrize("seed", range(13, 19))
def test_map_is_centred_on_its_principal_axes_with_fixed_signs(seed):
    _, _, D = planted(seed, 30, 20)
    turned = [lp.AsymmetricMDS(n_init=3, random_state=seed).fit(D) for seed in (0, 1)]
    X = turned[0].embedding_
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    covariance = X.T @ X
    np.testing.assert_allclose(covariance[0, 1], 0, atol=1e-9)
    assert covariance[0, 0] > covariance[1, 1]
    assert np.all(X[np.abs(X).argmax(axis=0), [0, 1]] > 0)
    np.testing.assert_allclose(turned[1].embedding_, X, atol=1e-9)


def test_seed_and_threads():
    D = np.random.default_rng(14).uniform(0, 1, (600, 40))
    options = {"init": "random", "n_init": 2, "max_iter": 5}
    maps = []
    for n_threads, seed in ((1, 0), (2, 0), (1, 1)):
        with lp.config.override(n_threads=n_threads):
            maps.append(lp.AsymmetricMDS(random_state=seed, **options).fit(D).embedding_)
    np.testing.assert_array_equal(maps[0], maps[1])
    assert not np.allclose(maps[0], maps[2])


def test_given_start_is_where_it_starts():
    X, Y, D = planted(15, 20, 15)
    mds = lp.AsymmetricMDS(init=(X, Y)).fit(D)
    assert (mds.init_, mds.stress_history_[0], mds.converged_) == ("given", 0.0, True)
    mds = lp.AsymmetricMDS(init=(X + 0.1, Y), max_iter=1).fit(D)
    np.testing.assert_allclose(mds.stress_history_[0], np.sum((D - distances(X + 0.1, Y)) ** 2))
    assert not mds.converged_


def test_best_start_wins():
    D = np.random.default_rng(16).uniform(0, 1, (25, 25))
    both = lp.AsymmetricMDS(init="both", n_init=4).fit(D)
    spectral = lp.AsymmetricMDS(init="spectral").fit(D)
    random = lp.AsymmetricMDS(init="random", n_init=4).fit(D)
    assert both.stress_ == min(spectral.stress_, random.stress_)
    assert both.init_ in (spectral.init_, random.init_)


def test_ranks_have_a_spectral_start_although_every_row_has_the_same_mean():
    rng = np.random.default_rng(17)
    D = distances(*(2 * [rng.normal(size=(60, 2))]))
    ranks = D.argsort(axis=1).argsort(axis=1) / 59
    spectral = lp.AsymmetricMDS(init="spectral").fit(ranks)
    random = lp.AsymmetricMDS(init="random", n_init=5).fit(ranks)
    assert spectral.stress_ < 1.05 * random.stress_


def test_scikit_learn_conventions():
    mds = lp.AsymmetricMDS(n_components=1, tol=1e-3)
    assert clone(mds).get_params() == mds.get_params()
    assert mds.set_params(max_iter=7).max_iter == 7
    with pytest.raises(TypeError):
        lp.AsymmetricMDS(2)
    _, _, D = planted(18, 10, 10)
    assert mds.fit(D) is mds
    np.testing.assert_array_equal(clone(mds).fit_transform(D.tolist()), mds.embedding_)


NAN = float("nan")
GOOD = np.random.default_rng(0).uniform(1, 2, (5, 4))


def changed(i, j, value):
    D = GOOD.copy()
    D[i, j] = value
    return D


@pytest.mark.parametrize(
    ("D", "weight", "message"),
    [
        ([1.0, 2.0], None, r"must be a matrix with rows and columns, got shape \(2,\)"),
        (np.ones((0, 3)), None, r"must be a matrix with rows and columns, got shape \(0, 3\)"),
        ([[1.0], [1.0, 2.0]], None, "must be numbers, rows of one length"),
        ([["a", "b"], ["c", "d"]], None, "must be real numbers, got <U1; convert them first"),
        ([[1.0, {}], [1.0, 2.0]], None, "must be numbers"),
        (changed(2, 1, -0.5), None, "must be non-negative, got -0.5 in row 2, column 1"),
        (changed(0, 3, np.inf), None, "finite, or NaN where missing, got inf in row 0, column 3"),
        (changed(0, 3, 2e300), None, "at most 1e[+]300; divide them all, got 2e[+]300 in row 0"),
        (changed(3, slice(None), NAN), None, "every row .* but row 3 has none; drop it"),
        (changed(slice(None), 2, NAN), None, "every column .* but column 2 has none; drop it"),
        (np.zeros((5, 4)), None, "must not all be 0"),
        (GOOD + 1j, None, "dissimilarities must be real numbers, got complex128; convert"),
        (GOOD.astype(str), None, "dissimilarities must be real numbers, got <U"),
        (GOOD, GOOD * 1j, "weights must be real numbers, got complex128; convert them first"),
        (np.ma.masked_less(changed(3, slice(None), 0), 1), None, "every row .* but row 3 has none"),
        (GOOD, np.ones((4, 5)), r"shape of the dissimilarities \(5, 4\), got \(4, 5\)"),
        (GOOD, -np.ones((5, 4)), "weights must be finite and >= 0, got -1.0 in row 0, column 0"),
        (GOOD, np.full((5, 4), NAN), "weights must be finite and >= 0, got nan"),
        (GOOD, np.zeros((5, 4)), "every row .* neither missing nor of weight 0, but row 0"),
    ],
)
def test_bad_dissimilarities(D, weight, message):
    with pytest.raises(InputError, match=message):
        lp.AsymmetricMDS().fit(D, weight=weight)
    with pytest.raises(InputError, match=message):
        as_cells(D, weight)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 4}, r"below both sides of the dissimilarities \(5, 4\), got 4"),
        ({"n_components": 0}, "n_components must be a whole number of at least 1, got 0"),
        ({"n_components": 1.5}, "n_components must be a whole number of at least 1, got 1.5"),
        ({"n_components": "2"}, "n_components must be a whole number of at least 1, got '2'"),
        ({"n_components": True}, "n_components must be a whole number of at least 1, got True"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
        ({"max_iter": 10.0}, "max_iter must be a whole number of at least 1, got 10.0"),
        ({"max_iter": None}, "max_iter must be a whole number of at least 1, got None"),
        ({"tol": -1.0}, "tol must be a number 0 or more, got -1.0"),
        ({"tol": NAN}, "tol must be a number 0 or more, got nan"),
        ({"tol": "1e-6"}, "tol must be a number 0 or more, got '1e-6'"),
        ({"tol": True}, "tol must be a number 0 or more, got True"),
        ({"relaxation": 2.0}, "relaxation must be a number from 1 to below 2, got 2.0"),
        ({"relaxation": 0.5}, "relaxation must be a number from 1 to below 2, got 0.5"),
        ({"relaxation": "1"}, "relaxation must be a number from 1 to below 2, got '1'"),
        ({"relaxation": [1.9]}, r"relaxation must be a number from 1 to below 2, got \[1.9\]"),
        ({"model": None}, r"model must be one of \['unfolding'\], got None"),
        ({"init": None}, r"init must be one of .* or a pair of arrays, got None"),
        ({"init": (GOOD,)}, r"init must be one of .* or a pair of arrays, got \("),
        ({"init": (1j * GOOD, GOOD)}, "init must be real numbers, got complex128"),
        ({"init": (None, "b")}, "init must be"),
        ({"n_init": 2.5}, "n_init must be a whole number of at least 1, got 2.5"),
        ({"n_init": "3", "init": "spectral"}, "n_init must be a whole number .* got '3'"),
        ({"random_state": True}, "random_state must be a whole number of at least 0, got True"),
        ({"random_state": 1.0}, "random_state must be a whole number of at least 0, got 1.0"),
        ({"model": "slide"}, r"model must be one of \['unfolding'\], got 'slide'"),
        ({"init": "pca"}, r"init must be one of \['both', 'spectral', 'random'\] .* got 'pca'"),
        ({"n_init": 0}, "n_init must be a whole number of at least 1, got 0"),
        ({"random_state": None}, "random_state must be a whole number of at least 0, got None"),
        ({"random_state": -1}, "random_state must be a whole number of at least 0, got -1"),
        ({"init": (np.ones((4, 2)), np.ones((4, 2)))}, r"init must have shapes \(5, 2\) and"),
        ({"init": (np.full((5, 2), NAN), np.ones((4, 2)))}, "init must be finite"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(InputError, match=message):
        lp.AsymmetricMDS(**parameters).fit(GOOD)


def test_skew_part_needs_a_square():
    with pytest.raises(InputError, match=r"must be square to have a skew part, got shape \(5, 4\)"):
        symmetric_and_skew(GOOD)
