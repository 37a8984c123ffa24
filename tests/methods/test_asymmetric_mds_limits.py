"""AsymmetricMDS where the closed form says nothing, and where squares leave float64."""

import numpy as np
import pytest

import locpipe as lp
from locpipe.methods.unfolding_starts import _largest


def planted(seed, m, n):
    """Exact distances between m and n points of the plane."""
    rng = np.random.default_rng(seed)
    return distances(rng.normal(size=(m, 2)), rng.normal(size=(n, 2)))


def distances(X, Y):
    return np.linalg.norm(X[:, None] - Y[None], axis=2)


ONLY_THE_DIAGONAL = np.where(np.eye(6) > 0, 2.0, np.nan)


@pytest.mark.parametrize("init", ["spectral", "both"])
@pytest.mark.parametrize(
    "D",
    [
        np.ones((5, 5)),
        np.full((7, 5), 0.1),
        np.outer(np.arange(1.0, 7.0), np.ones(6)),
        np.outer(np.ones(6), np.arange(7.0)),
        ONLY_THE_DIAGONAL,
    ],
)
def test_dissimilarities_of_rows_or_of_columns_alone(D, init):
    # The closed form has nothing to go by here: the centred squares vanish.
    mds = lp.AsymmetricMDS(init=init, n_init=2, max_iter=2000, tol=1e-9).fit(D)
    assert np.isfinite(mds.embedding_).all()
    assert np.isfinite(mds.key_embedding_).all()
    assert np.all(np.diff(mds.stress_history_) <= 0)
    # All but one point set in one place fits without error.
    assert mds.normalized_stress_ < 1e-6


def test_where_arpack_gives_up_lapack_does_not():
    _, s, _ = _largest(np.zeros((5, 5)), 2)
    np.testing.assert_array_equal(s, 0)


@pytest.mark.parametrize("D", [np.full((5, 5), 1e300), np.full((5, 5), 5e-324)])
def test_largest_and_least_dissimilarities(D):
    mds = lp.AsymmetricMDS(n_init=1).fit(D)
    assert np.isfinite(mds.embedding_).all()
    assert np.isfinite(mds.key_embedding_).all()
    assert mds.stress_ in (0, np.inf)
    assert mds.normalized_stress_ < 1e-6


def test_weights_that_vanish_beside_others():
    weight = np.full((6, 6), 5e-324)
    np.fill_diagonal(weight, 1)
    mds = lp.AsymmetricMDS(n_init=1).fit(0.1 - 0.1 * np.eye(6), weight=weight)
    assert np.isfinite(mds.embedding_).all()
    assert mds.normalized_stress_ == 0


def test_spectral_start_is_exact_in_every_unit():
    D = planted(5, 30, 20)
    for unit in (1e-9, 1e9, 1e-150, 1e150, 1e-300, 1e299):
        mds = lp.AsymmetricMDS(init="spectral", max_iter=1).fit(D * unit)
        assert mds.normalized_stress_ < 1e-20
        np.testing.assert_allclose(
            distances(mds.embedding_ / unit, mds.key_embedding_ / unit), D, atol=1e-9
        )


@pytest.mark.parametrize("power", [-1040, -600, -500, 500, 990])
@pytest.mark.parametrize("weight_power", [-1000, 0, 1000])
def test_squares_beyond_float64(power, weight_power):
    D = np.random.default_rng(3).uniform(0, 1, (12, 10))
    if power == -1040:
        D = np.round(D * 2**30) / 2**30  # representable without loss
    weight = np.random.default_rng(4).uniform(0.1, 1, D.shape)
    options = {"n_init": 2, "max_iter": 30}
    plain = lp.AsymmetricMDS(**options).fit(D, weight=weight)
    mds = lp.AsymmetricMDS(**options).fit(np.ldexp(D, power), weight=np.ldexp(weight, weight_power))
    assert mds.init_ == plain.init_
    np.testing.assert_allclose(mds.normalized_stress_, plain.normalized_stress_, rtol=1e-6)
    atol = np.ldexp(1e-3, power)
    np.testing.assert_allclose(mds.embedding_, np.ldexp(plain.embedding_, power), atol=atol)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_allclose(
            mds.stress_, np.ldexp(plain.stress_, 2 * power + weight_power), rtol=1e-6
        )
    again = lp.AsymmetricMDS(init=(mds.embedding_, mds.key_embedding_), max_iter=1).fit(
        np.ldexp(D, power), weight=np.ldexp(weight, weight_power)
    )
    np.testing.assert_allclose(again.normalized_stress_, plain.normalized_stress_, rtol=1e-2)
