"""Trees of the engine ``pruned``: order, boxes, totals, growing together; and what it plans."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock, row_slices
from locpipe.engines import dense
from locpipe.engines.base import Need, Spread
from locpipe.engines.pruned import Pruned
from locpipe.engines.pruned.forest import Forest, grow, join
from locpipe.engines.pruned.kd import order_in_blocks
from locpipe.reductions import LogMass, WeightedMean

SCALE = np.array([1.0, 0.5])


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
def test_blocks_are_full_and_in_their_boxes(n: int) -> None:
    rng = np.random.default_rng(n)
    points = np.round(rng.normal(size=(n, 2)), 1)  # ties
    blocks = order_in_blocks(points, SCALE, 64)
    np.testing.assert_array_equal(np.sort(blocks.order), np.arange(n))
    leaves = blocks.right < 0
    sizes = (blocks.stop - blocks.start)[leaves]
    assert sizes.sum() == n
    assert (sizes[:-1] == 64).all()
    for start, stop, low, high in zip(*blocks[2:], strict=True):
        inside = points[blocks.order[start:stop]]
        np.testing.assert_array_equal(low, inside.min(axis=0))
        np.testing.assert_array_equal(high, inside.max(axis=0))


def forest_of(n: int, seed: int, **attributes: Any) -> Forest:
    rng = np.random.default_rng(seed)
    k = KeyBlock(rng.normal(size=(n, 2)), values=rng.normal(size=(n, 1)), **attributes)
    return grow(k, SCALE, 64, squares=False, ids=True)


def check_totals(forest: Forest) -> None:
    """Every node knows the sums below it."""
    w = np.exp(forest.log_weight) if forest.log_weight.size else np.ones(forest.n_keys)
    for node in range(len(forest.right)):
        below = slice(forest.start[node], forest.stop[node])
        total = [w[below].sum(), (w[below] * abs(forest.values[0, below])).sum()]
        np.testing.assert_allclose(np.exp(forest.log_total[node]), total, rtol=1e-12)
        assert np.exp(forest.log_peak[node]) == pytest.approx(w[below].max())


def test_totals_and_peaks() -> None:
    log_w = np.random.default_rng(3).normal(size=500)
    check_totals(forest_of(500, 0))
    check_totals(forest_of(500, 1, log_sample_weight=log_w))


def test_small_trees_grow_together() -> None:
    parts = [forest_of(100, seed, start=100 * seed) for seed in range(13)]
    forest = reduce(lambda a, b: join(a, b, SCALE, 64), parts)
    assert forest.n_keys == 1300
    assert len(forest.roots) <= 4
    np.testing.assert_array_equal(forest.ids[forest.by_id], np.arange(1300))
    check_totals(forest)


def test_weights_and_none_side_by_side() -> None:
    heavy = forest_of(400, 1, log_sample_weight=np.full(400, 2.0))
    forest = join(forest_of(100, 0), heavy, SCALE, 64)
    assert len(forest.roots) == 2
    assert forest.total_weight == pytest.approx(100 + 400 * np.exp(2.0))
    check_totals(forest)
    nothing = forest_of(1, 2, log_sample_weight=np.array([-np.inf]))
    assert join(nothing, nothing, SCALE, 64).n_keys == 0
    assert join(nothing, forest, SCALE, 64).n_keys == 500


def test_many_keys_in_float32_and_any_threads() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 3)).astype(np.float32)
    k, kernel = KeyBlock(x, values=x), lp.kernels.Gaussian(0.1)
    engine, reduction = Pruned(1e-6, kernel, WeightedMean(3)), WeightedMean(3)
    summary = engine.summarise(k)
    q = QueryBlock(x[:512])
    blocks = [q.rows(rows) for rows in row_slices(512, 128)]
    alone = [engine.evaluate(summary, block)[0] for block in blocks]
    with ThreadPoolExecutor(2) as pool:
        together = [state for state, _ in pool.map(lambda b: engine.evaluate(summary, b), blocks)]
    for a, b in zip(alone, together, strict=True):
        for one, other in zip(a, b, strict=True):
            np.testing.assert_array_equal(one, other)
    mean = np.concatenate([reduction.finalize(state, np.nan)[0] for state in alone])
    (true,) = reduction.finalize(dense.fold(reduction, reduction.init(q), q, k, kernel), np.nan)
    sizes = replace(k, values=abs(x))
    (size,) = reduction.finalize(dense.fold(reduction, reduction.init(q), q, sizes, kernel), np.nan)
    assert (abs(mean - true) <= 1e-6 * size).all()


NEED = Need(lp.kernels.Gaussian(0.16), LogMass(), 400_000, 400_000, 3, 0, 1e-6)
SPREAD = Spread((-4.0,) * 3, (4.0,) * 3, (0.0,) * 3, (1.0,) * 3)


def test_seconds_fall_with_the_pairs_that_are_left() -> None:
    known = replace(NEED, spread=SPREAD)
    compact = replace(known, kernel=lp.kernels.Epanechnikov(0.1))
    heavy = replace(known, kernel=lp.kernels.Cauchy(0.16))
    seconds = [Pruned.seconds(need) for need in (compact, known, heavy, NEED)]
    assert seconds[0] < seconds[1] / 5 < seconds[2] / 15
    assert seconds[2] == pytest.approx(seconds[3])
    constant = replace(SPREAD, variance=(1.0, 0.0, 0.0))
    assert seconds[1] < Pruned.seconds(replace(NEED, spread=constant)) < seconds[3]


def test_what_it_holds_is_known_beforehand() -> None:
    engine = Pruned.build(NEED)
    assert engine == Pruned(1e-6, NEED.kernel, LogMass())
    assert engine.tile_bytes(NEED) < 2**18
    x = np.random.default_rng(0).normal(size=(5000, 3))
    forest = engine.summarise(KeyBlock(x))
    held = sum(array.nbytes for array in forest)
    assert 2 * held <= engine.summary_bytes(replace(NEED, n_keys=5000)) <= 4 * held
