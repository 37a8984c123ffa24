import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import ArrayPairs, KeyBlock, QueryBlock
from locpipe.distance import squared_distances
from locpipe.errors import InputError
from locpipe.kernels import Gaussian, Product
from locpipe.testing import assert_close
from locpipe.testing.reference import squared_distances_reference


@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.sampled_from([0.0, 1e3, 1e6]))
def test_squared_distances_by_either_path(seed, d, offset):
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(6, d)) + offset, rng.normal(size=(9, d)) + offset
    expected = squared_distances_reference(q, k)
    assert_close(squared_distances(q, k), expected, 1e-13)
    tolerance = 1e-9
    assert np.abs(squared_distances(q, k, tolerance=tolerance) - expected).max() <= tolerance


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_a_tile_is_a_slice_of_the_whole(seed, d):
    rng = np.random.default_rng(seed)
    q, k = QueryBlock(rng.normal(size=(8, d))), KeyBlock(rng.normal(size=(9, d)))
    for kernel in (Gaussian(0.7), lp.masks.ExcludeSelf(), lp.masks.Causal(1), lp.masks.Window(3)):
        whole = kernel.log_weights(q, k)
        tile = kernel.log_weights(q.rows(slice(2, 5)), k.rows(slice(3, 9)))
        np.testing.assert_allclose(tile, whole[2:5, 3:9], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("d", [1, 2, 3, 784])
def test_the_normaliser_is_exact(d):
    # Theory sheet 1.2: c = (2 pi)^(-d/2) at h = 1.
    expected = {1: 0.39894228040143, 2: 0.1591549430919, 3: 0.063493635934241}
    log_normalizer = Gaussian(1.0).lower(d).log_normalizer
    assert_close(log_normalizer, -d / 2 * np.log(2 * np.pi))
    if d in expected:
        assert_close(np.exp(log_normalizer), expected[d], 1e-12)


def test_products_of_gaussians_are_gaussian():
    q, k = QueryBlock(np.random.default_rng(0).normal(size=(4, 2))), KeyBlock(np.ones((3, 2)))
    a, b = Gaussian(0.5), Gaussian([1.0, 3.0])
    assert isinstance(a * b, Gaussian)
    assert_close((a * b).log_weights(q, k), a.log_weights(q, k) + b.log_weights(q, k))


def test_products_flatten_and_bound():
    kernel = (Gaussian(1.0) * lp.masks.Causal()) * (lp.masks.Window(2) * lp.masks.ExcludeSelf())
    assert isinstance(kernel, Product)
    assert len(kernel.factors) == 4
    assert kernel.lower(2).log_bound == 0.0
    assert kernel.lower(2).log_normalizer is None


def test_kernels_are_hashable_values():
    assert Gaussian(1) == Gaussian(1.0)
    assert len({Gaussian([1, 2]), Gaussian((1.0, 2.0)), Gaussian(2.0)}) == 2


def first_two(x):
    return x[:, :2]


def doubled(x):
    return 2 * x


def test_two_towers():
    q, k = (
        np.random.default_rng(0).normal(size=(5, 3)),
        np.random.default_rng(1).normal(size=(7, 2)),
    )
    kernel = Gaussian(0.9).on(query=first_two, key=doubled)
    v = np.arange(7.0)
    mean = lp.local_mean(q, k, v, kernel)
    assert_close(mean, lp.local_mean(q[:, :2], 2 * k, v, Gaussian(0.9)))
    assert kernel.lower(3).log_bound == np.inf


def test_causal_windows_see_what_theory_says():
    t = np.zeros((4, 1))
    counts = {
        lp.masks.Causal(): [1, 2, 3, 4],
        lp.masks.Causal(-1): [0, 1, 2, 3],
        lp.masks.Causal(1): [2, 3, 4, 4],
        lp.masks.Window(2): [1, 2, 2, 2],
        lp.masks.ExcludeSelf(): [3, 3, 3, 3],
    }
    for kernel, expected in counts.items():
        np.testing.assert_allclose(np.exp(lp.log_mass(t, t, kernel)), expected)
        assert kernel.lower(1).log_bound == 0.0


def test_times_and_ids_ride_with_the_rows():
    q = lp.Queries([[0.0]], time=[5.0], ids=[7])
    k = lp.Keys([[0.0], [0.0]], time=[5.0, 6.0], ids=[7, 8])
    assert np.exp(lp.log_mass(q, k, lp.masks.Causal())).item() == 1
    assert np.exp(lp.log_mass(q, k, lp.masks.ExcludeSelf())).item() == 1


def test_balloon_and_sample_point_bandwidths_multiply():
    q, k = lp.Queries([[1.0]], bandwidth=[2.0]), lp.Keys([[0.0]], bandwidth=[3.0])
    assert_close(lp.log_mass(q, k, Gaussian(0.5)), [-0.5 / 9])
    assert_close(
        lp.log_density(q, k, Gaussian(0.5)), [-0.5 / 9 - 0.5 * np.log(2 * np.pi) - np.log(3)]
    )


@pytest.mark.parametrize("width", [0, -1, 0.5, np.nan, np.inf, True, "2", None])
def test_windows_are_checked(width):
    with pytest.raises(InputError, match="width 1 or more, got "):
        lp.masks.Window(width)


@pytest.mark.parametrize("offset", [np.nan, np.inf, True, "2", None])
def test_offsets_are_checked(offset):
    with pytest.raises(InputError, match="offset must be a finite number, got "):
        lp.masks.Causal(offset)


def test_clear_errors():
    with pytest.raises(InputError, match=r"must be a matrix, got 1 dimension\(s\)"):
        ArrayPairs(np.ones(3))
    with pytest.raises(InputError, match=r"shape of the dissimilarities \(2, 3\), got \(3, 2\)"):
        ArrayPairs(np.ones((2, 3)), np.ones((3, 2)))


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
@pytest.mark.parametrize("bandwidth", [0.3, (0.3, 0.7), (0.3,) * 12])
def test_bandwidths_divide_differences_not_coordinates(offset, bandwidth):
    d = np.size(bandwidth) if np.ndim(bandwidth) else 2
    rng = np.random.default_rng(0)
    q, k = (np.round(64 * rng.normal(size=(n, d))) / 64 for n in (5, 7))
    near, far = (
        Gaussian(bandwidth).log_weights(QueryBlock(q + c), KeyBlock(k + c)) for c in (0.0, offset)
    )
    np.testing.assert_allclose(far, near, rtol=1e-12)


def test_equal_distances_tie_under_any_bandwidth():
    _, index = lp.fold(lp.reductions.ArgBest(), [3.0], [2.0, 4.0], Gaussian(0.75))
    assert index[0] == 0
    kernel = lp.kernels.Uniform(0.75)
    assert lp.local_mean([3.0], [2.0, 4.0], [10.0, 20.0], kernel, empty="nearest")[0] == 10
