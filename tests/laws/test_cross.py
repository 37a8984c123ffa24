"""Kernels x reductions x strategies x array kinds, against plain float64 NumPy.

Each example draws a reduction, a strategy, chunks, a dtype, an offset and sample weights.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import locpipe as lp
from locpipe import graph, kernels
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.kernels import (
    DotProduct,
    Epanechnikov,
    Gaussian,
    Nearest,
    Normalized,
    Precomputed,
    StudentT,
    Tricube,
    Uniform,
)
from locpipe.reductions import (
    ArgBest,
    Gather,
    LocalMoments,
    LogMass,
    TopK,
    WeightedMean,
    WeightedSum,
    WeightedVariance,
)
from locpipe.store import ZarrKeys
from locpipe.testing.kinds import as_keys, as_queries
from locpipe.testing.reference_kernels import PROFILES, kernel_reference
from locpipe.testing.reference_reductions import reduction_reference
from locpipe.testing.strategies import Case, random_chunks, row_attributes, seeds

N_QUERIES, N_KEYS = 9, 40
PAIRS = np.random.default_rng(0).uniform(-1, 2, (N_QUERIES, N_KEYS)).clip(0)
KERNELS = {
    **{name: getattr(kernels, name)(1.3) for name in PROFILES},
    "StudentT": StudentT(3.0, 0.7),
    "per feature": Epanechnikov((0.9, 2.5)),
    "manhattan": Tricube((1.0, 2.5), metric="manhattan"),
    "cosine": Gaussian(0.3, metric="cosine"),
    "nan-euclidean": Gaussian(0.8, metric="nan-euclidean"),
    "haversine": Uniform(1.2, metric="haversine"),
    "Normalized": Normalized(Gaussian(0.9)),
    "DotProduct": DotProduct(),
    "Precomputed": Precomputed(PAIRS),
    "Causal": lp.masks.Causal(3),
    "Window": lp.masks.Window(5),
    "ExcludeSelf": lp.masks.ExcludeSelf(),
    "product": Gaussian(0.9) * Epanechnikov(2.0) * lp.masks.ExcludeSelf(),
    "bilateral": Gaussian(0.9) * Tricube(2.5).on(query="values", key="values"),
    "Nearest": Nearest(5),
    "Nearest by distance": Nearest(5, "distance"),
    "Nearest profile": Nearest(7, Tricube(1.2)) * lp.masks.ExcludeSelf(),
}
REDUCTIONS = (
    LogMass(),
    WeightedMean(2),
    WeightedVariance(2),
    WeightedSum(2),
    TopK(4),
    TopK(60),
    ArgBest(),
    Gather(4, 2, 2),
    LocalMoments(1, (0.5, 2.0), 2),
)
MOVES = ("euclidean", "manhattan")
"""Metrics under which a common offset changes nothing."""


@dataclass(frozen=True)
class Rows:
    """Whole queries and keys, as the oracle sees them."""

    q: QueryBlock
    k: KeyBlock
    rng: np.random.Generator


def missing(kernel):
    return kernel.lower(2).metric == "nan-euclidean"


def make_rows(kernel, case, dtype, offset, weighted):
    rng = case.rng()
    metric = kernel.lower(2).metric
    offset = offset if metric in MOVES else 0.0
    data = [rng.normal(size=(n, 2)) + offset for n in (N_QUERIES, N_KEYS)]
    if case.ties:
        data[1][N_KEYS // 2 :] = data[1][: N_KEYS - N_KEYS // 2]
        data[0][:3] = data[1][:3]
    if missing(kernel):
        data = [np.where(rng.random(rows.shape) < 0.3, np.nan, rows) for rows in data]
    if metric == "haversine":  # latitudes lie between the poles
        data = [np.stack([np.arctan(rows[:, 0]), rows[:, 1]], axis=1) for rows in data]
    data = [rows.astype(dtype).astype(np.float64) for rows in data]
    rows = [row_attributes(rng, n) for n in (N_QUERIES, N_KEYS)]
    if case.bandwidths:
        for row in rows:
            row["bandwidth"] = rng.uniform(0.5, 2, len(row["ids"]))
    weight = np.where(rng.random(N_KEYS) < 0.2, 0.0, rng.uniform(0.1, 5, N_KEYS))
    with np.errstate(divide="ignore"):
        log_weight = np.log(weight) if weighted else None
    k = KeyBlock(data[1], log_sample_weight=log_weight, **rows[1])
    return Rows(QueryBlock(data[0], **rows[0]), k, rng)


def in_memory(kernel, rows, dtype, tmp, n_threads=1):
    return (
        rows,
        partial(lp.fold, n_threads=n_threads),
        as_queries(narrow(rows.q, dtype)),
        as_keys(narrow(rows.k, dtype)),
    )


def strict(kernel, rows, dtype, tmp):
    q, k = narrow(rows.q, dtype), narrow(rows.k, dtype)
    return rows, lp.fold, as_queries(q, "strict"), as_keys(k, "strict")


def stream(kernel, rows, dtype, tmp):
    queries = as_queries(narrow(rows.q, dtype), "dask", random_chunks(rows.rng, N_QUERIES))
    return rows, lp.fold, queries, as_keys(narrow(rows.k, dtype))


def tree(kernel, rows, dtype, tmp):
    queries = as_queries(narrow(rows.q, dtype), *chunked(rows, N_QUERIES))
    keys = as_keys(narrow(rows.k, dtype), "dask", random_chunks(rows.rng, N_KEYS))
    return rows, lp.fold, queries, keys


def store(kernel, rows, dtype, tmp):
    """Keys in a Zarr group; it holds no ids and times."""
    q, k = (replace(block, ids=None, time=None) for block in (rows.q, rows.k))
    rows = replace(rows, q=q, k=k)
    arrays = {"data": narrow(k, dtype).data, "values": k.values, "bandwidth": k.bandwidth}
    if k.log_sample_weight is not None:
        arrays["sample_weight"] = np.exp(k.log_sample_weight)
    given = {name: array for name, array in arrays.items() if array is not None}
    group, step = zarr.open_group(tmp, mode="w"), int(rows.rng.integers(1, N_KEYS + 1))
    for name, array in given.items():
        group.create_array(name, data=array, chunks=(step, *array.shape[1:]))
    queries = as_queries(narrow(q, dtype), *chunked(rows, N_QUERIES))
    return rows, lp.fold, queries, ZarrKeys(tmp, **{name: name for name in given})


def mirror(kernel, rows, dtype, tmp):
    """The queries are the keys, in memory or in Dask chunks."""
    k = narrow(rows.k, dtype)
    q = QueryBlock(k.data, bandwidth=k.bandwidth, ids=k.ids, time=k.time, values=k.values)
    rows = replace(rows, q=replace(q, data=rows.k.data))
    kind, chunks = chunked(rows, N_KEYS)
    keys = as_keys(k, kind, chunks)
    names = ("data", "bandwidth", "ids", "time", "values")
    return rows, lp.fold, lp.Queries(**{name: getattr(keys, name) for name in names}), keys


def summary(kernel, rows, dtype, tmp):
    """An engine that summarises: it keeps the keys, and is unsure of every third query."""

    def run(reduction, queries, keys, kernel):
        return graph.fold(reduction, queries, keys, kernel, engine=KeepsAll(reduction, kernel))

    queries = as_queries(narrow(rows.q, dtype), *chunked(rows, N_QUERIES))
    return rows, run, queries, as_keys(narrow(rows.k, dtype), *chunked(rows, N_KEYS))


@dataclass(frozen=True)
class KeepsAll:
    reduction: object
    kernel: object

    def summarise(self, k):
        return [k]

    def merge(self, a, b):
        return a + b

    def evaluate(self, summary, q):
        state = self.reduction.init(q)
        for k in summary:
            state = dense.fold(self.reduction, state, q, k, self.kernel)
        return state, np.arange(q.n_rows) % 3 == 0


def chunked(rows, n_rows):
    """NumPy or Dask, as the case's generator has it."""
    dask = bool(rows.rng.random() < 0.5)
    return ("dask", random_chunks(rows.rng, n_rows)) if dask else ("numpy", None)


