"""The engine ``pruned`` against the reference: masses and means within rtol, whatever the data."""

import pickle
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock, row_slices
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.pruned import Pruned
from locpipe.kernels import Kernel
from locpipe.reductions import LocalMoments, LogMass, Reduction, WeightedMean

KERNELS = {
    "gaussian": lp.kernels.Gaussian(0.3),
    "exponential": lp.kernels.Exponential(0.1),
    "logistic": lp.kernels.Logistic(0.1),
    "student": lp.kernels.StudentT(3.0, 0.3),
    "cauchy": lp.kernels.Cauchy(0.3),
    "epanechnikov": lp.kernels.Epanechnikov(0.5),
    "biweight": lp.kernels.Biweight(0.5),
    "triweight": lp.kernels.Triweight(0.5),
    "tricube": lp.kernels.Tricube(0.5),
    "triangular": lp.kernels.Triangular(0.5),
    "uniform": lp.kernels.Uniform(0.5),
    "cosine": lp.kernels.Cosine(0.5),
}


def state_of(engine: Pruned, q: QueryBlock, k: KeyBlock, cuts: tuple[int, ...] = ()) -> Any:
    """State from summaries of the parts between the cuts."""
    edges = [0, *cuts, k.n_rows]
    parts = [k.rows(slice(a, b)) for a, b in pairwise(edges)]
    state, doubtful = engine.evaluate(reduce(engine.merge, map(engine.summarise, parts)), q)
    assert not doubtful.any()
    assert not any(np.isnan(array).any() for array in state)
    return state


def dense_state(reduction: Reduction, q: QueryBlock, k: KeyBlock, kernel: Kernel) -> Any:
    return dense.fold(reduction, reduction.init(q), q, k, kernel)


def check(
    kernel: Kernel,
    q: QueryBlock,
    k: KeyBlock,
    rtol: float = 1e-6,
    cuts: tuple[int, ...] = (),
) -> None:
    """Masses, squares and means of the engine within rtol of the reference."""
    check_mass(kernel, q, k, rtol, cuts)
    if k.values is not None:
        check_mean(kernel, q, k, rtol, cuts)


def check_mass(
    kernel: Kernel, q: QueryBlock, k: KeyBlock, rtol: float, cuts: tuple[int, ...]
) -> None:
    reduction = LogMass()
    found = reduction.finalize(state_of(Pruned(rtol, kernel, reduction), q, k, cuts), np.nan)
    true = reduction.finalize(dense_state(reduction, q, k, kernel), np.nan)
    some = true[0] > -np.inf
    np.testing.assert_array_equal(found[0] > -np.inf, some)
    error = abs(found[0][some] - true[0][some])
    assert (error <= rtol * np.maximum(1, abs(true[0][some]))).all()
    np.testing.assert_allclose(found[1], true[1], rtol=3 * rtol)
    np.testing.assert_allclose(found[2], true[2], rtol=1e-12)


def check_mean(
    kernel: Kernel, q: QueryBlock, k: KeyBlock, rtol: float, cuts: tuple[int, ...]
) -> None:
    reduction = WeightedMean(k.values.shape[1])
    (found,) = reduction.finalize(state_of(Pruned(rtol, kernel, reduction), q, k, cuts), 0.0)
    (true,) = reduction.finalize(dense_state(reduction, q, k, kernel), 0.0)
    sizes = replace(k, values=abs(k.values))
    (size,) = reduction.finalize(dense_state(reduction, q, sizes, kernel), 0.0)
    counts = np.maximum(size, 1e-200 * abs(k.values).max(axis=0))
    assert (abs(found - true) <= rtol * counts).all()


def clustered(rng: np.random.Generator, n: int, d: int) -> Any:
    centres = rng.normal(size=(5, d)) * 3
    return centres[rng.integers(0, 5, n)] + 0.2 * rng.normal(size=(n, d))


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_every_profile_at_both_accuracies(kernel: Kernel) -> None:
    rng = np.random.default_rng(0)
    x = clustered(rng, 1500, 3)
    k = KeyBlock(x, values=rng.normal(size=(1500, 2)))
    q = QueryBlock(np.concatenate([x[:300], rng.normal(size=(50, 3)) * 5]))
    check(kernel, q, k, 1e-6)
    check(kernel, q, k, 1e-10)


