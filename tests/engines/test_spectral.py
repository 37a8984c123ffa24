"""The engine `spectral` against `dense`: every row that it does not name doubtful is right."""

import pickle
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.engines.base import Need, Spread, SummaryEngine
from locpipe.engines.spectral import Spectral
from locpipe.kernels import Gaussian
from locpipe.kernels.normalized import Normalized
from locpipe.reductions import LogMass, WeightedMean


def spread_of(keys):
    there = np.ones(keys.n_rows, dtype=bool)
    if keys.log_sample_weight is not None:
        there = keys.log_sample_weight > -np.inf
    x = np.asarray(keys.data[there] if there.any() else keys.data, dtype=np.float64)
    columns = (x.min(axis=0), x.max(axis=0), x.mean(axis=0), x.var(axis=0))
    return Spread(*(tuple(map(float, column)) for column in columns))


def need_of(reduction, queries, keys, kernel, rtol=1e-6):
    n_outputs = 0 if keys.values is None else keys.values.shape[1]
    return Need(
        kernel=kernel,
        reduction=reduction,
        n_queries=queries.n_rows,
        n_keys=keys.n_rows,
        n_features=keys.data.shape[1],
        n_outputs=n_outputs,
        rtol=rtol,
        spread=spread_of(keys),
    )


def answer(need, queries, keys, n_blocks=1):
    """State and mask of the engine, keys in blocks."""
    engine = Spectral.build(need)
    bounds = np.linspace(0, keys.n_rows, n_blocks + 1).astype(int)
    blocks = [keys.rows(slice(a, b)) for a, b in pairwise(bounds)]
    summary = reduce(engine.merge, map(engine.summarise, blocks))
    return engine.evaluate(summary, queries)


def log_mass_errors(state, oracle):
    """Relative errors of the mass and of the sum of squares."""
    scale = np.exp(state.shift - oracle.shift)
    mass = state.mass * scale / oracle.mass
    squares = state.mass_of_squares * scale**2 / oracle.mass_of_squares
    return np.abs(mass - 1), np.abs(squares - 1)


def check(reduction, queries, keys, kernel, rtol=1e-6, n_blocks=1):
    """Refuse an error above rtol in a row that is not doubtful; the share of doubtful rows."""
    need = need_of(reduction, queries, keys, kernel, rtol)
    assert Spectral.refusal(need) is None
    state, doubtful = answer(need, queries, keys, n_blocks)
    assert not any(np.isnan(array).any() for array in state)
    assert (state.mass[doubtful] == 0).all()
    sure = queries.chosen(~doubtful)
    oracle = dense.fold(reduction, reduction.init(sure), sure, keys, kernel)
    state = type(state)(*(array[~doubtful] for array in state))
    if isinstance(reduction, LogMass):
        np.testing.assert_allclose(state.key_weight, oracle.key_weight, rtol=1e-12)
        for error in log_mass_errors(state, oracle):
            assert error.max(initial=0.0) <= rtol
        return doubtful.mean()
    sizes = replace(keys, values=np.abs(keys.values))
    of_sizes = dense.fold(reduction, reduction.init(sure), sure, sizes, kernel)
    mean, true, size = (reduction.finalize(s, np.nan)[0] for s in (state, oracle, of_sizes))
    assert (np.abs(mean - true) <= rtol * size * (1 + 1e-6)).all()
    return doubtful.mean()


@pytest.fixture
def rng():
    return np.random.default_rng(11)


BANDWIDTHS = {1: 0.1, 2: (0.2, 0.4), 3: 0.7}


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("rtol", [1e-6, 1e-10])
def test_masses_are_those_of_dense(rng, d, rtol):
    x = rng.normal(size=(1500, d))
    kernel = Normalized(Gaussian(BANDWIDTHS[d]))
    share = check(LogMass(), QueryBlock(x[:300]), KeyBlock(x), kernel, rtol, n_blocks=3)
    assert share <= (0.0 if rtol == 1e-6 else 0.1)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n_outputs", [1, 2, 5])
@pytest.mark.parametrize("signed", [False, True])
def test_means_are_those_of_dense(rng, d, n_outputs, signed):
    x = rng.normal(size=(1500, d))
    values = rng.normal(size=(1500, n_outputs)) * 10.0 ** np.arange(-2, n_outputs - 2)
    keys = KeyBlock(x, values=values if signed else np.abs(values))
    kernel = Gaussian(BANDWIDTHS[d])
    share = check(WeightedMean(n_outputs), QueryBlock(x[:300]), keys, kernel, n_blocks=2)
    assert share <= 0.02


def test_blocks_of_signed_and_unsigned_values_merge(rng):
    x = rng.normal(size=(900, 2))
    values = np.abs(rng.normal(size=(900, 2)))
    values[300:] *= -1
    values[600:] *= 1e6
    keys = KeyBlock(x, values=values)
    check(WeightedMean(2), QueryBlock(x[:300]), keys, Gaussian(0.3), n_blocks=3)


