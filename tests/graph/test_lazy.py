"""Graphs: two passes, trees, groups of chunks, pairs over Dask; equal to what memory gives."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.errors import InputError
from locpipe.graph import fold
from locpipe.graph.layer import groups_of
from locpipe.graph.spans import MAX_LEAVES
from locpipe.kernels import Epanechnikov, Gaussian, Nearest, Precomputed, Uniform
from locpipe.pairs import DaskPairs
from locpipe.reductions import MajorizationStep, TopK, WeightedMean
from locpipe.testing import assert_close, no_compute

seeds = st.integers(0, 2**32 - 1)


def rows(seed, n=23, d=2):
    return np.random.default_rng(seed).normal(size=(n, d))


def dask_rows(array, chunks):
    return da.from_array(array, chunks=(chunks, *array.shape[1:]))


@given(seeds, st.integers(1, 9))
def test_two_passes_in_a_tree_are_two_passes_in_memory(seed, k):
    q, x = rows(seed), rows(seed + 1)
    kernel = Nearest(k, "distance")
    with no_compute():
        lazy = lp.local_mean(dask_rows(q, (9, 14)), dask_rows(x, (5, 0, 18)), x, kernel)
    assert_close(lazy.compute(scheduler="sync"), lp.local_mean(q, x, x, kernel), 1e-12)


@pytest.mark.parametrize(
    "kernel", [Epanechnikov(0.3), Uniform(0.2), Nearest(2) * lp.masks.Causal(-3)]
)
def test_what_has_no_neighbour_takes_the_nearest(kernel):
    q, x = rows(0), rows(1)
    plain = lp.local_mean(q, x, x, kernel)
    filled = lp.local_mean(q, x, x, kernel, empty="nearest")
    lonely = np.isnan(plain[:, 0])
    assert lonely.any()
    assert not lonely.all()
    np.testing.assert_array_equal(filled[~lonely], plain[~lonely])
    allowed = None if lonely.sum() == 0 else lp.nearest(q, x, 1)[1][:, 0]
    if not isinstance(kernel, lp.kernels.Product):
        np.testing.assert_array_equal(filled[lonely], x[allowed[lonely]])
    with no_compute():
        lazy = lp.local_mean(
            dask_rows(q, (9, 14)), dask_rows(x, (5, 0, 18)), x, kernel, empty="nearest"
        )
    np.testing.assert_array_equal(np.isnan(lazy.compute(scheduler="sync")), np.isnan(filled))
    assert_close(lazy.compute(scheduler="sync"), filled, 1e-12)


def test_a_mask_holds_for_the_nearest_too():
    x = np.array([[0.0], [10.0], [20.0]])
    kernel = Uniform(1.0) * lp.masks.ExcludeSelf()
    filled = lp.local_mean(x, x, np.array([1.0, 2.0, 3.0]), kernel, empty="nearest")
    np.testing.assert_array_equal(filled, [2.0, 1.0, 2.0])
    alone = lp.local_mean(x[:1], x[:1], [1.0], kernel, empty="nearest")
    assert np.isnan(alone).all()


def test_no_nearest_without_a_distance():
    x = rows(0)
    kernel = Precomputed(np.zeros((23, 23)))
    with pytest.raises(InputError, match="empty='nearest' needs a kernel of a distance"):
        lp.local_mean(x, x, x, kernel, empty="nearest")
    with pytest.raises(InputError, match="TopK has no value to take from the nearest key"):
        fold(TopK(2), x, x, Uniform(1e-3) * lp.masks.ExcludeSelf(), empty="nearest")


@given(seeds, st.sampled_from(["dense", "sparse", "dask", "dask over dask rows", "product"]))
def test_pairs_of_any_kind(seed, kind):
    x, v = rows(seed), rows(seed + 1)
    w = np.random.default_rng(seed).random((23, 23))
    w[w < 0.3] = 0
    expected = w @ v / w.sum(axis=1, keepdims=True)
    lazy_w = da.from_array(w, chunks=((10, 13), (3, 20)))
    kernel = Precomputed({"dense": w, "sparse": scipy.sparse.csr_array(w)}.get(kind, lazy_w))
    q, k = x, x
    if kind == "dask over dask rows":
        q, k = dask_rows(x, (4, 19)), dask_rows(x, (11, 12))
    if kind == "product":
        kernel = Gaussian(1e6) * kernel
    with no_compute():
        mean = lp.local_mean(q, k, v, kernel)
    assert isinstance(mean, da.Array) == (kind not in ("dense", "sparse"))
    np.testing.assert_allclose(np.asarray(mean), expected, rtol=1e-9, atol=1e-11)


def test_pairs_of_a_reduction_may_be_a_dask_array():
    x, y = rows(0), rows(1)
    delta = np.abs(np.random.default_rng(0).normal(size=(23, 23)))
    pairs = DaskPairs(da.from_array(delta, chunks=(7, 9)))
    lazy = fold(MajorizationStep(2), x, y, pairs=pairs)
    expected = fold(MajorizationStep(2), x, y, pairs=lp.pairs.as_pairs(delta, "cells"))
    for a, b in zip(lazy, expected, strict=True):
        assert_close(a.compute(scheduler="sync"), b, 1e-12)


def test_pairs_must_fit_the_rows():
    x = rows(0)
    with pytest.raises(InputError, match=r"pairs must have shape \(n_queries, n_keys\) = \(23, 5"):
        lp.local_mean(x, x[:5], x[:5], Precomputed(np.ones((23, 23))))


def test_pairs_need_queries_of_known_size():
    x = dask_rows(rows(0), (10, 13))
    pairs = Precomputed(da.ones((23, 23), chunks=5))
    with pytest.raises(InputError, match="pairs need rows of known number"):
        lp.local_mean(x[x[:, 0] > -np.inf], rows(0), rows(0), pairs)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 30), st.integers(1, 20))
def test_groups_cover_the_chunks_in_order(chunks, n_groups, max_rows):
    groups = groups_of(chunks, min(n_groups, len(chunks)), max_rows)
    assert [n for group in groups for n in group.sizes] == chunks
    assert all(group.n_rows <= max_rows or len(group.sizes) == 1 for group in groups)
    assert [g.start for g in groups] == np.cumsum([0, *(g.n_rows for g in groups)])[:-1].tolist()


def test_a_graph_has_thousands_of_tasks_and_not_millions():
    q = da.zeros((1_000_000, 2), chunks=(1000, 2))
    mean = lp.local_mean(q, q, q, Gaussian(1.0) * lp.masks.Causal())
    assert len(mean.__dask_graph__()) < 3 * MAX_LEAVES
    assert mean.chunks[0] == q.chunks[0]


def test_grouped_chunks_come_back_as_chunks(monkeypatch):
    monkeypatch.setattr("locpipe.graph.spans._ENOUGH_LEAVES", 6)
    q, x = rows(0, 40), rows(1, 40)
    lazy_q, lazy_x = dask_rows(q, (5,) * 8), dask_rows(x, (4,) * 10)
    lazy = lp.local_mean(lazy_q, lazy_x, x, Gaussian(0.5))
    assert lazy.chunks == ((5,) * 8, (2,))
    assert_close(lazy.compute(scheduler="sync"), lp.local_mean(q, x, x, Gaussian(0.5)), 1e-12)


def test_few_queries_over_many_keys_use_many_tasks(monkeypatch):
    monkeypatch.setattr("locpipe.graph.spans._PAIRS_PER_LEAF", 20)
    q, x = rows(0, 10), rows(1, 40)
    lazy = lp.local_mean(dask_rows(q, (10,)), x, x, Gaussian(0.5))
    spans = [key for key in lazy.__dask_graph__() if "locpipe" in str(key)]
    assert len(spans) > 16
    assert_close(lazy.compute(scheduler="sync"), lp.local_mean(q, x, x, Gaussian(0.5)), 1e-12)


def test_weighted_mean_of_queries_of_unknown_size():
    q, x = rows(0), rows(1)
    lazy = dask_rows(q, (9, 14))
    some = lazy[lazy[:, 0] > 0]
    mean = lp.local_mean(some, x, x, Nearest(3), empty="nearest")
    assert_close(mean.compute(), lp.local_mean(q[q[:, 0] > 0], x, x, Nearest(3)), 1e-12)


@given(seeds, st.integers(1, 40))
def test_a_summary_answers_in_a_tree_as_in_memory(seed, repaired):
    q, x = rows(seed), rows(seed + 1)
    x[5:9] = x[0]
    engine = DistinctKeys(WeightedMean(2), Gaussian(0.7), repaired)
    expected = lp.local_mean(q, x, x, Gaussian(0.7))
    (eager,) = fold(WeightedMean(2), q, lp.Keys(x, values=x), Gaussian(0.7), engine=engine)
    assert_close(eager, expected, 1e-9)
    keys = lp.Keys(dask_rows(x, (5, 0, 18)), values=x)
    with no_compute():
        (lazy,) = fold(WeightedMean(2), dask_rows(q, (9, 14)), keys, Gaussian(0.7), engine=engine)
    assert_close(lazy.compute(scheduler="sync"), expected, 1e-9)


class DistinctKeys:
    """A summary engine that is exact: keys that lie at one place become one key.

    It declares every `repaired`-th query doubtful and gives nonsense for it.
    """

    def __init__(self, reduction, kernel, repaired):
        self.reduction, self.kernel, self.repaired = reduction, kernel, repaired

    def summarise(self, k):
        return self._distinct(k.data, np.ones(k.n_rows), k.values)

    def merge(self, a, b):
        return self._distinct(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))

    def evaluate(self, summary, q):
        data, count, values = summary
        from locpipe.blocks import KeyBlock
        from locpipe.engines import dense

        k = KeyBlock(data, values=values, log_sample_weight=np.log(count))
        state = dense.fold(self.reduction, self.reduction.init(q), q, k, self.kernel)
        doubtful = np.arange(q.n_rows) % self.repaired == 0
        return state._replace(moment=np.where(doubtful[:, None], 1e9, state.moment)), doubtful

    @staticmethod
    def _distinct(data, count, values):
        places, inverse = np.unique(data, axis=0, return_inverse=True)
        total = np.bincount(inverse, count)
        means = [np.bincount(inverse, count * column) / total for column in values.T]
        return places, total, np.stack(means, axis=1)
