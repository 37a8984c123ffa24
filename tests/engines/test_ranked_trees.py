"""`RankedTrees` against `dense`: what it does not call doubtful is right to the bit."""

import pickle
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.ranked import RankedTrees
from locpipe.kernels import Gaussian
from locpipe.kernels.masks import Causal, ExcludeSelf
from locpipe.kernels.nearness import Nearness
from locpipe.reductions import ArgBest, TopK


def summary_of(engine, x, cuts=(), **rows):
    edges = sorted({0, *map(int, cuts), len(x)})
    blocks = [
        KeyBlock(x[a:b], start=a, **{name: value[a:b] for name, value in rows.items()})
        for a, b in pairwise(edges)
    ]
    return reduce(engine.merge, map(engine.summarise, blocks))


def compared(k, q, x, *, metric="euclidean", exclude_self=False, cuts=(), **rows):
    """Which rows were in doubt, once all others were found equal."""
    reduction, block = TopK(k), QueryBlock(q)
    kernel = Nearness(metric) * ExcludeSelf() if exclude_self else Nearness(metric)
    expected = dense.fold(reduction, reduction.init(block), block, KeyBlock(x, **rows), kernel)
    engine = RankedTrees(metric, k, exclude_self)
    state, doubtful = engine.evaluate(summary_of(engine, x, cuts, **rows), block)
    for found, right in zip(state, expected, strict=True):
        np.testing.assert_array_equal(found[~doubtful], right[~doubtful])
    return doubtful


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["euclidean", "manhattan"]),
    st.sampled_from(["normal", "grid", "duplicates"]),
    st.sampled_from([1, 2, 3, 7]),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([0.0, 1e3, 1e8]),
    st.booleans(),
)
def test_as_dense(seed, metric, kind, d, dtype, offset, exclude_self):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 200))
    x = rng.integers(0, 4, (n, d)) if kind == "grid" else rng.normal(size=(n, d))
    x = (x[rng.integers(0, max(1, n // 5), n)] if kind == "duplicates" else x) + offset
    x = x.astype(dtype)
    q = x[: rng.integers(1, n + 1)] + rng.integers(0, 2) * rng.normal(size=d).astype(dtype)
    doubtful = compared(
        int(rng.choice([1, 3, 15, n, n + 2])),
        q,
        x,
        metric=metric,
        exclude_self=exclude_self,
        cuts=rng.integers(0, n, 3),
        log_sample_weight=np.where(rng.random(n) < rng.choice([0.0, 0.3, 1.0]), -np.inf, 0.0),
    )
    if kind == "normal" and offset == 0:
        assert not doubtful.any()


@pytest.mark.parametrize("scale", [1e-200, 1e149])
def test_numbers_of_any_size(scale):
    x = scale * np.random.default_rng(0).normal(size=(100, 3))
    doubtful = compared(5, x[:20], x)
    assert doubtful.all() == (scale < 1)


def test_many_ties_are_left_to_pairs():
    x = np.zeros((1000, 2))
    assert compared(3, x[:5], x).all()
    assert not compared(3, np.array([[0.0, 1.0]]), np.vstack([x, [[0.0, 1.0]] * 3])).any()


def test_weights_that_take_part_in_the_score_are_left_to_pairs():
    x = np.random.default_rng(1).normal(size=(50, 2))
    assert compared(3, x[:5], x, log_sample_weight=x[:, 0], cuts=(20,)).all()


def test_ids_that_come_with_the_rows():
    rng = np.random.default_rng(2)
    x, ids = rng.normal(size=(300, 2)), rng.permutation(300) / 2
    engine, reduction = RankedTrees("euclidean", 4, exclude_self=True), TopK(4)
    q, kernel = QueryBlock(x[:60], ids=ids[:60]), Nearness() * ExcludeSelf()
    state, doubtful = engine.evaluate(summary_of(engine, x, (100, 200), ids=ids), q)
    expected = dense.fold(reduction, reduction.init(q), q, KeyBlock(x, ids=ids), kernel)
    assert not doubtful.any()
    np.testing.assert_array_equal(state.index, expected.index)


def test_small_trees_become_few():
    x = np.random.default_rng(3).normal(size=(3000, 2))
    engine = RankedTrees("euclidean", 2)
    forest = summary_of(engine, x, range(0, 3000, 10))
    assert len(forest.trees) < 12
    assert sum(len(tree.data) for tree in forest.trees) == 3000
    again = pickle.loads(pickle.dumps(forest))
    q = QueryBlock(x[:50])
    for a, b in zip(engine.evaluate(forest, q)[0], engine.evaluate(again, q)[0], strict=True):
        np.testing.assert_array_equal(a, b)


THREE = TopK(3)


def need_for(kernel, reduction=THREE, n_features=3, **given):
    return Need(kernel, reduction, 10**5, 10**5, n_features, 0, 1e-6, **given)


def test_what_is_refused():
    need = need_for(Nearness() * ExcludeSelf())
    assert RankedTrees.refusal(need) is None
    refused = [
        need_for(Nearness(), library="cupy"),
        need_for(Nearness(), ArgBest()),
        need_for(Nearness("cosine")),
        need_for(Gaussian()),
        need_for(Nearness() * Causal()),
        need_for(Nearness(), n_features=20),
        need_for(Nearness(), has_pairs=True),
    ]
    assert all(RankedTrees.refusal(need) for need in refused)
    engine = RankedTrees.build(need)
    assert engine == RankedTrees("euclidean", 3, exclude_self=True)
    assert 0 < RankedTrees.seconds(need) < 5
    assert engine.tile_bytes(need) < 2**28
    assert engine.summary_bytes(need) < 2**24
