"""`RankedProjected` against `dense`: what it does not call doubtful is right to the bit."""

import pickle
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from unittest.mock import patch

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.choice import choices
from locpipe.engines.ranked import Ranked, RankedProjected, sifted
from locpipe.engines.ranked.projection import Frame
from locpipe.engines.ranked.trial import would_pay
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


def compared(k, q, x, *, exclude_self=False, cuts=(), tile_keys=None, **rows):
    """Which rows were in doubt, once all others were found equal.

    With `tile_keys` keys are projected even where it does not pay, in tiles of so many.
    """
    reduction, block = TopK(k), QueryBlock(q)
    kernel = Nearness() * ExcludeSelf() if exclude_self else Nearness()
    expected = dense.fold(reduction, reduction.init(block), block, KeyBlock(x, **rows), kernel)
    engine = RankedProjected(k, exclude_self)
    forced = {"TILE_KEYS": tile_keys or 2048, "would_pay": always if tile_keys else would_pay}
    with patch.multiple(sifted, **forced):
        state, doubtful = engine.evaluate(summary_of(engine, x, cuts, **rows), block)
    for found, right in zip(state, expected, strict=True):
        np.testing.assert_array_equal(found[~doubtful], right[~doubtful])
    return doubtful


def always(*_):
    return True


