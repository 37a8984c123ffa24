"""`Nearest` and `Precomputed` through the public functions: chunks, stores, sparse, policies."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
import zarr
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.errors import InputError
from locpipe.kernels import Epanechnikov, Gaussian, Nearest, Precomputed
from locpipe.kernels.masks import Causal, ExcludeSelf
from locpipe.store.sources import ZarrPairs
from locpipe.testing import assert_close, no_compute

KERNELS = [
    Nearest(3),
    Nearest(3, "distance"),
    Nearest(5, "tricube", "manhattan"),
    Nearest(2) * ExcludeSelf(),
    Nearest(2, "distance") * ExcludeSelf() * Causal(3),
    Nearest(4) * Gaussian(0.7),
    Nearest(4).on("values", "values"),
]


def lattice(n=23, seed=0):
    """Rows with many ties and duplicates."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, (n, 2)).astype(float), rng.normal(size=(n, 2))


def chunked(x, step):
    return da.from_array(x, chunks=(step, *x.shape[1:]))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("chunks", [(4, 7), (23, 5), (6, 23)])
def test_chunks_do_not_matter(kernel, chunks):
    x, v = lattice()
    expected = lp.local_mean(lp.Queries(x, values=v), lp.Keys(x, values=v), kernel=kernel)
    with no_compute():
        q = lp.Queries(chunked(x, chunks[0]), values=chunked(v, chunks[0]))
        k = lp.Keys(chunked(x, chunks[1]), values=chunked(v, chunks[1]))
        lazy = lp.local_mean(q, k, kernel=kernel)
        keys_in_memory = lp.local_mean(q, lp.Keys(x, values=v), kernel=kernel)
    for result in (lazy, keys_in_memory):
        assert_close(result.compute(scheduler="sync"), expected, 1e-13)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 7]))
def test_keys_without_weight_are_not_there(seed, k):
    rng = np.random.default_rng(seed)
    (x, v), q = lattice(12, seed), rng.normal(size=(5, 2))
    w = rng.uniform(0.5, 2, 12) * (np.arange(12) % 3 > 0)
    there = w > 0
    mean = lp.local_mean(q, x, v, Nearest(k), sample_weight=w)
    expected = lp.local_mean(q, x[there], v[there], Nearest(k), sample_weight=w[there])
    assert_close(mean, expected, 1e-13)


def test_prediction_at_a_training_row():  # D08
    x, y = [[0.0], [0.0], [2.0], [5.0]], [4.0, 8.0, 100.0, -100.0]
    assert lp.local_mean([[0.0]], x, y, Nearest(3, "distance")).tolist() == [6.0]
    lazy = lp.local_mean([[0.0]], da.from_array(np.array(x), chunks=1), y, Nearest(3, "distance"))
    assert lazy.compute(scheduler="sync").tolist() == [6.0]


def test_the_only_neighbour_at_the_edge_of_its_own_support():
    kernel = Nearest(1, "tricube")
    assert np.isnan(lp.local_mean([1.0], [0.0, 5.0], [3.0, 7.0], kernel)).all()
    near = lp.local_mean([1.0], [0.0, 5.0], [3.0, 7.0], kernel, empty="nearest")
    assert near.tolist() == [3.0]


def test_beyond_the_support_the_nearest_counts():
    q, x, y = [0.0, 50.0], [0.0, 1.0, 2.0], [1.0, 2.0, 3.0]
    assert lp.local_mean(q, x, y, Epanechnikov(), empty="nearest").tolist() == [1.0, 3.0]
    keys = lp.Keys(x, y, bandwidth=[40.0, 1.0, 1.0])
    assert lp.local_mean(q, keys, kernel=Epanechnikov(), empty="nearest").tolist() == [1.0, 1.0]


def weights(n=11, m=9):
    rng = np.random.default_rng(1)
    return rng.uniform(0.1, 1, (n, m)) * (rng.random((n, m)) < 0.6), rng.normal(size=(m, 2))