def test_sample_weights_of_any_size(rng):
    x = rng.normal(size=(900, 2))
    log_w = np.repeat([-690.0, 0.0, 690.0], 300) + rng.normal(size=900)
    log_w[::7] = -np.inf
    keys = KeyBlock(x, values=x, log_sample_weight=log_w)
    for reduction in (LogMass(), WeightedMean(2)):
        share = check(reduction, QueryBlock(x[600:]), keys, Gaussian(0.5), n_blocks=3)
        assert share < 0.1
    # Alone, the small ones are served as well.
    small = keys.rows(slice(0, 300))
    assert check(LogMass(), QueryBlock(x[:300]), small, Gaussian(0.5)) < 0.05


def test_keys_without_weight_count_for_nothing(rng):
    x = rng.normal(size=(50, 2))
    keys = KeyBlock(x, values=x, log_sample_weight=np.full(50, -np.inf))
    queries = QueryBlock(x)
    for reduction in (LogMass(), WeightedMean(2)):
        state, doubtful = answer(need_of(reduction, queries, keys, Gaussian()), queries, keys, 2)
        assert not doubtful.any()
        for array, first in zip(state, reduction.init(queries), strict=True):
            np.testing.assert_array_equal(array, first)


def test_absent_keys_may_lie_anywhere(rng):
    x = rng.normal(size=(400, 2))
    x[:20] = 1e300
    log_w = np.zeros(400)
    log_w[:20] = -np.inf
    keys = KeyBlock(x, values=x, log_sample_weight=log_w)
    assert check(LogMass(), QueryBlock(x[20:]), keys, Gaussian(0.5), n_blocks=40) == 0.0


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e12])
def test_far_from_the_origin(rng, offset):
    x = np.round(rng.normal(size=(500, 2)), 2) + offset
    check(LogMass(), QueryBlock(x), KeyBlock(x), Gaussian(0.5), 1e-10)


@pytest.mark.parametrize("h", [0.3, 3.0, 1e6, 1e150])
def test_one_point_a_constant_column_and_wide_bandwidths(rng, h):
    x = rng.normal(size=(300, 2))
    x[:, 1] = 7.0
    for data in (x, x[:1], np.repeat(x[:1], 300, axis=0)):
        keys = KeyBlock(data, values=data)
        for reduction in (LogMass(), WeightedMean(2)):
            assert check(reduction, QueryBlock(data), keys, Gaussian(h)) == 0.0


def test_integers_on_a_lattice(rng):
    x = rng.integers(0, 8, size=(2000, 2))
    keys = KeyBlock(x, values=(x % 2).astype(float))
    for reduction in (LogMass(), WeightedMean(2)):
        assert check(reduction, QueryBlock(x[:300]), keys, Gaussian(0.6)) == 0.0


def test_single_precision_and_columns_apart(rng):
    wide = rng.normal(size=(400, 5)).astype(np.float32)
    wide.flags.writeable = False
    x = wide[::2, 1:4:2]
    keys = KeyBlock(x, values=x)
    assert check(WeightedMean(2), QueryBlock(x), keys, Gaussian(0.5)) == 0.0


def test_columns_of_zeros_are_certain(rng):
    x = rng.normal(size=(400, 2))
    values = np.zeros((400, 3))
    values[:, 0] = x[:, 0]
    keys = KeyBlock(x, values=values)
    queries = QueryBlock(x)
    need = need_of(WeightedMean(3), queries, keys, Gaussian(0.5))
    state, doubtful = answer(need, queries, keys, n_blocks=2)
    assert not doubtful.any()
    assert not state.moment[:, 1:].any()


def test_queries_far_off_are_doubtful_and_near_ones_are_not(rng):
    x = rng.normal(size=(2000, 2))
    far = x[:50] + 0.3 * np.linspace(20, 1000, 50)[:, None]
    far[-1] = 1e308
    need = need_of(LogMass(), QueryBlock(far), KeyBlock(x), Gaussian(0.3))
    assert answer(need, QueryBlock(far), KeyBlock(x))[1].all()
    edge = np.asarray([x.max(axis=0) + 0.3, x.min(axis=0) - 0.9])
    check(LogMass(), QueryBlock(edge), KeyBlock(x), Gaussian(0.3))


def test_values_that_cancel_are_judged_by_their_sizes():
    x = np.linspace(0, 10, 2001)[:, None]
    keys = KeyBlock(x, values=np.where(np.arange(2001) % 2, 1.0, -1.0)[:, None])
    assert check(WeightedMean(1), QueryBlock(x), keys, Gaussian(0.5), 1e-10) < 0.01


def test_values_that_vanish_in_a_region_are_doubtful_there(rng):
    x = np.sort(rng.uniform(0, 100, size=(3000, 1)), axis=0)
    keys = KeyBlock(x, values=(x > 50).astype(float))
    share = check(WeightedMean(1), QueryBlock(x), keys, Gaussian(0.5))
    assert 0.3 < share < 0.6


