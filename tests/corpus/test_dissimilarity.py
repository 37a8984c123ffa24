"""Dissimilarities from counts: values worked by hand, independence of blocks, bad input."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from locpipe.corpus.dissimilarity import (
    conditional_dissimilarity,
    context_profiles,
    map_quality,
    neighbour_overlap,
    ppmi,
    ppmi_dissimilarity,
    radius_spread,
    rank_dissimilarity,
    ring_warning,
)
from locpipe.errors import InputError

COUNTS = csr_array([[0, 4, 1], [2, 0, 3], [5, 1, 0]])  # theory sheet 6.4
ALL = [0, 1, 2]


def random_counts(seed, n=40, density=0.2):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(3, (n, n)) * (rng.random((n, n)) < density)
    return csr_array(counts.astype(np.int64))


def some_profiles(seed=0, n=60, d=5):
    points = np.random.default_rng(seed).normal(size=(n, d))
    points[n // 2] = points[3]  # ties
    points[n // 3] = points[3]
    return points


def distances(points):
    return np.linalg.norm(points[:, None] - points, axis=2)


def test_conditional_by_hand():
    delta, weight = conditional_dissimilarity(COUNTS, ALL, slice(0, 3), smoothing=0.5)
    np.testing.assert_allclose(delta[0, 1], 0.3677247801253, rtol=1e-11)
    np.testing.assert_allclose(delta[1, 0], 0.9555114450274, rtol=1e-11)
    np.testing.assert_allclose(delta[2, 0], 0.3101549283038, rtol=1e-11)
    np.testing.assert_array_equal(weight, np.where(COUNTS.toarray() > 0, 1, 0.01))


def test_ppmi_by_hand():
    expected = np.zeros((3, 3))
    expected[[0, 1, 2], [1, 2, 0]] = 0.9400072584915, 0.8754687373539, 0.6443570163905
    found = ppmi(COUNTS, context_exponent=1.0)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-11)
    assert found.nnz == 3
    delta, weight = ppmi_dissimilarity(COUNTS, ALL, slice(0, 3), context_exponent=1.0)
    np.testing.assert_allclose(delta, np.exp(-expected), rtol=1e-11)
    np.testing.assert_array_equal(weight, np.where(COUNTS.toarray() > 0, 1, 0.01))


def test_context_exponent_takes_from_rare_contexts():
    counts = csr_array([[1, 50], [0, 50]])
    plain, smoothed = (ppmi(counts, context_exponent=a).toarray()[0, 0] for a in (1.0, 0.75))
    share = 1 / (1 + 100**0.75)
    np.testing.assert_allclose(plain, np.log(101 / 51), rtol=1e-12)
    np.testing.assert_allclose(smoothed, max(0, np.log(1 / (51 * share))), rtol=1e-12)


def test_surprise_is_association_and_frequency():
    # Theory sheet 6.4: -log P(j | i) = -PMI_ij - log p_j.
    counts = csr_array(np.random.default_rng(0).integers(1, 9, (6, 6)))
    delta, _ = conditional_dissimilarity(counts, range(6), slice(0, 6), smoothing=1e-12)
    c = counts.toarray()
    pmi = np.log(c * c.sum() / np.outer(c.sum(axis=1), c.sum(axis=0)))
    np.testing.assert_allclose(delta, -pmi - np.log(c.sum(axis=0) / c.sum()), rtol=1e-9)


def test_stored_zeros_and_parts_of_counts_change_nothing():
    rows, columns, counts = [0, 0, 1, 2, 2, 1], [1, 1, 0, 0, 1, 1], [1, 3, 2, 5, 1, 0]
    pieces = csr_array((counts, (rows, columns)), shape=(3, 3))
    whole = csr_array([[0, 4, 0], [2, 0, 0], [5, 1, 0]])
    np.testing.assert_array_equal(ppmi(pieces).toarray(), ppmi(whole).toarray())


def test_all_words_enter_the_totals_of_some():
    some = [2, 0]
    for function in (conditional_dissimilarity, ppmi_dissimilarity):
        whole = function(COUNTS, ALL, slice(0, 3))
        part = function(COUNTS, some, slice(0, 2))
        for a, b in zip(whole, part, strict=True):
            np.testing.assert_array_equal(a[np.ix_(some, some)], b)


def test_rank_against_plain_sorting():
    profiles = some_profiles()
    n = len(profiles)
    delta, weight = rank_dissimilarity(profiles, slice(0, n), n_near=7, far_weight=0.2)
    d = distances(profiles)
    np.fill_diagonal(d, -1)
    rank = d.argsort(axis=1, kind="stable").argsort(axis=1)
    np.testing.assert_array_equal(delta, rank / (n - 1))
    expected = np.where(rank <= 7, 1, 0.2)
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(weight, expected)
    assert not np.array_equal(delta, delta.T)


def test_ties_stand_by_index():
    delta, _ = rank_dissimilarity(np.zeros((4, 2)), slice(0, 4))
    np.testing.assert_array_equal(
        3 * delta, [[0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 0, 3], [1, 2, 3, 0]]
    )


def test_few_words_are_all_near():
    _, weight = rank_dissimilarity([[0.0], [1.0], [3.0]], slice(0, 3), n_near=15)
    np.testing.assert_array_equal(weight, 1 - np.eye(3))


@given(cuts=st.lists(st.integers(1, 39), max_size=6, unique=True).map(sorted))
def test_blocks_of_rows_have_the_same_bits_however_cut(cuts):
    counts, profiles = random_counts(1), some_profiles(1, 40)
    targets = np.arange(40)[::-1]
    edges = [0, *cuts, 40]
    blocks = [slice(a, b) for a, b in pairwise(edges)]
    for cells in (
        lambda rows: rank_dissimilarity(profiles, rows, n_near=3),
        lambda rows: conditional_dissimilarity(counts, targets, rows),
        lambda rows: ppmi_dissimilarity(counts, targets, rows),
    ):
        whole = cells(slice(0, 40))
        parts = zip(*map(cells, blocks), strict=True)
        for a, b in zip(whole, parts, strict=True):
            np.testing.assert_array_equal(a, np.concatenate(b))


def test_profiles_are_the_leading_directions_of_both_sides():
    counts, targets = random_counts(2), np.arange(5, 35)
    profiles = context_profiles(counts, targets, n_components=4)
    sides = np.hstack([ppmi(c).toarray()[targets] for c in (csr_array(counts.T), counts)])
    sides /= np.linalg.norm(sides, axis=1, keepdims=True)
    u, s, _ = np.linalg.svd(sides, full_matrices=False)
    expected = u[:, :4] * np.sqrt(s[:4])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(profiles @ profiles.T, expected @ expected.T, atol=1e-9)


def test_profiles_repeat_and_have_length_1():
    counts = random_counts(3)
    first, again, other = (
        context_profiles(counts, np.arange(40), n_components=5, random_state=s) for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first, other, atol=1e-8)  # the seed is only where the search starts
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=1e-12)


def test_profiles_know_before_from_after():
    # Words 0, 1 stand before word 4 and words 2, 3 after it: alike but for the direction.
    pairs = np.zeros((6, 6), dtype=np.int64)
    pairs[[0, 1], 4] = pairs[4, [2, 3]] = 9
    pairs[5, [0, 1, 2, 3]] = pairs[[0, 1, 2, 3], 5] = 2
    profiles = context_profiles(csr_array(pairs), range(4), n_components=3)
    d = distances(profiles)
    assert max(d[0, 1], d[2, 3]) < 1e-6
    assert d[0, 2] > 0.5
    both = context_profiles(csr_array(pairs + pairs.T), range(4), n_components=3)
    assert distances(both).max() < 1e-6


def test_few_words_have_fewer_components():
    assert context_profiles(COUNTS, [1, 2]).shape == (2, 2)
    assert context_profiles(COUNTS, ALL, n_components=2).shape == (3, 2)


def test_a_word_without_contexts_has_a_profile_of_zeros():
    counts = COUNTS.toarray()
    counts[1] = counts[:, 1] = 0
    profiles = context_profiles(csr_array(counts), ALL)
    np.testing.assert_array_equal(profiles[1], 0)
    np.testing.assert_allclose(np.linalg.norm(profiles[[0, 2]], axis=1), 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ppmi(np.ones((2, 2))), "counts must be a 2-d sparse array, got ndarray"),
        (lambda: ppmi(csr_array([[1, -2]])), "counts must be non-negative, got -2"),
        (lambda: ppmi(csr_array((2, 2))), "counts must have a pair that occurs, got none"),
        (lambda: context_profiles(COUNTS[:2], [0]), r"counts must be square.* got \(2, 3\)"),
        (lambda: context_profiles(COUNTS, []), r"list of word indices, got shape \(0,\)"),
        (lambda: context_profiles(COUNTS, [0, 3]), "indices of the 3 words, got 0 to 3"),
        (lambda: context_profiles(COUNTS, [-1]), "indices of the 3 words, got -1 to -1"),
        (lambda: context_profiles(COUNTS, ALL, n_components=0), "n_components must be at least 1"),
        (lambda: rank_dissimilarity([[1.0]], slice(0, 1)), "at least two profiles, got 1"),
        (lambda: rank_dissimilarity([[1.0], [2.0]], slice(0, 3)), "slice within the 2 rows"),
        (lambda: rank_dissimilarity([[1.0], [2.0]], slice(1, 1)), "slice within the 2 rows"),
        (lambda: rank_dissimilarity([[1.0], [2.0]], slice(0, 2), n_near=0), "n_near must be at le"),
        (
            lambda: rank_dissimilarity([[1.0], [2.0]], slice(0, 2), far_weight=1.5),
            "far_weight must be between 0 and 1, got 1.5",
        ),
        (
            lambda: conditional_dissimilarity(COUNTS, ALL, slice(0, 3), smoothing=0.0),
            "smoothing must be above 0, got 0.0",
        ),
        (
            lambda: conditional_dissimilarity(COUNTS, ALL, slice(0, 3), unseen_weight=-0.1),
            "unseen_weight must be between 0 and 1, got -0.1",
        ),
        (
            lambda: ppmi_dissimilarity(COUNTS, ALL, slice(0, 3), unseen_weight=2),
            "unseen_weight must be between 0 and 1, got 2",
        ),
        (lambda: neighbour_overlap([[1.0]], [[1.0]]), "the same rows, at least 2, got 1 and 1"),
        (lambda: neighbour_overlap(np.ones((3, 2)), np.ones((2, 2))), "same rows.* got 3 and 2"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_overlap_against_sets():
    a, b = some_profiles(4, 50, 2), some_profiles(5, 50, 3)
    near = []
    for points in (a, b):
        d = distances(points)
        np.fill_diagonal(d, np.inf)
        near.append(d.argsort(axis=1, kind="stable")[:, :6])
    shared = [len(set(x) & set(y)) / 6 for x, y in zip(*near, strict=True)]
    assert neighbour_overlap(a, b, k=6) == pytest.approx(np.mean(shared))
    assert neighbour_overlap(a, a, k=6) == 1
    assert neighbour_overlap(a, b, k=500) == 1


def test_spread_of_radii():
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 20_000), np.sqrt(rng.random(20_000))
    disc = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]) + 7.0
    assert radius_spread(disc) == pytest.approx(8**-0.5, rel=0.02)  # sqrt(1/2 - 4/9) / (2/3)
    assert radius_spread(np.ones((5, 2))) == 0


def test_degenerate_maps_are_called_so():
    rng = np.random.default_rng(1)
    profiles = rng.normal(size=(400, 2))
    good = map_quality(profiles, profiles)
    assert (good.overlap, good.warning) == (1, None)
    assert good.chance == pytest.approx(20 / 399)
    assert good.lift == pytest.approx(399 / 20)
    ring = profiles / np.linalg.norm(profiles, axis=1, keepdims=True)
    assert "on a ring (spread of radii 0.0" in str(map_quality(ring, profiles).warning)
    unrelated = map_quality(rng.normal(size=(400, 2)), profiles)
    assert "hardly better than chance" in str(unrelated.warning)
    few = map_quality(rng.normal(size=(30, 2)), profiles[:30])
    assert str(few.warning).startswith(
        "there are too few dots to judge the map (chance alone keeps 69% of the neighbours)"
    )
    enough = map_quality(profiles[:81], profiles[:81])
    assert (enough.chance, enough.warning) == (0.25, None)


def test_a_ring_that_fits_its_data_is_no_fault():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert "on a ring" in str(map_quality(square, square, stress=0.21).warning)
    assert "on a ring" not in str(map_quality(square, square, stress=0.2).warning)
    assert ring_warning(0.16, stress=1.0) is None
    assert str(ring_warning(0.02, stress=0.9)).startswith(
        "the dots lie on a ring (spread of radii 0.02, a disc has 0.35; stress 0.90)"
    )