@pytest.fixture
def kinds(tmp_path):
    w, _ = weights()
    zarr.save_array(str(tmp_path / "w.zarr"), w)
    return {
        "numpy": w,
        "dask": da.from_array(w, chunks=(4, 5)),
        "zarr": ZarrPairs(tmp_path / "w.zarr", ""),
        "sparse": scipy.sparse.coo_array(w),
    }


@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr", "sparse"])
@pytest.mark.parametrize("rows", ["memory", "dask queries", "dask"])
def test_weights_of_any_kind(kinds, kind, rows):
    w, v = weights()
    expected = w @ v / w.sum(1, keepdims=True)
    q, k = np.zeros((11, 1)), np.zeros((9, 1))
    q = q if rows == "memory" else chunked(q, 3)
    k = chunked(k, 2) if rows == "dask" else k
    with no_compute():
        mean = lp.local_mean(q, k, v, Precomputed(kinds[kind]))
    mean = mean if isinstance(mean, np.ndarray) else mean.compute(scheduler="sync")
    assert_close(mean, expected)


@pytest.mark.parametrize("kind", ["numpy", "dask", "zarr", "sparse"])
def test_weights_have_the_shape_of_the_pairs(kinds, kind):
    with pytest.raises(InputError, match=r"shape .*\(10, 9\), got \(11, 9\)"):
        lp.log_mass(np.zeros(10), np.zeros(9), Precomputed(kinds[kind]) * Gaussian())


@pytest.mark.parametrize("weights", ["uniform", "distance", "gaussian"])
def test_where_fewer_keys_are_allowed_all_are_neighbours(weights):
    x, y = [0.0, 1.0, 3.0, 9.0], [1.0, 2.0, 6.0, 8.0]
    expected = lp.local_mean([0.5], x[:3], y[:3], Nearest(3, weights))
    there = [1.0, 1.0, 1.0, 0.0]
    some = lp.local_mean([0.5], x, y, Nearest(4, weights), sample_weight=there)
    assert_close(some, expected, 0)
    assert_close(lp.local_mean([0.5], x, y, Nearest(4, weights) * Causal(2)), expected, 0)


def test_there_are_as_many_keys_as_neighbours_asked_for():
    x, y = np.array([[0.0], [1.0], [3.0]]), [1.0, 2.0, 6.0]
    for keys in (x, chunked(x, 2)):
        with pytest.raises(InputError, match=r"k must be at most the number of keys \(3\), got 4$"):
            lp.local_mean([0.5], keys, y, Nearest(4) * ExcludeSelf())
    assert lp.local_mean([0.5], x, y, Nearest(3)).tolist() == [3.0]


def test_missing_values_where_the_kernel_allows_them():
    nan = np.nan
    x, y = np.array([[0.0, nan], [nan, 1.0], [2.0, 2.0]]), [1.0, 2.0, 4.0]
    kernel = Gaussian(metric="nan-euclidean")
    mean = lp.local_mean(x[:1], x, y, kernel)
    w = np.exp([0.0, -4.0])  # at distances 0 and sqrt(2 / 1 * 4), and the second shares no feature
    assert_close(mean, [(w @ [1.0, 4.0]) / w.sum()])
    lazy = lp.local_mean(chunked(x, 2), chunked(x, 1), y, kernel)
    expected = lp.local_mean(x, x, y, kernel)
    assert_close(lazy.compute(scheduler="sync"), expected)
    assert_close(lp.log_mass(x, x, Nearest(1, metric="nan-euclidean")), np.zeros(3), 0)
    assert_close(np.exp(lp.fold(lp.reductions.LogMass(), x, x, Causal())[0]), [1.0, 2.0, 3.0])
    for refused in (lp.local_mean, lp.log_mass):
        with pytest.raises(InputError, match=r"must be finite, got .* in row 0"):
            refused(x, x, kernel=Gaussian(), **({"values": y} if refused is lp.local_mean else {}))