def narrow(block, dtype):
    return replace(block, data=block.data.astype(dtype))


STRATEGIES = {
    "memory": in_memory,
    "threads": partial(in_memory, n_threads=2),
    "strict": strict,
    "stream": stream,
    "tree": tree,
    "store": store,
    "mirror": mirror,
    "summary": summary,
}


def allowed(kernel, strategy):
    """Precomputed weights are a NumPy matrix of (queries, keys), and go by place."""
    if missing(kernel) and strategy == "summary":  # engines are asked beneath the functions
        return False
    return not (isinstance(kernel, Precomputed) and strategy in ("strict", "mirror", "summary"))


def keeps_coordinates(reduction):
    return isinstance(reduction, LocalMoments | Gather)


def assert_equal_to_oracle(reduction, actual, log_w, q, k, rtol):
    expected = reduction_reference(reduction, log_w, q, k)
    actual = [np.asarray(a.compute(scheduler="sync") if hasattr(a, "dask") else a) for a in actual]
    magnitudes = magnitudes_of(reduction, log_w, q, k)
    for x, y, size in zip(actual, expected, magnitudes, strict=True):
        assert x.shape == y.shape
        if y.dtype.kind == "i":
            continue  # judged by their log weights: rounding may swap keys that are equally near
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        with np.errstate(invalid="ignore"):
            near = np.abs(x - y) <= rtol * np.maximum(size, 1e-280)
        assert (near | (x == y) | np.isnan(x)).all(), np.abs(x - y).max()
    if isinstance(reduction, TopK | Gather | ArgBest):
        check_keys(actual, log_w, k, rtol)


