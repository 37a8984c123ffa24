"""User reports on dtypes (D05, K12, Q07) and their kind: integers, half, long, byte order."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from report_cuts import every_cut, layouts, results

import locpipe as lp
from locpipe.errors import InputError
from locpipe.testing import assert_close

GAUSSIAN = lp.kernels.Gaussian(1.5)
FLOATS = ["float16", "float32", "float64", "longdouble", ">f4", ">f8"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", ">i4"]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "local_mean": lambda q, k, y, kernel: lp.local_mean(q, k, y, kernel),
    "log_mass": lambda q, k, y, kernel: lp.log_mass(q, k, kernel),
    "log_density": lambda q, k, y, kernel: lp.log_density(q, k, kernel),
    "nearest": lambda q, k, y, kernel: lp.nearest(q, k, 2)[0],
}
every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


@every_cut
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "nan-euclidean"])
def test_d05_int32_squares_and_sums_do_not_wrap(cut, metric):
    a, b = np.int32([[50_000, 0]]), np.int32([[-50_000, 0]])
    distances, _ = results(lp.nearest(cut(a), cut(b), 1, metric=metric))
    assert distances.item() == 100_000.0
    assert distances.dtype == np.float64


@every_cut
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("int16", -(2**15), 2**15 - 1),
        ("uint16", 0, 2**16 - 1),
        ("uint32", 0, 2**32 - 1),
        ("uint64", 0, 2**53),
        ("int64", -(2**52), 2**52),
    ],
)
def test_d05_differences_of_extremes_do_not_wrap(cut, dtype, low, high):
    q, x = np.array([[low]], dtype), np.array([[high], [low + 1]], dtype)
    distances, index = results(lp.nearest(cut(q), cut(x), 2))
    np.testing.assert_array_equal(distances, [[1.0, float(high - low)]])
    np.testing.assert_array_equal(index, [[1, 0]])


@every_cut
@every_function
@pytest.mark.parametrize("dtype", INTEGERS)
def test_d05_integers_equal_float64(cut, function, dtype):
    x = np.array([[0, 1], [1, 0], [1, 1], [0, 0]]).astype(dtype)
    wide = x.astype(float)
    found = results(function(cut(x), cut(x), cut(x), GAUSSIAN))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, function(wide, wide, wide, GAUSSIAN), rtol=1e-13)


@every_function
@pytest.mark.parametrize("kernel", [GAUSSIAN, lp.kernels.Epanechnikov(2.0)])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_k12_dtype_and_array_kind_in_are_those_out(function, kernel, lazy, dtype):
    x = np.random.default_rng(0).uniform(0, 1, (9, 2)).astype(dtype)
    given = da.from_array(x, chunks=(4, 2)) if lazy else x
    found = function(given, given, given, kernel)
    assert isinstance(found, da.Array if lazy else np.ndarray)
    assert found.dtype == x.dtype
    computed = results(found)
    assert computed.dtype == x.dtype
    wide = x.astype(np.float64)
    expected = function(wide, wide, wide, kernel)
    eps = max(float(np.finfo(x.dtype).eps), 1e-12)
    np.testing.assert_allclose(np.float64(computed), expected, rtol=eps, atol=eps)


def test_k12_queries_decide_the_dtype():
    q, x = np.zeros((2, 1), np.float32), np.zeros((3, 1), np.float64)
    assert lp.local_mean(q, x, x[:, 0], GAUSSIAN).dtype == np.float32
    assert lp.local_mean(x, q, q[:, 0], GAUSSIAN).dtype == np.float64


def test_k12_sums_of_float32_are_accumulated_in_float64():
    x = np.zeros((100_000, 1), np.float32)
    y = np.full(100_000, 0.1, np.float32)
    y[0] = 1e4
    mean = lp.local_mean(x[:1], x, y, GAUSSIAN)
    np.testing.assert_allclose(mean, [np.mean(y, dtype=np.float64)], rtol=1e-7)


@every_function
@every_cut
def test_q07_read_only_rows_of_any_layout_work_and_stay_as_they_are(function, cut):
    x = np.random.default_rng(0).normal(size=(12, 3))
    expected = function(x, x, x, GAUSSIAN)
    for name, rows in layouts(x):
        before = rows.copy()
        found = results(function(cut(rows), cut(rows), cut(rows), GAUSSIAN))
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=name)
        np.testing.assert_array_equal(rows, before)


def test_q07_read_only_weights_bandwidths_and_values():
    x, w = np.arange(4.0)[:, None], np.array([1, 0, 2, 5])
    for array in (x, w):
        array.setflags(write=False)
    keys = lp.Keys(x, values=x, sample_weight=w, bandwidth=w + 1)
    assert np.isfinite(lp.local_mean(x, keys, kernel=GAUSSIAN)).all()
    np.testing.assert_array_equal(w, [1, 0, 2, 5])


OBJECTS = {
    "numbers": np.array([[1], [2]], object),
    "a missing one": np.array([[1.0], [None]], object),
    "text": np.array([["a"], ["b"]]),
    "dates": np.array([["2020-01-01"]], "datetime64[D]"),
    "durations": np.array([[1]], "timedelta64[s]"),
    "complex": np.array([[1j]]),
    "fields": np.zeros((2, 1), [("a", float), ("b", float)]),
}


@every_function
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("rows", OBJECTS.values(), ids=OBJECTS)
def test_d05_what_holds_no_numbers_is_refused(function, lazy, rows):
    good = np.zeros((2, 1))
    given = da.from_array(rows, chunks=1) if lazy else rows
    with pytest.raises(InputError, match=r"queries must be numbers, got dtype .*; convert"):
        function(given, good, good, GAUSSIAN)
    with pytest.raises(InputError, match=r"keys must be numbers, got dtype .*; convert"):
        function(good, given, good, GAUSSIAN)


def test_half_precision_holds_what_it_can():
    x = np.float16([[0.0], [1.0], [60_000.0]])
    distances, index = lp.nearest(x, x, 3)
    assert distances.dtype == np.float16
    assert_close(distances[0], np.float16([0, 1, 60_000]), rtol=1e-3)
    np.testing.assert_array_equal(index[2], [2, 1, 0])
