"""What callers hand over: containers that are taken, and what is refused in one sentence."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xarray as xr

import locpipe as lp
from locpipe.errors import InputError
from locpipe.graph.inputs import as_keys, as_queries
from locpipe.testing import as_kind, no_compute

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0)
GAUSSIAN = lp.kernels.Gaussian(3.0)
EXPECTED = lp.local_mean(X, X, Y, GAUSSIAN)


def memory_mapped(array, folder):
    np.save(folder / "rows.npy", array)
    return np.load(folder / "rows.npy", mmap_mode="r")


CONTAINERS = {
    "lists": np.ndarray.tolist,
    "tuples": lambda a: [tuple(row) if a.ndim == 2 else row for row in a.tolist()],
    "list of arrays": list,
    "data frame, series": lambda a: (
        pd.DataFrame(a) if a.ndim == 2 else pd.Series(a, list("fedcba"))
    ),
    "data array": xr.DataArray,
    "masked, without a mask": np.ma.masked_array,
    "Fortran": np.asfortranarray,
    "backwards": lambda a: a[::-1].copy()[::-1],
    "big-endian": lambda a: a.astype(">f8"),
    "integers": lambda a: a.astype(np.uint8),
}


@pytest.mark.parametrize("hold", CONTAINERS.values(), ids=CONTAINERS)
def test_containers_of_rows_that_are_taken(hold):
    mean = lp.local_mean(hold(X), hold(X), hold(Y), GAUSSIAN, sample_weight=hold(np.ones(6)))
    assert type(mean) is np.ndarray
    np.testing.assert_allclose(mean, EXPECTED, rtol=1e-14)


def test_memory_mapped_rows_are_read_where_they_lie(tmp_path):
    mapped = memory_mapped(X, tmp_path)
    np.testing.assert_array_equal(lp.local_mean(mapped, mapped, Y, GAUSSIAN), EXPECTED)
    assert np.shares_memory(as_keys(mapped).data, mapped)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_matrix_becomes_an_array():
    assert type(as_queries(np.matrix(X)).data) is np.ndarray


@pytest.mark.parametrize("kind", ["numpy", "strict", "dask"])
def test_integers_become_float64_and_floats_stay(kind):
    queries = as_queries(as_kind(np.arange(3, dtype=np.int32), kind))
    assert str(queries.data.dtype).endswith("float64")
    assert queries.data.shape == (3, 1)
    keys = as_keys(as_kind(np.ones((3, 2), np.float32), kind), np.ones(3, np.float32), [1, 2, 3])
    assert str(keys.data.dtype).endswith("float32")
    assert keys.values.dtype == np.float32
    assert keys.sample_weight.dtype == np.float64


def test_weights_and_bandwidths_in_float32_lose_nothing():
    w = np.float32([1, 2, 5])
    wide = lp.log_density([0.5], [0.0, 1.0, 4.0], GAUSSIAN, sample_weight=w.astype(float))
    narrow = lp.log_density([0.5], [0.0, 1.0, 4.0], GAUSSIAN, sample_weight=w)
    np.testing.assert_array_equal(narrow, wide)


REFUSED = {
    "nothing": (None, "must be an array of numbers, got NoneType"),
    "a dict": ({"a": 1}, "must be an array of numbers, got dict"),
    "a generator": ((i for i in range(3)), "must be an array of numbers, got generator"),
    "keys for queries": (lp.Keys(X), "must be (an array of numbers, got Keys|one row per)"),
    "text": ("hello", "must be numbers, got dtype <U5; convert them first"),
    "words": ([["a"]], "must be numbers, got dtype <U1"),
    "objects": (np.array([[1], [None]], object), "must be numbers, got dtype object"),
    "dates": (np.array(["2020-01-01"], "datetime64[D]"), r"numbers, got dtype datetime64\[D\]"),
    "fields": (np.zeros(3, [("a", float)]), r"must be numbers, got dtype \[\('a', '<f8'\)\]"),
    "complex": (X + 1j, "must be numbers, got dtype complex128"),
    "nullable integers": (pd.DataFrame({"a": pd.array([1, None], "Int64")}), "got (nan|dtype ob)"),
    "categories": (pd.DataFrame({"a": pd.Categorical(["u", "v"])}), "got dtype (object|str)"),
    "ragged": ([[1.0], [1.0, 2.0]], "must be rows of equal length, got a ragged sequence"),
    "a number": (3.0, r"must be \(n_rows, n_features\), got 0 dimensions; reshape them"),
    "a cube": (X[None], r"must be \(n_rows, n_features\), got 3 dimensions; reshape them"),
    "no features": (X[:, :0], r"must have at least one feature, got shape \(6, 0\)"),
    "csr matrix": (sp.csr_matrix(X), "must be a dense array, got a sparse csr_matrix; make it"),
    "coo array": (sp.coo_array(X), "must be a dense array, got a sparse coo_array; make it"),
    "masked": (np.ma.masked_array(X, X > 3), "must not be masked; drop or impute the masked rows"),
    "huge": (X * 1e200, r"at most 1e\+150 in size.*, got 1e\+200 in row 0; change the units"),
    "long": (np.longdouble(X) * np.longdouble("1e4000"), r"size.*, got 1e\+4000 in row 0"),
    "missing": (np.where(X == 9, np.nan, X), "must be finite, got nan in row 4; drop or impute"),
    "infinite": (np.where(X == 9, -np.inf, X), "must be finite, got -inf in row 4; drop or impute"),
}


@pytest.mark.parametrize(("rows", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("what", ["queries", "keys"])
def test_rows_that_are_refused(what, rows, message):
    if what == "keys" and isinstance(rows, lp.Keys):
        rows, message = lp.Queries(X), "must be an array of numbers, got Queries"
    given = (rows, X) if what == "queries" else (X, rows)
    with pytest.raises(InputError, match=f"^{what} .*{message}") as caught:
        lp.log_mass(*given, GAUSSIAN)
    assert "\n" not in str(caught.value)


LAZY = {
    "data array": lambda: xr.DataArray(da.from_array(X, chunks=2)),
}


@pytest.mark.parametrize("make", LAZY.values(), ids=LAZY)
def test_lazy_containers_are_refused_before_they_are_computed(make):
    with no_compute(), pytest.raises(InputError, match="got a lazy DataArray; take the Dask array"):
        lp.log_mass(make(), X, GAUSSIAN)


def test_dask_arrays_of_sparse_chunks_are_refused():
    lazy = da.from_array(X, chunks=(3, 2)).map_blocks(sp.csr_matrix)
    with pytest.raises(InputError, match="keys must be a dense array, got a sparse csr_matrix"):
        lp.log_mass(X, lazy, GAUSSIAN)


@pytest.mark.parametrize("chunks", [(2, 4), (3, 0, 3), (1,) * 6])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_a_bad_row_in_a_chunk_is_told_by_its_place_in_the_whole(chunks, bad):
    lazy = da.from_array(np.where(X == 9, bad, X), chunks=(chunks, (2,)))
    for given, what in (((lazy, X), "queries"), ((X, lazy), "keys")):
        found = lp.log_mass(*given, GAUSSIAN)
        with pytest.raises(
            InputError, match=rf"^{what} must be .*, got {str(bad)[:3]}.* in row 4;"
        ):
            found.compute(scheduler="sync")


ATTRIBUTES = {
    "values": (
        {"values": [0, 1, np.nan, 3, 4, 5]},
        "values of the keys .* finite, got nan in row 2",
    ),
    "values, words": ({"values": list("abcdef")}, "values of the keys must be numbers, got dtype"),
    "values, short": ({"values": Y[:2]}, r"values must have one row per row .* \(6\), got 2"),
    "values, cube": ({"values": X[:, :, None]}, "values of the keys must be 1-d or 2-d, got 3 dim"),
    "bandwidth": ({"bandwidth": [1, 1, 0, 1, 1, 1]}, "bandwidth .* positive, got 0.0 in row 2"),
    "bandwidth, nan": (
        {"bandwidth": [np.nan] * 6},
        "bandwidth .* must be finite, got nan in row 0",
    ),
    "weight": ({"sample_weight": [1, 1, 1, 1, 1, -1]}, "non-negative, got -1.0 in row 5; 0 takes"),
    "weight, sparse": ({"sample_weight": sp.csr_array(Y[None])}, "be a dense array, got a sparse"),
    "time": ({"time": [0, 1, np.nan, 3, 4, 5]}, "time of the keys .* finite, got nan in row 2"),
    "ids": ({"ids": list("abcdef")}, "ids of the keys must be numbers, got dtype <U1"),
    "ids, 2-d": ({"ids": X}, "ids of the keys must be 1-d, got 2 dimensions"),
}


@pytest.mark.parametrize(("given", "message"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_attributes_that_are_refused(given, message):
    with pytest.raises(InputError, match=message) as caught:
        lp.log_mass(X, lp.Keys(X, **given), GAUSSIAN)
    assert "\n" not in str(caught.value)


def test_attributes_given_twice_are_refused():
    with pytest.raises(InputError, match=r"values came both in lp\.Keys and as an argument; give"):
        lp.local_mean(X, lp.Keys(X, values=Y), Y, GAUSSIAN)


def test_missing_values_are_taken_where_a_metric_knows_them():
    holed = np.where(X == 9, np.nan, X)
    assert as_queries(holed, allow_missing=True).data is holed
    for bad, message in ((np.inf, "not be infinite, got inf in row 4"), (1e200, "at most 1e")):
        with pytest.raises(InputError, match=f"queries must {message}|queries must be {message}"):
            lp.nearest(np.where(np.isnan(holed), bad, holed), X, 1, metric="nan-euclidean")
    nothing = np.full((2, 2), np.nan)
    assert (lp.nearest(nothing, X, 1, metric="nan-euclidean")[1] == -1).all()


@pytest.mark.parametrize("lazy", [False, True])
def test_degrees_are_no_radians(lazy):
    town, pole = np.array([[0.5, 1.0]]), np.float32([[np.pi / 2, 0.0], [-np.pi / 2, 0.0]])
    degrees = np.array([[0.1, 0.0], [48.0, 11.0]])
    if lazy:
        degrees = da.from_array(degrees, chunks=1)
    assert np.isfinite(lp.nearest(pole, town, 1, metric="haversine")[0]).all()
    for given, what in (((degrees, town), "queries"), ((town, degrees), "keys")):
        with pytest.raises(InputError, match=f"latitudes of the {what} must be radians .*row 1"):
            np.asarray(lp.nearest(*given, 1, metric="haversine")[0])


@pytest.mark.parametrize("k", [np.int8(2), np.uint64(2), np.int64(2), 2])
def test_k_may_be_any_kind_of_integer(k):
    assert lp.nearest(X, X, k)[1].shape == (6, 2)
    assert lp.kernels.Nearest(k).k == 2


@pytest.mark.parametrize("k", [0, -1, 1.5, np.float64(2), True, np.bool_(True), "2", None])
def test_k_must_be_a_whole_number(k):
    with pytest.raises(InputError, match="k must be a whole number of at least 1, got "):
        lp.nearest(X, X, k)


@pytest.mark.parametrize("k", [7, 2**70])
def test_k_must_not_exceed_the_keys(k):
    with pytest.raises(InputError, match=rf"number of keys that can be neighbours \(6\), got {k}"):
        lp.nearest(X, X, k)
    with pytest.raises(InputError, match=r"neighbours \(5\), got 6"):
        lp.nearest(X, X, 6, exclude_self=True)