def _sizes(dtype: type) -> Any:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1200, 3)).astype(dtype)
    return x, rng.normal(size=(1200, 1)).astype(dtype)


def test_float32_rows_far_from_the_origin() -> None:
    x, v = _sizes(np.float32)
    moved = (x + np.float32(1e6)).astype(np.float32)  # steps of 1/16: many ties
    check(lp.kernels.Gaussian(0.5), QueryBlock(moved[:200]), KeyBlock(moved, values=v))
    far = x.astype(np.float64) + 1e6
    check(lp.kernels.Gaussian(0.3), QueryBlock(far[:200]), KeyBlock(far, values=v), 1e-10)


def test_rows_far_off_all_keys() -> None:
    x, v = _sizes(np.float64)
    q = QueryBlock(np.concatenate([x[:5], 10.0 ** np.arange(1, 5)[:, None] * np.ones(3)]))
    for kernel in (lp.kernels.Gaussian(0.1), lp.kernels.Exponential(0.01), lp.kernels.Cauchy(0.1)):
        check(kernel, q, KeyBlock(x, values=v), 1e-6)


def test_sample_weights_of_any_size() -> None:
    x, v = _sizes(np.float64)
    rng = np.random.default_rng(2)
    log_w = rng.uniform(-600, 600, 1200)
    log_w[::7] = -np.inf
    k = KeyBlock(x, values=v, log_sample_weight=log_w)
    for kernel in (KERNELS["gaussian"], KERNELS["epanechnikov"]):
        check(kernel, QueryBlock(x[:100]), k)
        check(kernel, QueryBlock(x[:100]), replace(k, log_sample_weight=log_w / 100))


def test_values_that_are_nothing_nearby() -> None:
    x, _ = _sizes(np.float64)
    near = x[:, 0] < 0.5
    for small in (0.0, 1e-30, 1e-200):
        v = np.stack([np.where(near, small, 1e6), np.ones(1200)], axis=1)
        for kernel in (lp.kernels.Gaussian(0.05), KERNELS["epanechnikov"]):
            check(kernel, QueryBlock(x[:200]), KeyBlock(x, values=v))


def test_values_that_cancel() -> None:
    x, _ = _sizes(np.float64)
    twice = np.concatenate([x, x])
    v = np.repeat([[1.0], [-1.0]], 1200, axis=0)
    check(lp.kernels.Gaussian(0.05), QueryBlock(x[:100]), KeyBlock(twice, values=v))


@pytest.mark.parametrize("kernel", [KERNELS["gaussian"], KERNELS["uniform"]], ids=["soft", "flat"])
def test_no_row_is_its_own_neighbour(kernel: Kernel) -> None:
    x, v = _sizes(np.float64)
    masked = kernel * lp.masks.ExcludeSelf()
    check(masked, QueryBlock(x), KeyBlock(x, values=v), 1e-10)
    folds = np.arange(1200) % 5
    check(masked, QueryBlock(x, ids=folds), KeyBlock(x, values=v, ids=folds), cuts=(100, 700))


def test_degenerate_keys() -> None:
    x, v = _sizes(np.float64)
    kernel, q = KERNELS["gaussian"], QueryBlock(x[:40])
    check(kernel, q, KeyBlock(x[:1], values=v[:1]))
    check(kernel, q, KeyBlock(np.repeat(x[:1], 900, axis=0), values=v[:900]))
    check(kernel, q, KeyBlock(x * [1, 0, 0], values=v))
    check(KERNELS["epanechnikov"], q, KeyBlock(x[:1] + 50, values=v[:1]))


def test_no_keys_of_weight_and_no_queries() -> None:
    x, v = _sizes(np.float64)
    k = KeyBlock(x, values=v, log_sample_weight=np.full(1200, -np.inf))
    state = state_of(Pruned(1e-6, KERNELS["gaussian"], WeightedMean(1)), QueryBlock(x[:3]), k)
    assert (state.mass == 0).all()
    assert (state.shift == -np.inf).all()
    some = replace(k, log_sample_weight=None)
    empty = state_of(Pruned(1e-6, KERNELS["gaussian"], LogMass()), QueryBlock(x[:0]), some)
    assert empty.mass.shape == (0,)


