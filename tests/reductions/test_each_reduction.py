"""What single reductions promise beyond the laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.graph import Keys, fold
from locpipe.kernels import Gaussian
from locpipe.reductions import (
    LogMass,
    MajorizationStep,
    TopK,
    WeightedMean,
    WeightedSum,
    WeightedVariance,
)
from locpipe.reductions.top_k import _best_columns, _best_columns_by_sort

EMPTY = np.nan


def test_effective_number_of_neighbours():
    q, k = QueryBlock(np.zeros((1, 1))), KeyBlock(np.zeros((3, 1)))
    log_w = np.log([[1.0, 0.5, 0.25]])
    state = LogMass().update(LogMass().init(q), log_w, q, k)
    np.testing.assert_allclose(LogMass().finalize(state, EMPTY)[1], [7 / 3], rtol=1e-15)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_the_partition_finds_what_the_sort_finds(seed, k):
    rng = np.random.default_rng(seed)
    log_w = rng.integers(-2, 3, (7, 9)).astype(float)
    log_w[rng.random(log_w.shape) < 0.3] = -np.inf
    np.testing.assert_array_equal(
        np.sort(_best_columns(log_w, k)), np.sort(_best_columns_by_sort(log_w, k))
    )


def test_a_sum_overflows_only_where_it_must():
    q, k = QueryBlock(np.zeros((1, 1))), KeyBlock(np.zeros((1, 1)), values=np.array([[-1e-10]]))
    state = WeightedSum(1).update(WeightedSum(1).init(q), np.array([[720.0]]), q, k)
    (total,) = WeightedSum(1).finalize(state, EMPTY)
    np.testing.assert_allclose(total, [[-np.exp(720 - 10 * np.log(10))]], rtol=1e-12)


def test_places_without_a_key():
    q, k = QueryBlock(np.zeros((1, 1))), KeyBlock(np.zeros((2, 1)), start=5)
    state = TopK(3).update(TopK(3).init(q), np.array([[-np.inf, 0.0]]), q, k)
    score, index = TopK(3).finalize(state, EMPTY)
    np.testing.assert_array_equal(index, [[6, -1, -1]])
    np.testing.assert_array_equal(score, [[0.0, -np.inf, -np.inf]])


def test_clear_errors():
    with pytest.raises(InputError, match="k must be a whole number of at least 1, got 0"):
        TopK(0)
    q = QueryBlock(np.zeros((1, 2)))
    with pytest.raises(InputError, match="needs the dissimilarities"):
        MajorizationStep(2).update(MajorizationStep(2).init(q), None, q, KeyBlock(q.data))
    with pytest.raises(InputError, match="TopK has no value to take from the nearest key"):
        TopK(1).no_neighbour(TopK(1).init(q))
    with pytest.raises(InputError, match="at least one positive entry, got all zeros"):
        LogMass().finalize(LogMass().init(q), EMPTY)


@pytest.mark.parametrize("reduction", [WeightedMean(1), WeightedVariance(1)])
def test_means_know_an_empty_neighbourhood(reduction):
    q = QueryBlock(np.zeros((2, 1)))
    k = KeyBlock(np.zeros((1, 1)), values=np.ones((1, 1)))
    state = reduction.update(reduction.init(q), np.array([[0.0], [-np.inf]]), q, k)
    np.testing.assert_array_equal(reduction.no_neighbour(state), [False, True])


def test_oracle_of_one_unfolding_step():
    # Theory sheet 6.1 (b).
    X, Y = np.array([[0.0, 0], [2, 0]]), np.array([[1.0, 1], [0, 3]])
    delta = np.array([[1.0, 2], [3, 1]])
    q, k = QueryBlock(X), KeyBlock(Y)
    s = MajorizationStep(2).update(MajorizationStep(2).init(q), None, q, k, (delta,))
    moved = (s.moment + X * s.ratio[:, None] - s.ratio_moment) / s.weight[:, None]
    np.testing.assert_allclose(s.stress.sum(), 10.4751889500873, rtol=1e-13)
    np.testing.assert_allclose(
        moved,
        [[0.1464466094067, 0.6464466094067], [1.8380102698924, 0.5233146810513]],
        rtol=1e-12,
    )


def test_duplicated_keys_of_half_the_weight_change_nothing():
    # Theory sheet 9, invariant 3.
    rng = np.random.default_rng(0)
    q, x, v = rng.normal(size=(5, 2)), rng.normal(size=(40, 2)), rng.normal(size=(40, 1))
    twice = {"data": np.r_[x, x], "values": np.r_[v, v], "sample_weight": np.full(80, 0.5)}
    for reduction in (WeightedMean(1), WeightedVariance(1)):
        once = fold(reduction, q, Keys(x, values=v), Gaussian(0.5))
        halved = fold(reduction, q, Keys(**twice), Gaussian(0.5))
        for a, b in zip(once, halved, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
