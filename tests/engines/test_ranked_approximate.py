"""`Approximate`: measured recall, exact distances of what is found, nothing made up."""

import logging
import pickle

import numpy as np
import pytest

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.ranked import Approximate, recall
from locpipe.kernels.masks import Causal, ExcludeSelf
from locpipe.kernels.nearness import Nearness
from locpipe.reductions import ArgBest, TopK

pytest.importorskip("faiss")


def both(engine, q, x, start=0):
    """States and doubt of the engine over two blocks, and of the reference."""
    reduction, kernel = TopK(engine.k), Nearness(engine.metric)
    kernel = kernel * ExcludeSelf() if engine.exclude_self else kernel
    block, half = QueryBlock(q, start=start), len(x) // 2
    keys = KeyBlock(x[:half]), KeyBlock(x[half:], start=half)
    summary = engine.merge(*map(engine.summarise, keys))
    state, doubtful = engine.evaluate(pickle.loads(pickle.dumps(summary)), block)
    return state, doubtful, dense.fold(reduction, reduction.init(block), block, KeyBlock(x), kernel)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_most_are_found_with_exact_distances(metric, exclude_self, offset, caplog):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 12)) + (offset if metric == "euclidean" else 0.0)
    x[7] = 0.0 if metric == "cosine" else x[7]
    caplog.set_level(logging.INFO, logger="locpipe")
    state, doubtful, expected = both(Approximate(metric, 6, exclude_self), x[:300], x)
    assert not doubtful.any()
    near = np.arange(300) != 7  # all are at distance 1 from a row of zeros
    assert recall(state.index[near], expected.index[near]) > 0.9
    same = state.index == expected.index
    np.testing.assert_array_equal(state.score[same], expected.score[same])
    assert (state.score <= expected.score).all()
    assert "of the true ones found" in caplog.text


def test_a_target_of_1_looks_through_all_that_it_needs():
    x = np.random.default_rng(1).normal(size=(3000, 8))
    few, _, exact = both(Approximate("euclidean", 5, target=0.1), x[:200] + 0.3, x)
    all_, _, _ = both(Approximate("euclidean", 5, target=1.0), x[:200] + 0.3, x)
    assert recall(few.index, exact.index) < recall(all_.index, exact.index) > 0.98


def test_few_keys_are_left_to_pairs():
    x = np.random.default_rng(2).normal(size=(5, 3))
    _, doubtful, _ = both(Approximate("euclidean", 9), x, x)
    assert doubtful.all()
    state, doubtful, exact = both(Approximate("euclidean", 4, exclude_self=True), x, x)
    assert not doubtful.any()
    np.testing.assert_array_equal(state.index, exact.index)


def test_keys_that_are_not_there():
    x = np.random.default_rng(3).normal(size=(100, 3))
    engine, q = Approximate("euclidean", 2), QueryBlock(x)
    gone = engine.summarise(KeyBlock(x, log_sample_weight=np.full(100, -np.inf)))
    state, doubtful = engine.evaluate(gone, q)
    assert np.isneginf(state.score).all()
    assert not doubtful.any()
    half = engine.summarise(
        KeyBlock(x, log_sample_weight=np.where(np.arange(100) < 50, 0, -np.inf))
    )
    assert engine.evaluate(half, q)[0].index.max() < 50
    graded = engine.summarise(KeyBlock(x, log_sample_weight=x[:, 0]))
    assert engine.evaluate(graded, q)[1].all()


def test_recall_counts_true_neighbours():
    assert recall(np.array([[1, 2], [3, -1]]), np.array([[2, 5], [3, -1]])) == 2 / 3
    assert recall(np.array([[-1]]), np.array([[-1]])) == 1.0


THREE = TopK(3)


def need_for(kernel, reduction=THREE, **given):
    return Need(kernel, reduction, 10**5, 10**5, 20, 0, 1e-6, **given)


def test_what_is_refused(monkeypatch):
    need = need_for(Nearness("cosine") * ExcludeSelf())
    assert Approximate.refusal(need) is None
    refused = [
        need_for(Nearness(), library="cupy"),
        need_for(Nearness(), ArgBest()),
        need_for(Nearness("manhattan")),
        need_for(Nearness() * Causal()),
    ]
    assert all(Approximate.refusal(need) for need in refused)
    engine = Approximate.build(need)
    assert engine == Approximate("cosine", 3, exclude_self=True)
    assert Approximate.seconds(need) > 0
    assert engine.tile_bytes(need) < 2**28
    assert engine.summary_bytes(need) > 0
    monkeypatch.setattr("locpipe.engines.ranked.approximate.find_spec", lambda name: None)
    assert Approximate.refusal(need) == "needs faiss: pip install 'locpipe[approximate]'"
