"""Single starts and single half sweeps of unfolding."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from locpipe.blocks import ArrayPairs
from locpipe.corpus.dissimilarity import rank_dissimilarity
from locpipe.errors import InputError
from locpipe.graph import fold
from locpipe.methods import AsymmetricMDS
from locpipe.methods.unfolding import best_of, half_sweep, start_names, unfold, unfold_from
from locpipe.methods.unfolding_starts import spectral_start
from locpipe.reductions import MajorizationStep

X = np.array([[0.0, 0.0], [2.0, 0.0]])
Y = np.array([[1.0, 1.0], [0.0, 3.0]])
DELTA = np.array([[1.0, 2.0], [3.0, 1.0]])


def step(points, others, delta):
    sums = fold(MajorizationStep(2), points, others, pairs=ArrayPairs(delta))
    return half_sweep(points, sums), float(np.sum(sums.stress))


def test_one_sweep_by_hand():
    # Theory sheet 6.1 (b).
    new_X, stress = step(X, Y, DELTA)
    np.testing.assert_allclose(stress, 10.4751889500873, rtol=1e-12)
    expected = [[0.1464466094067, 0.6464466094067], [1.8380102698924, 0.5233146810513]]
    np.testing.assert_allclose(new_X, expected, rtol=1e-11)
    new_Y, stress = step(Y, new_X, DELTA.T)
    np.testing.assert_allclose(stress, 8.6227838902789, rtol=1e-12)
    expected = [[0.1503464771702, 1.5178751775448], [0.6321523741258, 1.9844629442745]]
    np.testing.assert_allclose(new_Y, expected, rtol=1e-11)
    np.testing.assert_allclose(step(new_X, new_Y, DELTA)[1], 2.2328861268822, rtol=1e-12)


def test_unfold_from_takes_the_same_sweep():
    found = unfold_from(ArrayPairs(DELTA), X, Y, max_iter=1, relaxation=1.0)
    np.testing.assert_allclose(found.stress_history, [10.4751889500873, 2.2328861268822])
    assert found.scale == 15.0
    assert (found.n_iter, found.converged) == (1, False)


def test_symmetric_case_is_the_guttman_transform():
    # Theory sheet 6.1 (c): X = Y, symmetric delta, all weights 1.
    rng = np.random.default_rng(0)
    points, delta = rng.normal(size=(9, 2)), rng.uniform(1, 2, (9, 9))
    delta = (delta + delta.T) / 2
    np.fill_diagonal(delta, 0)
    d = np.linalg.norm(points[:, None] - points, axis=2) + np.eye(9)
    pull = (delta / d)[:, :, None] * (points[:, None] - points)
    np.testing.assert_allclose(
        step(points, points, delta)[0], points.mean(axis=0) + pull.mean(axis=1), rtol=1e-12
    )


def test_points_in_one_place_do_not_break_the_step():
    new_X, stress = step(np.zeros((2, 2)), np.zeros((2, 2)), DELTA)
    np.testing.assert_array_equal(new_X, 0)
    assert stress == 15.0


def test_points_without_weight_stay_where_they_are():
    # Ranks with far_weight=0: the column of a word that is near to none has no weight.
    profiles = np.random.default_rng(6).normal(size=(12, 3))
    cells = rank_dissimilarity(profiles, slice(0, 12), n_near=1, far_weight=0.0)
    alone = np.flatnonzero(~cells[1].any(axis=0))
    assert len(alone) > 0
    for start in ("spectral", "random-0"):
        found = unfold(ArrayPairs(*cells), start)
        assert np.isfinite(found.embedding).all()
        assert np.isfinite(found.key_embedding).all()
        assert np.all(np.diff(found.stress_history) <= 0)
    sums = fold(MajorizationStep(2), X, Y, pairs=ArrayPairs(DELTA, np.array([[1.0, 1], [0, 0]])))
    np.testing.assert_array_equal(half_sweep(X, sums)[1], X[1])
    # As the user's own matrix such columns are named before any work.
    with pytest.raises(InputError, match=f"every column .* but column {alone[0]} has none"):
        AsymmetricMDS().fit(cells[0], weight=cells[1])


def test_turning_and_moving_the_start_turns_and_moves_nothing_else():
    rng = np.random.default_rng(1)
    delta = rng.uniform(0, 1, (12, 10))
    start, others = rng.normal(size=(12, 2)), rng.normal(size=(10, 2))
    turn, shift = np.array([[0.6, -0.8], [0.8, 0.6]]), np.array([3.0, -2.0])
    plain = unfold_from(ArrayPairs(delta), start, others, max_iter=20)
    turned = unfold_from(
        ArrayPairs(delta), start @ turn + shift, others @ turn + shift, max_iter=20
    )
    np.testing.assert_allclose(turned.stress_history, plain.stress_history, rtol=1e-9)
    np.testing.assert_allclose(turned.embedding, plain.embedding, atol=1e-7)


@dataclass(frozen=True)
class Computed:
    """Cells that lie nowhere: made when they are asked for, as from a store."""

    seed: int
    shape: tuple[int, int]

    def whole(self):
        rng = np.random.default_rng(self.seed)
        delta, weight = rng.uniform(0, 1, self.shape), rng.uniform(0, 1, self.shape)
        delta[rng.random(self.shape) < 0.1] = np.nan
        return delta, weight

    def tile(self, rows, columns):
        return tuple(cells[rows, columns].astype(np.float32) for cells in self.whole())


@pytest.mark.parametrize("start", ["spectral", "random-0"])
def test_cells_may_come_by_tiles(start):
    source = Computed(2, (300, 270))
    held = ArrayPairs(*(cells.astype(np.float32) for cells in source.whole()))
    by_tiles, in_memory = (unfold(pairs, start, max_iter=3) for pairs in (source, held))
    np.testing.assert_array_equal(by_tiles.embedding, in_memory.embedding)
    np.testing.assert_array_equal(by_tiles.stress_history, in_memory.stress_history)


def test_a_start_is_the_same_wherever_it_runs():
    pairs = ArrayPairs(np.random.default_rng(3).uniform(0, 1, (20, 20)))
    alone = unfold(pairs, "random-3", max_iter=10)
    sent = pickle.loads(
        pickle.dumps(unfold(pickle.loads(pickle.dumps(pairs)), "random-3", max_iter=10))
    )
    np.testing.assert_array_equal(sent.embedding, alone.embedding)
    other = unfold(pairs, "random-4", max_iter=10)
    assert not np.array_equal(other.stress_history, alone.stress_history)


@pytest.mark.parametrize("seed", range(12))
def test_spectral_start_of_ranks_gives_rows_and_columns_one_scale(seed):
    # All rows of ranks have one mean, so T T^T is rounding alone, of either sign.
    points = np.random.default_rng(seed).normal(size=(40, 2))
    d = np.linalg.norm(points[:, None] - points, axis=2)
    ranks = d.argsort(axis=1).argsort(axis=1) / 39
    rows, columns = spectral_start(ArrayPairs(ranks), 2)
    assert 0.2 < rows.std() / columns.std() < 5


def test_best_of_stops_at_the_first_error_free_fit():
    rng = np.random.default_rng(4)
    points, others = rng.normal(size=(8, 2)), rng.normal(size=(7, 2))
    delta = np.linalg.norm(points[:, None] - others, axis=2)
    asked = []

    def results():
        for start in start_names("both", 3):
            asked.append(start)
            yield unfold(ArrayPairs(delta), start)

    assert best_of(results()).start == "spectral"
    assert asked == ["spectral"]
    with pytest.raises(InputError, match="at least one start to choose from"):
        best_of([])


def test_names_of_starts():
    assert start_names("random", 2) == ("random-0", "random-1")
    assert start_names("spectral", 5) == ("spectral",)
    assert start_names("both", 1) == ("spectral", "random-0")