def near_a_plane(rng, n, d, rank=5, noise=0.05):
    """Rows with a few leading directions, and noise in all."""
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["plane", "exact plane", "isotropic", "grid", "duplicates", "outliers"]),
    st.sampled_from([1, 3, 17, 70, 200]),
    st.sampled_from([("float32",) * 2, ("float64",) * 2, ("float32", "float64")]),
    st.sampled_from([0.0, 1e3, 1e6]),
    st.booleans(),
)
def test_as_dense(seed, kind, d, dtypes, offset, exclude_self):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 2500))
    x = near_a_plane(rng, n, d, noise=0.0 if kind == "exact plane" else 0.05)
    if kind == "isotropic":
        x = rng.normal(size=(n, d))
    elif kind == "grid":
        x = rng.integers(0, 2, (n, d))
    elif kind == "duplicates":
        x = x[rng.integers(0, max(1, n // 5), n)]
    elif kind == "outliers":
        x = x * np.where(rng.random((n, 1)) < 0.01, 1e3, 1.0)
    x = x + offset
    q = x[rng.integers(0, n, 40)] + rng.integers(0, 2) * rng.normal(size=(40, d))
    compared(
        int(rng.choice([1, 3, 15, 30])),
        q.astype(dtypes[0]),
        x.astype(dtypes[1]),
        exclude_self=exclude_self,
        cuts=rng.integers(0, n, 3),
        tile_keys=int(rng.choice([1, 100, 2048])),
        log_sample_weight=np.where(rng.random(n) < rng.choice([0.0, 0.3, 1.0]), -np.inf, 0.0),
    )


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_leading_directions_rule_out_most(dtype, offset):
    rng = np.random.default_rng(0)
    x = (near_a_plane(rng, 6000, 400, noise=0.2) + offset).astype(dtype)
    q = x[:40] + dtype(0.25)
    assert not compared(15, q, x, cuts=(1000, 4000)).any()
    assert not compared(30, x[:20], x, exclude_self=True).any()


def test_without_leading_directions_rows_are_left_to_pairs():
    x = np.random.default_rng(1).normal(size=(6000, 400))
    assert compared(5, x[:50] + 0.5, x).all()


def test_queries_that_cost_too_much_are_left_to_pairs():
    rng = np.random.default_rng(5)
    x = near_a_plane(rng, 20_000, 400)
    q = np.vstack([x[:10], 50 * rng.normal(size=(30, 400))])
    assert not compared(5, q[:10], x, tile_keys=500).any()
    doubtful = compared(5, q, x, tile_keys=500)
    assert doubtful.any()
    assert not doubtful[:10].any()


def test_whether_it_pays():
    rng = np.random.default_rng(6)
    plane, noise = near_a_plane(rng, 2000, 400), rng.normal(size=(2000, 400))
    assert pays(plane)
    assert pays(plane + 1e3)
    assert not pays(noise)
    assert not pays(plane[:, :60])
    assert not pays(1e-150 * plane)
    assert not pays(plane[:50])


def pays(sample):
    return would_pay(Frame.of(sample, 191), sample, (63, 191), 15, 10 * len(sample))


def test_rows_out_of_range_are_left_to_pairs():
    x = near_a_plane(np.random.default_rng(2), 3000, 400)
    q = x[:4] * np.array([[1.0], [1e12], [1e40], [1e140]])
    np.testing.assert_array_equal(compared(5, q, x), [False, True, True, True])
    for scale in (1e-150, 1e-30, 1e30, 1e140):
        assert compared(5, scale * x[:4], scale * x, tile_keys=2048).all()


def test_all_at_one_place():
    x = np.full((5000, 70), 0.1, dtype=np.float32)
    compared(3, x[:5] + 1, x, tile_keys=2048)
    compared(3, x[:5], np.vstack([x, x + 1]), tile_keys=2048)


def test_weights_and_ids_that_are_left_to_pairs():
    x = np.random.default_rng(3).normal(size=(50, 70))
    assert compared(3, x[:5], x, log_sample_weight=x[:, 0], cuts=(20,)).all()
    engine, q = RankedProjected(3, exclude_self=True), QueryBlock(x, ids=np.arange(50) / 2)
    assert engine.evaluate(summary_of(engine, x), q)[1].all()
    assert engine.evaluate(summary_of(engine, x, ids=np.arange(50) / 2), QueryBlock(x))[1].all()


def test_ids_that_come_with_the_rows():
    rng = np.random.default_rng(4)
    x, ids = near_a_plane(rng, 3000, 400), rng.permutation(3000)
    engine, reduction = RankedProjected(4, exclude_self=True), TopK(4)
    q, kernel = QueryBlock(x[:60], ids=ids[:60]), Nearness() * ExcludeSelf()
    summary = pickle.loads(pickle.dumps(summary_of(engine, x, (100, 200), ids=ids)))
    state, doubtful = engine.evaluate(summary, q)
    expected = dense.fold(reduction, reduction.init(q), q, KeyBlock(x, ids=ids), kernel)
    assert not doubtful.any()
    np.testing.assert_array_equal(state.index, expected.index)


def test_blocks_in_any_order():
    rng = np.random.default_rng(7)
    x = near_a_plane(rng, 3000, 400)
    x = np.vstack([x, x[::-1]])  # each row twice, so that the lower index must win
    engine, q = RankedProjected(4), QueryBlock(x[:50])
    parts = [engine.summarise(KeyBlock(x[a : a + 500], start=a)) for a in range(0, 6000, 500)]
    right, _ = engine.evaluate(reduce(engine.merge, parts), q)
    found, doubtful = engine.evaluate(reduce(engine.merge, parts[::-1]), q)
    assert not doubtful.any()
    np.testing.assert_array_equal(found.index, right.index)
    np.testing.assert_array_equal(found.index[:, :2], np.c_[:50, 5999:5949:-1])


def test_in_graphs():
    x = near_a_plane(np.random.default_rng(8), 10_000, 256).astype(np.float32)
    q, keys = da.from_array(x[:300], chunks=(120, 256)), da.from_array(x, chunks=(3000, 256))
    found = dask.compute(lp.nearest(q, keys, 5, engine="pruned", exclude_self=True))[0]
    right = lp.nearest(x[:300], x, 5, engine="fused", exclude_self=True)
    for one, other in zip(found, right, strict=True):
        np.testing.assert_array_equal(one, other)


THREE = TopK(3)


def need_for(kernel, reduction=THREE, n_features=784, n_keys=60_000, **given):
    return Need(kernel, reduction, 10**4, n_keys, n_features, 0, 1e-6, **given)


def test_what_is_refused():
    need = need_for(Nearness() * ExcludeSelf())
    assert RankedProjected.refusal(need) is None
    refused = [
        need_for(Nearness(), library="cupy"),
        need_for(Nearness(), ArgBest()),
        need_for(Nearness("cosine")),
        need_for(Gaussian()),
        need_for(Nearness() * Causal()),
        need_for(Nearness(), n_features=20),
        need_for(Nearness(), n_keys=1000),
        need_for(Nearness(), TopK(200)),
        need_for(Nearness(), has_pairs=True),
    ]
    assert all(RankedProjected.refusal(need) for need in refused)
    engine = RankedProjected.build(need)
    assert engine == RankedProjected(3, exclude_self=True)
    assert isinstance(choices("auto", need)[0], RankedProjected)
    few = replace(need, n_queries=500)
    assert isinstance(choices("auto", few)[0], Ranked)
    assert engine.tile_bytes(need) < 2**28
    assert engine.summary_bytes(need) < 2**31