def magnitudes_of(reduction, log_w, q, k):
    """What an error is measured against: the same sums of absolute terms."""
    positive = replace(k, values=np.abs(k.values))
    expected = reduction_reference(reduction, log_w, q, k)
    if isinstance(reduction, LogMass | TopK | ArgBest):
        return [np.maximum(1, np.abs(x)) for x in expected]
    if isinstance(reduction, WeightedVariance):
        squares = reduction_reference(WeightedMean(2), log_w, q, replace(k, values=k.values**2))
        return [reduction_reference(reduction, log_w, q, positive)[0], squares[0]]
    if isinstance(reduction, Gather):
        score, index, data, values = expected
        return [
            np.maximum(1, np.abs(score)),
            index,
            np.full(data.shape, np.inf),
            np.full(values.shape, np.inf),
        ]
    if isinstance(reduction, LocalMoments):
        reach = np.abs(k.data[None] - q.data[:, None]).max() / min(reduction.scale)
        size = max(1.0, reach) ** (2 * reduction.order) * k.n_rows
        return [
            np.maximum(1, np.abs(expected[0])),
            np.full(expected[1].shape, size),
            np.full(expected[2].shape, size * 10),
        ]
    return reduction_reference(reduction, log_w, q, positive)


def check_keys(actual, log_w, k, rtol):
    """Each index names a key of the score that stands beside it, none twice."""
    score, index = (a.reshape(len(a), -1) for a in actual[:2])
    found = np.take_along_axis(log_w, np.maximum(index, 0), axis=1)
    np.testing.assert_allclose(np.where(index < 0, -np.inf, found), score, rtol=rtol, atol=rtol)
    for row in index:
        assert len(set(row[row >= 0])) == (row >= 0).sum()
    if len(actual) == 4:
        some = index >= 0
        np.testing.assert_allclose(actual[2][some], k.data[index[some]], rtol=1e-15)
        np.testing.assert_array_equal(actual[3][some], k.values[index[some]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("keys"))


@pytest.mark.parametrize("name", KERNELS)
@given(data=st.data())
@settings(max_examples=max(3, settings().max_examples // 7), report_multiple_bugs=False)
def test_any_fold_equals_the_oracle(name, folder, data):
    kernel, draw = KERNELS[name], data.draw
    case = Case(draw(seeds()), N_QUERIES, N_KEYS, draw(st.booleans()), draw(st.booleans()))
    dtype = draw(st.sampled_from((np.float64, np.float32)))
    offset = draw(st.sampled_from((0.0, 1e3, 1e6)))
    strategy = draw(st.sampled_from([s for s in STRATEGIES if allowed(kernel, s)]))
    reduction = draw(
        st.sampled_from([r for r in REDUCTIONS if not (missing(kernel) and keeps_coordinates(r))])
    )
    rows = make_rows(kernel, case, dtype, offset, draw(st.booleans()))
    rows, run, queries, keys = STRATEGIES[strategy](kernel, rows, dtype, folder)
    log_w = kernel_reference(kernel, rows.q, rows.k)
    if rows.k.log_sample_weight is not None:
        log_w = log_w + rows.k.log_sample_weight
    # Coordinates at an offset of 1e6 are themselves known to 1e-10 only, once scaled.
    rtol = 1e-9 + 1e-13 * offset
    actual = run(reduction, queries, keys, kernel)
    assert_equal_to_oracle(reduction, actual, log_w, rows.q, rows.k, rtol)
