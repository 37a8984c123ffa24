"""Rows among themselves: each pair weighed once, the same results."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.graph.operation import Operation
from locpipe.graph.sources import ArrayKeys
from locpipe.graph.symmetric import fold_symmetric, is_mirror, rounds
from locpipe.kernels import DotProduct, Epanechnikov, Gaussian, Nearest, Precomputed
from locpipe.reductions import ArgBest, LogMass, TopK, WeightedMean
from locpipe.testing import assert_close

KERNELS = [Gaussian(0.7), Epanechnikov(2.0), Gaussian(1.0) * lp.masks.ExcludeSelf(), DotProduct()]


@given(st.integers(1, 30))
def test_every_pair_meets_once_and_no_block_twice_in_a_round(n):
    played = list(rounds(n))
    pairs = [pair for pairs in played for pair in pairs]
    assert sorted(pairs) == [(i, j) for i in range(n) for j in range(i + 1, n)]
    assert all(len({i for pair in pairs for i in pair}) == 2 * len(pairs) for pairs in played)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("reduction", [LogMass(), WeightedMean(2), TopK(4), ArgBest()], ids=repr)
def test_halves_are_the_whole(kernel, reduction, monkeypatch):
    monkeypatch.setattr("locpipe.graph.symmetric.BLOCK_ROWS", 300)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1100, 2))
    weight = np.log(rng.random(1100))
    k = KeyBlock(x, values=x[:, ::-1].copy(), log_sample_weight=weight)
    op, q = Operation(reduction, kernel), QueryBlock(x)
    expected = op.stream(q, ArrayKeys(k))
    one = fold_symmetric(op, q, k, 1)
    for a, b in zip(one, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    for a, b in zip(one, fold_symmetric(op, q, k, 3), strict=True):
        np.testing.assert_array_equal(a, b)


def test_empty_neighbourhoods_among_halves():
    x = np.array([[0.0], [10.0], [20.0]])
    op = Operation(WeightedMean(1), Epanechnikov(1.0) * lp.masks.ExcludeSelf(), empty="nearest")
    (mean,) = fold_symmetric(op, QueryBlock(x), KeyBlock(x, values=x), 2)
    np.testing.assert_array_equal(mean, [[10.0], [0.0], [10.0]])


@given(st.integers(0, 2**32 - 1), st.sampled_from(KERNELS))
def test_a_tree_of_halves(seed, kernel):
    x = np.random.default_rng(seed).normal(size=(40, 2))
    lazy = da.from_array(x, chunks=((9, 0, 14, 17), (2,)))
    mean = lp.local_mean(lazy, lazy, lazy, kernel)
    assert_close(mean.compute(scheduler="sync"), lp.local_mean(x, x, x, kernel), 1e-9)
    leaves = sum("mutual" in str(task) for task in mean.__dask_graph__().values())
    assert leaves == 6


def test_what_is_not_a_mirror():
    x = np.random.default_rng(0).normal(size=(9, 2))
    q, k = lp.Queries(x), lp.Keys(x)
    assert is_mirror(Operation(LogMass(), Gaussian()), q, k)
    assert is_mirror(Operation(LogMass(), Gaussian()), lp.Queries(x[:, :1]), lp.Keys(x[:, :1]))
    for kernel in (Nearest(2), lp.masks.Causal() * Gaussian(), Precomputed(np.ones((9, 9)))):
        assert not is_mirror(Operation(LogMass(), kernel), q, k)
    assert not is_mirror(Operation(LogMass(), Gaussian()), q, lp.Keys(x.copy()))
    assert not is_mirror(Operation(LogMass(), Gaussian()), q, lp.Keys(x, bandwidth=np.ones(9)))
    assert not is_mirror(Operation(LogMass(), Gaussian()), lp.Queries(x, ids=np.arange(9)), k)
