"""Keys that are looked at as they are read; weights that are all 0; pairs of chosen rows."""

import pickle

import dask.array as da
import numpy as np
import pytest
import zarr

import locpipe as lp
from locpipe.blocks import ArrayPairs, KeyBlock
from locpipe.errors import InputError
from locpipe.graph import ArrayKeys, fold
from locpipe.graph.checked import CheckedKeys
from locpipe.store import ZarrKeys
from locpipe.testing import assert_close

K, R = lp.kernels, lp.reductions
N = 40
X = np.linspace(0, 1, N)[:, None]
G = K.Gaussian(0.5)


def source(tmp_path, **changed):
    arrays = {"data": X, "values": X[:, 0], "sample_weight": np.ones(N), "bandwidth": np.ones(N)}
    arrays |= changed
    group = zarr.open_group(tmp_path, mode="w")
    for name, array in arrays.items():
        group.create_array(name, data=array, chunks=(7, *array.shape[1:]))
    return ZarrKeys(tmp_path, **{name: name for name in arrays})


def with_one(array, value, row=23):
    changed = array.copy()
    changed[row] = value
    return changed


BAD = {
    "data": (with_one(X, np.nan), "keys must be finite, got nan in row 23"),
    "values": (with_one(X[:, 0], np.inf), "values of the keys must be finite, got inf in row 23"),
    "bandwidth": (with_one(np.ones(N), -1.0), "bandwidth of the keys must be positive, got -1.0"),
    "sample_weight": (with_one(np.ones(N), np.inf), "sample_weight of .*, got inf in row 23"),
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_bad_numbers_in_a_store_are_named_with_their_row(tmp_path, name, lazy):
    array, message = BAD[name]
    keys = source(tmp_path, **{name: array})
    queries = da.from_array(X, chunks=(9, 1)) if lazy else X
    calls = [
        lambda: lp.local_mean(queries, keys, kernel=K.Gaussian()),
        lambda: fold(R.LogMass(), queries, keys, K.Gaussian())[0],
        lambda: lp.nearest(queries, keys, 3)[0],
    ]
    for call in calls:
        with pytest.raises(InputError, match=message):
            np.asarray(call())


def test_a_kernel_that_allows_missing_values_reads_them(tmp_path):
    x = np.c_[X, X]
    x[5, 0] = np.nan
    group = zarr.open_group(tmp_path, mode="w")
    group.create_array("data", data=x, chunks=(7, 2))
    keys = ZarrKeys(tmp_path, "data")
    found, expected = (lp.nearest(x, k, 3, metric="nan-euclidean") for k in (keys, x))
    np.testing.assert_array_equal(found[1], expected[1])
    with pytest.raises(InputError, match="keys must be finite, got nan in row 5"):
        lp.nearest(np.c_[X, X], keys, 3)


def test_degrees_in_a_store_are_no_latitudes(tmp_path):
    degrees = np.linspace([10.0, 0.0], [80.0, 90.0], N)
    group = zarr.open_group(tmp_path, mode="w")
    group.create_array("data", data=degrees, chunks=(7, 2))
    with pytest.raises(InputError, match="latitudes of the keys must be radians"):
        lp.nearest(np.zeros((1, 2)), ZarrKeys(tmp_path, "data"), 1, metric="haversine")


def test_array_keys_given_by_hand_are_checked_at_once():
    keys = ArrayKeys(KeyBlock(with_one(X, np.nan)))
    with pytest.raises(InputError, match="keys must be finite, got nan in row 23"):
        lp.log_mass(da.from_array(X, chunks=(9, 1)), keys, G)


def test_checked_keys_are_small_and_pass_everything_on(tmp_path):
    keys = source(tmp_path)
    checked = CheckedKeys(keys)
    again = pickle.loads(pickle.dumps(checked))
    assert (again.n_keys, again.n_features, again.n_outputs) == (N, 1, 1)
    assert checked.read_bytes(16) == keys.read_bytes(16)
    assert lp.prepare(keys).rows is keys


# Weights that are all 0.


def run_all(queries, keys):
    yield lambda: lp.local_mean(queries, keys, kernel=G)
    yield lambda: lp.local_mean(queries, keys, kernel=K.Nearest(2))
    yield lambda: lp.local_mean(queries, keys, kernel=K.Uniform(0.1), empty="nearest")
    yield lambda: lp.nearest(queries, keys, 2)[1]
    yield lambda: lp.log_mass(queries, keys, G)
    yield lambda: lp.fold(R.WeightedVariance(1), queries, keys, G)[1]


def keys_of_weight(kind, weight, tmp_path, monkeypatch):
    if kind == "store":
        return source(tmp_path, sample_weight=weight)
    if kind == "store in spans":
        monkeypatch.setattr("locpipe.graph.spans._PAIRS_PER_LEAF", 20)
        return source(tmp_path, sample_weight=weight)
    chunks = {"memory": None, "dask": 7, "one chunk": N}[kind]
    x, y, w = (a if chunks is None else da.from_array(a, chunks) for a in (X, X[:, 0], weight))
    return lp.Keys(x, values=y, sample_weight=w)


KINDS = ["memory", "dask", "one chunk", "store", "store in spans"]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_are_all_zero_are_refused(tmp_path, monkeypatch, kind, lazy):
    queries = da.from_array(X, chunks=(20, 1)) if lazy else X
    keys = keys_of_weight(kind, np.zeros(N), tmp_path, monkeypatch)
    for call in run_all(queries, keys):
        with pytest.raises(InputError, match="at least one positive entry, got all zeros"):
            np.asarray(call())


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_chunks_without_weight_are_passed_over(tmp_path, monkeypatch, kind, lazy):
    queries = da.from_array(X, chunks=(20, 1)) if lazy else X
    weight = np.where(np.arange(N) >= 30, 1.0, 0.0)
    keys = keys_of_weight(kind, weight, tmp_path, monkeypatch)
    alone = lp.Keys(X, values=X[:, 0], sample_weight=weight)
    for call, expected in zip(run_all(queries, keys), run_all(X, alone), strict=True):
        assert_close(np.asarray(call()), expected(), 1e-10)
    assert lp.prepare(keys).total_weight == 10


# Pairs go by place, also for rows that are gone through again.


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("lazy_pairs", [False, True])
def test_the_nearest_key_under_a_product_with_precomputed_weights(lazy, lazy_pairs):
    rng = np.random.default_rng(0)
    q, y = np.r_[rng.uniform(size=(300, 1)), rng.uniform(5, 9, (300, 1))], rng.normal(size=N)
    q = q[rng.permutation(600)]
    allowed = (rng.random((600, N)) < 0.4).astype(float)
    pairs = da.from_array(allowed, chunks=(90, 11)) if lazy_pairs else allowed
    queries = da.from_array(q, chunks=(250, 1)) if lazy else q
    kernel = K.Epanechnikov(0.5) * K.Precomputed(pairs)
    found = np.asarray(lp.local_mean(queries, X, y, kernel, empty="nearest"))
    plain = np.asarray(lp.local_mean(queries, X, y, kernel))
    far = np.isnan(plain)
    assert 300 <= far.sum() < 600
    nearest = np.argmin(np.where(allowed > 0, np.abs(q - X.T), np.inf), axis=1)
    np.testing.assert_array_equal(found[far], y[nearest][far])
    np.testing.assert_array_equal(found[~far], plain[~far])


class Doubtful:
    """A summary engine that knows nothing: every third query is repaired, the rest have no mass."""

    def summarise(self, k):
        return 0

    def merge(self, a, b):
        return 0

    def evaluate(self, summary, q):
        return R.WeightedMean(1).init(q), np.arange(q.n_rows) % 3 == 0


def test_queries_of_a_summary_are_repaired_with_their_own_pairs():
    weights = np.random.default_rng(0).random((N, N))
    kernel, keys = G * K.Precomputed(ArrayPairs(weights)), lp.Keys(X, values=X)
    (expected,) = fold(R.WeightedMean(1), X, keys, kernel)
    for queries in (X, da.from_array(X, chunks=(10, 1))):
        found = np.asarray(fold(R.WeightedMean(1), queries, keys, kernel, engine=Doubtful())[0])
        repaired = ~np.isnan(found[:, 0])
        assert repaired.sum() >= N // 3
        assert_close(found[repaired], expected[repaired], 1e-12)
