"""`Ranked` against `dense`: the same scores to the bit, the same indices, however data is cut."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.ranked import Ranked
from locpipe.kernels.masks import Causal, ExcludeSelf, Window
from locpipe.kernels.nearness import Nearness
from locpipe.reductions import ArgBest, TopK

METRICS = ("euclidean", "cosine", "manhattan", "nan-euclidean")
MASKS = {
    "none": None,
    "exclude self": ExcludeSelf(),
    "causal": Causal(3),
    "both": Window(9) * ExcludeSelf(),
}


def kernel_of(metric, mask="none"):
    return Nearness(metric) if MASKS[mask] is None else Nearness(metric) * MASKS[mask]


def folded(fold, k, q, x, kernel, *, cuts=(), query_cuts=(), **rows):
    """State of the queries over the keys, block by block."""
    reduction, states = TopK(k), []
    q_edges, k_edges = (sorted({0, *c, n}) for c, n in ((query_cuts, len(q)), (cuts, len(x))))
    for low, high in pairwise(q_edges):
        block = QueryBlock(q[low:high], start=low)
        state = reduction.init(block)
        for a, b in pairwise(k_edges):
            cut = {name: value[a:b] for name, value in rows.items()}
            state = fold(reduction, state, block, KeyBlock(x[a:b], start=a, **cut), kernel)
        states.append(state)
    return tuple(np.concatenate(parts) for parts in zip(*states, strict=True))


def assert_as_dense(k, q, x, kernel, *, cuts=(), query_cuts=(), **rows):
    expected = folded(dense.fold, k, q, x, kernel, **rows)
    found = folded(Ranked().fold, k, q, x, kernel, cuts=cuts, query_cuts=query_cuts, **rows)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_array_equal(found[0], expected[0])


def rows_like(rng, kind, n, d, dtype):
    """Rows of a kind that is hard in its own way."""
    x = rng.normal(size=(n, d))
    if kind == "grid":
        x = rng.integers(0, 3, (n, d))
    elif kind == "duplicates":
        x = x[rng.integers(0, min(3, n), n)]
    elif kind == "far clusters":
        x = x + 1e6 * rng.integers(0, 2, (n, 1))
    elif kind == "zeros":
        x = x * rng.integers(0, 2, (n, 1))
    return x.astype(dtype)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(METRICS),
    st.sampled_from(["normal", "grid", "duplicates", "far clusters", "zeros"]),
    st.sampled_from([1, 2, 8, 9, 20, 70]),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([0.0, 1e3, 1e8]),
    st.sampled_from(sorted(MASKS)),
)
def test_as_dense(seed, metric, kind, d, dtype, offset, mask):
    rng = np.random.default_rng(seed)
    n_queries, n_keys = rng.integers(1, 40), rng.integers(1, 300)
    x = rows_like(rng, kind, n_keys, d, dtype) + np.dtype(dtype).type(offset)
    q = np.where(rng.random((n_queries, 1)) < 0.5, x[rng.integers(0, n_keys, n_queries)], 0)
    q = (q + rows_like(rng, kind, n_queries, d, dtype)).astype(dtype)
    if metric == "nan-euclidean":
        x[rng.random(x.shape) < 0.4] = np.nan
    weight = np.where(rng.random(n_keys) < rng.choice([0.0, 0.3, 1.0]), -np.inf, 0.0)
    assert_as_dense(
        int(rng.choice([1, 3, 15, n_keys, n_keys + 5])),
        q,
        x,
        kernel_of(metric, mask),
        cuts=rng.integers(0, n_keys, 2),
        query_cuts=rng.integers(0, n_queries, 1),
        log_sample_weight=weight,
    )


@pytest.mark.parametrize("scale", [1e-160, 1e-25, 1e25, 1e149])
@pytest.mark.parametrize("metric", METRICS)
def test_numbers_of_any_size(metric, scale):
    rng = np.random.default_rng(0)
    x = scale * rng.normal(size=(500, 12))
    assert_as_dense(7, x[:50], x, kernel_of(metric), cuts=(100,))
    mixed = x * 10.0 ** rng.integers(-20, 1, (500, 1))
    assert_as_dense(7, mixed[:50], mixed, kernel_of(metric), cuts=(100,))


@pytest.mark.parametrize("d", [784, 5000])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_wide_rows(d, metric):
    x = np.random.default_rng(1).integers(0, 256, (700, d)).astype(np.float32)
    x[300:400] = x[200:300]
    assert_as_dense(5, x[190:320], x, kernel_of(metric, "exclude self"), cuts=(350,))


def test_all_at_one_place():
    x = np.full((3000, 20), 0.1, dtype=np.float32)
    q = np.random.default_rng(2).normal(size=(90, 20)).astype(np.float32)
    q[:20] = x[:20]
    assert_as_dense(15, q, x, kernel_of("euclidean", "exclude self"), cuts=(7, 1000))


def test_differences_that_float32_cannot_tell_apart():
    base = np.random.default_rng(3).normal(size=(400, 30))
    q = base[:40]
    x = base[np.arange(400) % 40] + 1e-9 * base
    assert_as_dense(5, q, x, kernel_of("euclidean"), cuts=(150,))


def test_keys_that_come_nearer_and_nearer():
    x = np.linspace(100, 1, 5000)[:, None] * np.ones((1, 16))
    assert_as_dense(4, np.zeros((3, 16)), x, kernel_of("euclidean"), cuts=(50, 2500))


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_ids_of_any_kind(dtype):
    rng = np.random.default_rng(4)
    x, ids = rng.normal(size=(60, 9)), rng.permutation(60).astype(dtype)
    kernel, reduction = kernel_of("euclidean", "exclude self"), TopK(3)
    q, k = QueryBlock(x[:20], ids=ids[:20].astype(np.int64)), KeyBlock(x, ids=ids)
    expected = dense.fold(reduction, reduction.init(q), q, k, kernel)
    found = Ranked().fold(reduction, reduction.init(q), q, k, kernel)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_that_take_part_in_the_score():
    rng = np.random.default_rng(5)
    x, weight = rng.normal(size=(100, 10)), rng.normal(size=100)
    assert_as_dense(5, x[:9], x, kernel_of("euclidean"), log_sample_weight=weight)


def test_rows_in_any_layout():
    rng = np.random.default_rng(6)
    x = np.asfortranarray(rng.normal(size=(200, 20)))[::2]
    x.flags.writeable = False
    q = rng.normal(size=(20, 20)).astype(np.float32)
    assert_as_dense(5, q, x, kernel_of("euclidean"))
    assert_as_dense(5, q[::-1], x, kernel_of("cosine"))


def test_the_state_that_came_is_left_alone():
    x = np.random.default_rng(7).normal(size=(50, 12))
    q, reduction = QueryBlock(x), TopK(2)
    before = reduction.init(q)
    Ranked().fold(reduction, before, q, KeyBlock(x), Nearness())
    assert np.isneginf(before.score).all()


THREE = TopK(3)


def need_for(kernel, reduction=THREE, **given):
    return Need(kernel, reduction, 1000, 1000, 20, 0, 1e-6, **given)


def test_what_is_refused():
    assert Ranked.refusal(need_for(Nearness() * ExcludeSelf())) is None
    refused = [
        need_for(Nearness(), library="cupy"),
        need_for(Nearness(), ArgBest()),
        need_for(Nearness("haversine")),
        need_for(lp.kernels.Gaussian()),
        need_for(Nearness() * lp.kernels.Gaussian()),
        need_for(ExcludeSelf()),
        need_for(Nearness(), has_pairs=True),
    ]
    assert all(Ranked.refusal(need) for need in refused)


def test_costs_and_memory():
    need = need_for(Nearness())
    engine = Ranked.build(need)
    assert pickle.loads(pickle.dumps(engine)) == engine
    assert 0 < Ranked.seconds(need) < 1
    assert engine.tile_bytes(need) < 2**27