def test_edges_of_a_lattice_are_those_of_the_reference() -> None:
    x = np.stack(np.meshgrid(*[np.arange(12) * 0.1] * 2), axis=-1).reshape(-1, 2)
    k = KeyBlock(x, values=x)
    for kernel in (lp.kernels.Uniform(0.3), lp.kernels.Triangular(0.1), lp.kernels.Uniform(0.5)):
        check(kernel, QueryBlock(x), k)


def test_a_density_and_bandwidths_per_feature() -> None:
    x, v = _sizes(np.float64)
    kernel = lp.kernels.Gaussian((0.1, 0.5, 2.0))
    log_density = lp.log_density(x[:50], x, kernel)
    engine = Pruned(1e-10, replace(kernel), LogMass())
    log_mass = LogMass().finalize(state_of(engine, QueryBlock(x[:50]), KeyBlock(x)), np.nan)[0]
    constant = kernel.lower(3).log_normalizer
    assert constant is not None
    np.testing.assert_allclose(log_mass + constant - np.log(1200), log_density, rtol=1e-9)
    check(kernel, QueryBlock(x[:100]), KeyBlock(x, values=v))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 700),
    d=st.sampled_from([1, 3, 6]),
    kernel=st.sampled_from([KERNELS["gaussian"], KERNELS["epanechnikov"]]),
    cuts=st.sets(st.integers(1, 699), max_size=3),
    weighted=st.booleans(),
    rtol=st.sampled_from([1e-6, 1e-10]),
)
def test_any_keys_in_any_parts(
    seed: int, n: int, d: int, kernel: Kernel, cuts: set[int], weighted: bool, rtol: float
) -> None:
    rng = np.random.default_rng(seed)
    x = clustered(rng, n, d) * 10.0 ** rng.uniform(-2, 2)
    log_w = rng.normal(size=n) * 3 if weighted else None
    k = KeyBlock(x, values=rng.standard_cauchy((n, 2)), log_sample_weight=log_w)
    q = QueryBlock(np.concatenate([x[:60], rng.normal(size=(5, d)) * 20]))
    check(kernel, q, k, rtol, tuple(sorted(c for c in cuts if c < n)))


def test_blocks_of_queries_and_order_of_parts_do_not_matter() -> None:
    x, v = _sizes(np.float64)
    k, engine = KeyBlock(x, values=v), Pruned(1e-10, KERNELS["gaussian"], WeightedMean(1))
    parts = [engine.summarise(k.rows(rows)) for rows in row_slices(1200, 300)]
    whole = engine.evaluate(reduce(engine.merge, parts), QueryBlock(x))[0]
    mean = whole.moment / whole.mass[:, None]
    again = engine.evaluate(engine.merge(parts[3], reduce(engine.merge, parts[:3])), QueryBlock(x))
    np.testing.assert_allclose(again[0].moment / again[0].mass[:, None], mean, rtol=1e-9)
    part = engine.evaluate(engine.summarise(k), QueryBlock(x[100:110]))[0]
    np.testing.assert_allclose(part.moment / part.mass[:, None], mean[100:110], rtol=1e-9)


def test_a_summary_travels() -> None:
    x, v = _sizes(np.float32)
    engine = Pruned(1e-6, KERNELS["gaussian"], WeightedMean(1))
    summary = engine.summarise(KeyBlock(x, values=v))
    copy = pickle.loads(pickle.dumps(summary))
    one, other = (
        pickle.loads(pickle.dumps(engine)).evaluate(s, QueryBlock(x))[0] for s in (summary, copy)
    )
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    assert summary.data.dtype == np.float32


NEED = Need(KERNELS["gaussian"], LogMass(), 10_000, 10_000, 3, 0, 1e-6)


def test_what_it_refuses() -> None:
    assert Pruned.refusal(NEED) is None
    moments = LocalMoments(1, (1.0, 1.0, 1.0))
    refused = {
        "features": replace(NEED, n_features=7),
        "LocalMoments": replace(NEED, reduction=moments),
        "bandwidths of rows": replace(NEED, attributes=frozenset({"keys.bandwidth"})),
        "Euclidean": replace(NEED, kernel=lp.kernels.Gaussian(1.0, metric="manhattan")),
        "ExcludeSelf": replace(NEED, kernel=KERNELS["gaussian"] * lp.masks.Causal()),
        "radial kernel": replace(NEED, kernel=lp.kernels.DotProduct()),
        "NumPy": replace(NEED, library="cupy"),
    }
    for word, need in refused.items():
        assert word in (Pruned.refusal(need) or ""), word