def test_a_summary_serves_many_query_sets_and_travels(rng):
    x = rng.normal(size=(600, 2))
    need = need_of(LogMass(), QueryBlock(x), KeyBlock(x), Gaussian(0.5))
    engine = Spectral.build(need)
    assert isinstance(engine, SummaryEngine)
    assert len(pickle.dumps(engine)) < 2000
    summary = pickle.loads(pickle.dumps(engine.summarise(KeyBlock(x))))
    whole = engine.evaluate(summary, QueryBlock(x))[0]
    for part in (slice(0, 200), slice(200, 600)):
        state = engine.evaluate(summary, QueryBlock(x[part]))[0]
        np.testing.assert_allclose(state.mass, whole.mass[part], rtol=1e-11)


def test_no_keys_and_no_queries(rng):
    x = rng.normal(size=(30, 2))
    need = need_of(LogMass(), QueryBlock(x), KeyBlock(x), Gaussian(0.5))
    engine = Spectral.build(need)
    none = engine.summarise(KeyBlock(x[:0]))
    both = engine.merge(none, engine.summarise(KeyBlock(x)))
    state, doubtful = engine.evaluate(both, QueryBlock(x))
    assert not doubtful.any()
    assert (state.key_weight == 30).all()
    state, doubtful = engine.evaluate(both, QueryBlock(x[:0]))
    assert state.mass.shape == doubtful.shape == (0,)


REFUSALS = {
    "features": ({"n_features": 4}, "takes at most 3 features, got 4"),
    "kernel": ({"kernel": lp.kernels.Epanechnikov()}, "Gaussian kernel of Euclidean"),
    "metric": ({"kernel": Gaussian(metric="manhattan")}, "Gaussian kernel of Euclidean"),
    "none": ({"kernel": None}, "Gaussian kernel of Euclidean"),
    "mask": ({"kernel": Gaussian() * lp.masks.ExcludeSelf()}, "takes no masks"),
    "rows": ({"attributes": frozenset({"keys.bandwidth"})}, "no bandwidths per row"),
    "reduction": ({"reduction": lp.reductions.TopK(3)}, "got TopK"),
    "library": ({"library": "cupy"}, "takes NumPy arrays, got cupy"),
    "spread": ({"spread": None}, "call lp.prepare(keys)"),
    "rtol": ({"rtol": 1e-13}, "keeps an rtol of 2e-11 at best, got 1e-13"),
    "grid": ({"kernel": Gaussian(1e-6)}, "too fine a grid"),
    "tiny": ({"kernel": Gaussian(1e-150)}, "too fine a grid"),
}


@pytest.mark.parametrize(("change", "clause"), REFUSALS.values(), ids=list(REFUSALS))
def test_refusals_are_clauses(rng, change, clause):
    x = rng.normal(size=(30, 2))
    need = need_of(LogMass(), QueryBlock(x), KeyBlock(x), Gaussian(0.5))
    assert Spectral.refusal(need) is None
    assert clause in Spectral.refusal(replace(need, **change))


def test_what_rounding_would_spoil_is_refused(rng):
    x = np.asarray([[0.0], [1e5]])
    need = need_of(LogMass(), QueryBlock(x), KeyBlock(x), Gaussian(1.0))
    assert Spectral.refusal(need) is None
    assert "rounding" in Spectral.refusal(replace(need, rtol=1e-10))


def test_seconds_and_bytes_grow_with_the_work(rng):
    x = rng.normal(size=(300, 2))
    need = need_of(LogMass(), QueryBlock(x), KeyBlock(x), Gaussian(0.05))
    more = replace(need, n_keys=10**7, n_queries=10**7)
    assert 0 < Spectral.seconds(need) < Spectral.seconds(more) < 60
    finer = replace(need, kernel=Gaussian(0.005))
    for what in ("tile_bytes", "summary_bytes"):
        coarse, fine = (getattr(Spectral.build(n), what)(n) for n in (need, finer))
        assert 0 < coarse < fine
    assert 0 < Spectral.build(need).query_bytes(need) < 1000


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_anything_is_as_dense_where_it_is_sure(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    d, n = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 200))
    x = rng.normal(size=(n, d)) * data.draw(st.sampled_from([1e-100, 1.0, 1e100]))
    if data.draw(st.booleans()):
        x = np.round(x)
    size = np.abs(x).max() or 1.0
    x = x + size * data.draw(st.sampled_from([0.0, -1e3]))
    h = size * rng.uniform(0.1, 2, size=d) * data.draw(st.sampled_from([1.0, 1e3]))
    log_w = rng.normal(size=n) * data.draw(st.sampled_from([0.0, 1.0, 200.0]))
    values = rng.normal(size=(n, data.draw(st.integers(1, 3))))
    values *= data.draw(st.sampled_from([1e-300, 1.0, 1e290]))
    values = data.draw(st.sampled_from([np.abs, np.negative, np.round]))(values)
    keys = KeyBlock(x, values=values, log_sample_weight=log_w)
    queries = QueryBlock(x[rng.integers(0, n, size=60)] + rng.normal(size=(60, d)) * h)
    rtol = data.draw(st.sampled_from([1e-4, 1e-6, 1e-10]))
    reduction = data.draw(st.sampled_from([LogMass(), WeightedMean(values.shape[1])]))
    n_blocks = data.draw(st.integers(1, 3))
    check(reduction, queries, keys, Gaussian(tuple(h)), rtol, n_blocks)
