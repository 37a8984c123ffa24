"""`Nearest`: ranks worked out here by a plain sort, then the kernel's weights from them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.kernels import Gaussian, Nearest, Nearness, Product, StudentT, Tricube, Uniform
from locpipe.kernels.masks import Causal, ExcludeSelf
from locpipe.metrics import METRICS

NO_KEY = 2**63 - 1
WEIGHTS = ["uniform", "distance", "tricube", Gaussian(0.5), Uniform(), StudentT(3.0, 2.0)]


def ranked(kernel, q, k):
    """The query block with the results of a first pass, by a stable sort of the whole score."""
    ranking = kernel.ranking()
    score = ranking.score.log_weights(q, k)
    order = np.argsort(-score, axis=1, kind="stable")[:, : ranking.k]
    best = np.take_along_axis(score, order, axis=1)
    found = (best > -np.inf).sum(1)
    last = best[np.arange(q.n_rows), np.maximum(found, 1) - 1]
    index = np.where(found < ranking.k, NO_KEY, order[:, -1] + k.start)
    return replace(q, best_score=best[:, 0], kth_score=last, kth_index=index)


def weights(kernel, q, k):
    q, k = QueryBlock(np.asarray(q, float)), KeyBlock(np.asarray(k, float))
    log_w = kernel.log_weights(ranked(kernel, q, k), k)
    assert not np.isnan(log_w).any()
    return np.exp(log_w)


def rows(seed, n, metric):
    x = np.random.default_rng(seed).uniform(-1.5, 1.5, (n, 2))  # latitudes are within pi / 2
    if metric == "haversine":
        x[:, 0] = np.arctan(x[:, 0])  # latitudes lie between the poles
    if metric == "nan-euclidean":
        x[np.random.default_rng(seed).random(x.shape) < 0.2] = np.nan
    return x


@pytest.mark.parametrize("metric", METRICS)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(WEIGHTS))
def test_the_k_nearest_have_the_weight_of_their_distance(metric, seed, k, w):
    q, x = rows(seed, 5, metric), rows(seed + 1, 12, metric)
    distances, index = lp.nearest(q, x, k, metric=metric)
    expected = np.zeros((5, 12))
    for i in range(5):
        found = index[i] >= 0
        d, at = distances[i, found], index[i, found]
        if found.any():
            expected[i, at] = plain_weights(Nearest(k, w).weights, d)
    np.testing.assert_allclose(
        weights(Nearest(k, w, metric), q, x), expected, rtol=1e-9, atol=1e-12
    )


def plain_weights(w, d):
    if w == "uniform":
        return np.ones_like(d)
    if w == "distance":
        return (d == 0) * 1.0 if d[0] == 0 else 1 / d
    u = d / d[-1] / w.bandwidth if d[-1] else np.zeros_like(d)
    # The k-th key is at u = 1 exactly, where compact profiles jump.
    return np.exp(w.log_profile(np.where(np.abs(u - 1) < 1e-12, 1, u) ** 2, 2))


@given(st.integers(0, 2**32 - 1), st.sampled_from(WEIGHTS), st.integers(1, 6))
def test_tiles_are_slices_of_the_whole(seed, w, k):
    rng = np.random.default_rng(seed)
    # A coarse lattice: many ties, at rank k too.
    q, x = QueryBlock(rng.integers(0, 3, (7, 2)) * 1.0), KeyBlock(rng.integers(0, 3, (9, 2)) * 1.0)
    kernel = Nearest(k, w)
    q = ranked(kernel, q, x)
    whole = kernel.log_weights(q, x)
    tile = kernel.log_weights(q.rows(slice(2, 5)), x.rows(slice(3, 9)))
    np.testing.assert_array_equal(tile, whole[2:5, 3:9])
    if kernel.weights == "uniform":
        assert (np.isfinite(whole).sum(1) == k).all()


@pytest.mark.parametrize("metric", METRICS)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_scores_have_the_same_bits_in_any_tile(metric, seed, d):
    rng = np.random.default_rng(seed)
    d = 2 if metric == "haversine" else d
    x = rng.uniform(-1.5, 1.5, (9, d))
    x = np.asfortranarray(x) if seed % 2 else x
    q, k = QueryBlock(x), KeyBlock(x)
    score = Nearness(metric)
    whole = score.log_weights(q, k)
    for i in range(9):
        part = score.log_weights(q.rows(slice(i, i + 1)), k.rows(slice(2, 7)))
        np.testing.assert_array_equal(part[0], whole[i, 2:7])


def test_ties_at_rank_k_go_to_the_lowest_index():  # D06
    x = [[1, 0], [0, 1], [-1, 0], [0, -1]]
    np.testing.assert_array_equal(weights(Nearest(2), [[0, 0]], x), [[1, 1, 0, 0]])


def test_exact_matches_count_alone():  # D08
    w = weights(Nearest(3, "distance"), [[0], [1]], [[0], [0], [2], [5]])
    np.testing.assert_array_equal(w, [[1, 1, 0, 0], [1, 1, 1, 0]])
    assert (w[0] @ [4, 8, 100, -100]) / w[0].sum() == 6.0


@pytest.mark.parametrize("w", WEIGHTS)
@pytest.mark.filterwarnings("error")
def test_duplicates_at_the_kth_distance_zero(w):
    found = weights(Nearest(2, w), [[3.0]], [[3.0], [3.0], [3.0], [4.0]])[0]
    assert found[0] == found[1] > 0
    np.testing.assert_array_equal(found[2:], 0)


def test_a_compact_profile_drops_the_kth():
    np.testing.assert_allclose(
        weights(Nearest(3, Tricube()), [[0.0]], [[0.0], [1.0], [2.0], [3.0]]),
        [[1, (1 - 1 / 8) ** 3, 0, 0]],
    )
    assert (weights(Nearest(3, "uniform"), [[0.0]], [[0.0], [1.0], [2.0]]) == 1).all()
    assert (weights(Nearest(3, Uniform()), [[0.0]], [[0.0], [1.0], [2.0]]) == 1).all()


def masked(kernel, x, v, w="uniform"):
    block = QueryBlock(np.asarray(x, float)), KeyBlock(np.asarray(x, float))
    q = ranked(kernel, *block)
    return np.exp(kernel.log_weights(q, block[1]))


@pytest.mark.parametrize("w", WEIGHTS)
@pytest.mark.filterwarnings("error")
def test_masks_choose_who_is_ranked(w):
    x = np.array([[0.0], [1.0], [3.0], [3.0]])
    kernel = Nearest(1, w) * ExcludeSelf()
    found = masked(kernel, x, None) > 0
    expected = np.zeros((4, 4), bool)
    expected[[0, 1, 2, 3], [1, 0, 3, 2]] = True
    if w == "tricube":  # the only neighbour is at the edge of its own support, but for r_k = 0
        expected[:2] = False
    np.testing.assert_array_equal(found, expected)


def test_fewer_than_k_under_a_mask():
    x = np.array([[0.0], [1.0], [2.0]])
    found = masked(Nearest(2) * Causal(), x, None)
    np.testing.assert_array_equal(found, [[1, 0, 0], [1, 1, 0], [0, 1, 1]])


def test_other_factors_weigh_the_k_found():
    x = np.array([[0.0], [1.0], [2.0]])
    kernel = Nearest(2) * Gaussian(1.0)
    assert kernel.ranking() == Nearest(2).ranking()
    np.testing.assert_allclose(masked(kernel, x, None)[0], [1, np.exp(-0.5), 0], rtol=1e-15)


def test_a_product_ranks_once():
    with pytest.raises(InputError, match=r"one factor that ranks all keys \(Nearest\), got 2"):
        Nearest(2) * Nearest(3)
    with pytest.raises(InputError, match="one factor that ranks all keys"):
        Gaussian() * Nearest(2) * Nearest(3).on("values", "values")


def test_views_and_masks_reach_the_ranking():
    kernel = Nearest(4, metric="manhattan").on(query="values", key="values") * ExcludeSelf()
    ranking = kernel.ranking()
    assert ranking.k == 4
    assert ranking.score == Nearness("manhattan").on("values", "values") * ExcludeSelf()
    assert Gaussian().ranking() is None
    assert (Gaussian() * ExcludeSelf()).ranking() is None
    assert Gaussian().on().ranking() is None


def test_what_it_says_of_itself():
    kernel = Nearest(3)
    assert kernel.nearness() == Nearness()
    assert not kernel.symmetric
    assert (kernel.allows_missing, Nearest(1, metric="nan-euclidean").allows_missing) == (
        False,
        True,
    )
    spec = kernel.lower(2)
    assert (spec.profile, spec.metric, spec.log_normalizer) == ("nearest", "euclidean", None)
    bounds = [Nearest(1, w).lower(2).log_bound for w in ("uniform", "distance", "logistic")]
    assert bounds == [0.0, np.inf, -np.log(4)]
    assert hash(Nearest(np.int64(3), "tricube")) == hash(Nearest(3, Tricube()))
    assert isinstance(kernel * Gaussian(), Product)


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "3", None])
def test_k_is_a_whole_number(k):
    with pytest.raises(InputError, match="k must be a whole number of at least 1, got "):
        Nearest(k)


@pytest.mark.parametrize("w", ["studentt", "near", 3.0, None, [1.0], Nearness()])
def test_weights_are_checked(w):
    with pytest.raises(InputError, match="weights must be 'uniform', 'distance', a radial kernel"):
        Nearest(3, w)


@pytest.mark.parametrize("w", [Gaussian([1.0, 2.0]), Gaussian(metric="manhattan")])
def test_profiles_have_one_bandwidth_and_no_metric(w):
    with pytest.raises(InputError, match="must have one bandwidth, a factor on the k-th distance"):
        Nearest(3, w)
    with pytest.raises(InputError, match="metric must be one of"):
        Nearest(3, metric="taxi")


def test_it_has_no_density_and_needs_a_first_pass():
    with pytest.raises(InputError, match=r"needs a kernel with a normaliser, got Nearest\(k=1"):
        lp.log_density([0.0], [0.0], Nearest(1))
    with pytest.raises(InputError, match="needs a first pass over all keys"):
        Nearest(1).log_weights(QueryBlock(np.zeros((1, 1))), KeyBlock(np.zeros((1, 1))))
