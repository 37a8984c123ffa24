"""Laws of a monoid for every reduction, over random tiles and partitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.reductions import (
    ArgBest,
    LocalMoments,
    LogMass,
    MajorizationStep,
    TopK,
    WeightedMean,
    WeightedSum,
)
from locpipe.reductions.top_k import _best_columns, _best_columns_by_sort

REDUCTIONS = [
    LogMass(),
    WeightedMean(2),
    WeightedSum(2),
    TopK(3),
    ArgBest(),
    LocalMoments(1, (0.5, 2.0), 2),
    MajorizationStep(2),
]
EMPTY = np.nan


class Problem:
    """Tiles of log weights (masked pairs and whole masked rows included), keys and pairs."""

    def __init__(self, seed, spread, n_q=5, n_k=12):
        rng = np.random.default_rng(seed)
        self.q = QueryBlock(rng.normal(size=(n_q, 2)))
        self.k = KeyBlock(rng.normal(size=(n_k, 2)), values=rng.normal(size=(n_k, 2)))
        self.log_w = np.where(
            rng.random((n_q, n_k)) < 0.3, -np.inf, rng.normal(size=(n_q, n_k)) * spread
        )
        self.log_w[0] = -np.inf
        self.delta = np.abs(rng.normal(size=(n_q, n_k)))
        self.delta[rng.random((n_q, n_k)) < 0.2] = np.nan

    def fold(self, reduction, columns, state=None, order=None):
        k = self.k.rows(columns)
        log_w, delta = self.log_w[:, columns], self.delta[:, columns]
        state = reduction.init(self.q) if state is None else state
        return reduction.update(state, log_w, self.q, k, (delta,))


def same(reduction, a, b, rtol=1e-9):
    for x, y in zip(reduction.finalize(a, EMPTY), reduction.finalize(b, EMPTY), strict=True):
        np.testing.assert_allclose(x, y, rtol=rtol, atol=1e-300)


problems = st.builds(Problem, st.integers(0, 2**32 - 1), st.sampled_from([1.0, 130.0]))
every = pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda r: type(r).__name__)


@every
@given(problem=problems)
def test_init_is_neutral(reduction, problem):
    state = problem.fold(reduction, slice(0, 12))
    same(reduction, reduction.merge(reduction.init(problem.q), state), state)
    same(reduction, reduction.merge(state, reduction.init(problem.q)), state)


@every
@given(problem=problems, cuts=st.tuples(st.integers(1, 5), st.integers(6, 11)))
def test_merge_is_associative_commutative_and_equals_update(reduction, problem, cuts):
    parts = [slice(0, cuts[0]), slice(cuts[0], cuts[1]), slice(cuts[1], 12)]
    a, b, c = (problem.fold(reduction, part) for part in parts)
    whole = problem.fold(reduction, slice(0, 12))
    same(reduction, reduction.merge(reduction.merge(a, b), c), whole)
    same(reduction, reduction.merge(a, reduction.merge(b, c)), whole)
    same(reduction, reduction.merge(reduction.merge(c, a), b), whole)
    streamed = None
    for part in parts:
        streamed = problem.fold(reduction, part, streamed)
    same(reduction, streamed, whole)


@every
@given(problem=problems)
def test_rows_are_independent(reduction, problem):
    whole = reduction.finalize(problem.fold(reduction, slice(0, 12)), EMPTY)
    q = problem.q.rows(slice(2, 3))
    state = reduction.update(
        reduction.init(q), problem.log_w[2:3], q, problem.k, (problem.delta[2:3],)
    )
    for x, y in zip(reduction.finalize(state, EMPTY), whole, strict=True):
        np.testing.assert_allclose(x, y[2:3], rtol=1e-9)


@every
@given(problem=problems)
def test_the_state_never_holds_nan(reduction, problem):
    state = reduction.init(problem.q)
    for part in (slice(0, 12), slice(0, 5)):
        state = reduction.merge(state, problem.fold(reduction, part))
        assert not any(np.isnan(array).any() for array in state)


@pytest.mark.parametrize("shift", [-1e4, 700.0, 1e5])
@given(problem=problems)
def test_a_constant_on_log_weights_shifts_the_log_mass_alone(shift, problem):
    means, masses = [], []
    for constant in (0.0, shift):
        problem.log_w += constant
        means.append(WeightedMean(2).finalize(problem.fold(WeightedMean(2), slice(0, 12)), EMPTY))
        masses.append(LogMass().finalize(problem.fold(LogMass(), slice(0, 12)), EMPTY))
    np.testing.assert_allclose(means[0][0], means[1][0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(masses[0][0] + shift, masses[1][0], rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(masses[0][1], masses[1][1], rtol=1e-7)


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
    with pytest.raises(InputError, match="k must be at least 1, got 0"):
        TopK(0)
    q = QueryBlock(np.zeros((1, 2)))
    with pytest.raises(InputError, match="needs the dissimilarities"):
        MajorizationStep(2).update(MajorizationStep(2).init(q), None, q, KeyBlock(q.data))


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
