"""Bandwidths per row: oracles of theory sheet 1.3, exactness, edges, Dask."""

import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.errors import InputError
from locpipe.kernels import Epanechnikov, Gaussian, Uniform
from locpipe.testing import assert_close, log_density_reference, no_compute

U = np.array([0.0, 1.0, 3.0])


def plain_abramson(x, h, w):
    log_f = log_density_reference(x, x, h, w)
    return np.exp(-0.5 * (log_f - np.average(log_f, weights=w)))


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_abramson_by_the_definition(seed, d):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(12, d)), rng.uniform(0.1, 2, 12)
    factors = lp.abramson_bandwidths(x, Gaussian(0.7), sample_weight=w, clip=(1e-9, 1e9))
    assert_close(factors, plain_abramson(x, 0.7, w), 1e-11)
    assert_close(np.average(np.log(factors), weights=w) + 1, 1.0)
    equal = lp.abramson_bandwidths(x, Gaussian(0.7), clip=(1e-9, 1e9))
    assert_close(np.prod(equal), 1.0, 1e-11)


def test_weights_are_repetitions():
    x, w = np.array([0.0, 1.0, 3.0, 3.5]), np.array([1, 3, 2, 1])
    weighted = lp.abramson_bandwidths(lp.Keys(x, sample_weight=w), Gaussian(0.8))
    repeated = lp.abramson_bandwidths(np.repeat(x, w), Gaussian(0.8))
    assert_close(np.repeat(weighted, w), repeated)


def test_factors_are_clipped_last():
    x = np.append(np.linspace(-1, 1, 50), 50.0)
    free = lp.abramson_bandwidths(x, Gaussian(0.3), clip=(1e-9, 1e9))
    clipped = lp.abramson_bandwidths(x, Gaussian(0.3), clip=(0.99, 2.0))
    assert free.max() > 2 > 0.99 > free.min()
    np.testing.assert_array_equal(clipped, np.clip(free, 0.99, 2.0))
    assert lp.abramson_bandwidths(x, Gaussian(0.3)).max() <= 10


def test_a_key_without_weight_where_the_pilot_is_zero():
    x = np.array([0.0, 0.5, 9.0])
    factors = lp.abramson_bandwidths(x, Epanechnikov(1.0), sample_weight=[1, 1, 0])
    np.testing.assert_allclose(factors, [1.0, 1.0, 10.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_dtypes(dtype):
    expected = np.float64 if dtype is np.int64 else dtype
    x = U.astype(dtype)
    assert lp.abramson_bandwidths(x, Gaussian(0.8)).dtype == expected
    assert lp.neighbour_bandwidths(x, 1).dtype == expected


@pytest.mark.parametrize("weights", ["none", "memory", "dask"])
def test_dask_is_lazy_and_the_same(weights):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(20, 2)), rng.uniform(0.5, 2, 20)
    given = {"none": None, "memory": w, "dask": da.from_array(w, chunks=9)}[weights]
    lazy_x = da.from_array(x, chunks=(6, 1))
    with no_compute():
        factors = lp.abramson_bandwidths(lazy_x, Gaussian(0.5), sample_weight=given)
        radii = lp.neighbour_bandwidths(lazy_x, 3)
    assert factors.chunks == radii.chunks == ((6, 6, 6, 2),)
    expected = lp.abramson_bandwidths(
        x, Gaussian(0.5), sample_weight=None if weights == "none" else w
    )
    assert_close(factors.compute(scheduler="sync"), expected)
    np.testing.assert_array_equal(radii.compute(scheduler="sync"), lp.neighbour_bandwidths(x, 3))


def test_dask_bandwidths_ride_in_dask_keys():
    x = np.random.default_rng(0).normal(size=(20, 2))
    keys = da.from_array(x, chunks=(6, 2))
    with no_compute():
        lazy = lp.log_density(
            keys[:4], lp.Keys(keys, bandwidth=lp.neighbour_bandwidths(keys, 3)), Gaussian()
        )
    expected = lp.log_density(
        x[:4], lp.Keys(x, bandwidth=lp.neighbour_bandwidths(x, 3)), Gaussian()
    )
    assert_close(lazy.compute(scheduler="sync"), expected)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.integers(1, 9),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([0.0, 1e4]),
)
def test_the_kth_neighbour_is_inside_the_ball(seed, d, k, dtype, offset):
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(12, d)) + offset).astype(dtype)
    q = (rng.normal(size=(6, d)) + offset).astype(dtype)
    r = lp.neighbour_bandwidths(q, k, x)
    inside = np.exp(lp.log_mass(lp.Queries(q, bandwidth=r), x, Uniform()))
    assert (np.round(inside) >= k).all()
    exact = lp.nearest(q, x, k)[0][:, -1]
    np.testing.assert_allclose(r, np.maximum(exact, 1e-3 * np.median(exact)), rtol=1e-6)


def test_a_row_is_not_its_own_neighbour_unless_it_is_given_as_key():
    np.testing.assert_allclose(lp.neighbour_bandwidths(U, 1), [1, 1, 2], rtol=1e-15)
    np.testing.assert_allclose(lp.neighbour_bandwidths(U, 2, U), [1, 1, 2], rtol=1e-15)
    twins = lp.Queries(U, ids=[7, 7, 8])
    np.testing.assert_allclose(lp.neighbour_bandwidths(twins, 1), [3, 2, 2], rtol=1e-15)


def test_other_metrics():
    x = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]])
    np.testing.assert_allclose(lp.neighbour_bandwidths(x, 1, metric="manhattan"), [2, 2, 3])


def test_duplicates_get_a_fraction_of_the_median():
    x = np.array([0.0, 0.0, 1.0, 3.0, 7.0])
    np.testing.assert_allclose(lp.neighbour_bandwidths(x, 1), [0.002, 0.002, 1, 2, 4])
    np.testing.assert_allclose(lp.neighbour_bandwidths(x, 1, floor=0.5), [1, 1, 1, 2, 4])


def test_local_scaling_does_not_depend_on_the_unit():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(15, 2))

    def weights(x):
        root = np.sqrt(lp.neighbour_bandwidths(x, 3))
        rows = lp.Queries(x, bandwidth=root), lp.Keys(x, bandwidth=root)
        return lp.local_mean(*rows, np.eye(15), Gaussian(2**-0.5))

    # Powers of two scale every number exactly; other units up to rounding.
    assert_close(weights(1024 * x), weights(x), 1e-14)
    assert_close(weights(0.3 * x), weights(x), 1e-9)


@pytest.mark.parametrize(
    "clip", [(0.1,), (0, 2), (2, 3), (0.1, 0.5), (0.1, np.inf), ("a", 2), None, 3, (np.nan, 2)]
)
def test_clip_is_checked(clip):
    with pytest.raises(InputError, match=r"clip must be \(low, high\) with 0 < low <= 1 <= high"):
        lp.abramson_bandwidths(U, Gaussian(), clip=clip)


@pytest.mark.parametrize("floor", [0, 1, -0.1, True, "0.1", np.nan])
def test_the_floor_is_checked(floor):
    with pytest.raises(InputError, match="floor must be a number between 0 and 1, got"):
        lp.neighbour_bandwidths(U, 1, floor=floor)


def test_bad_input():
    with pytest.raises(InputError, match="every k-th neighbour is a duplicate; take a larger k"):
        lp.neighbour_bandwidths([1.0, 1.0, 1.0], 2)
    with pytest.raises(InputError, match=r"number of keys that can be neighbours \(2\), got 3"):
        lp.neighbour_bandwidths(U, 3)
    with pytest.raises(InputError, match="needs a kernel with a normaliser"):
        lp.abramson_bandwidths(U, Gaussian(metric="cosine"))
    lazy = lp.neighbour_bandwidths(da.ones(4, chunks=2), 1)
    with pytest.raises(InputError, match="every k-th neighbour is a duplicate"):
        lazy.compute(scheduler="sync")


@pytest.mark.parametrize("kind", ["memory", "dask"])
def test_without_k_neighbours_there_is_no_bandwidth(kind):
    def given(x):
        return da.from_array(x, chunks=(2, -1)) if kind == "dask" else x

    apart = np.array([[1.0, np.nan], [np.nan, 2.0], [3.0, 1.0], [4.0, 1.0]])
    x = np.arange(4.0)[:, None]
    calls = [
        (0, lambda: lp.neighbour_bandwidths(given(apart), 3, metric="nan-euclidean")),
        (1, lambda: lp.neighbour_bandwidths(lp.Queries(given(x), ids=[0, 5, 5, 5]), 2)),
        (0, lambda: lp.neighbour_bandwidths(x, 2, lp.Keys(given(x), sample_weight=[0, 1, 0, 0]))),
    ]
    for row, call in calls:
        message = f"must be finite, got inf for row {row}: fewer than k rows can be its neighbours"
        with pytest.raises(InputError, match=message):
            np.asarray(call())


def test_narrow_numbers_give_positive_bandwidths():
    x = np.array([0, 0, 6e-8, 2e-7, 1e-6, 2e-5], np.float16)
    bandwidths = lp.neighbour_bandwidths(x, 1)
    assert bandwidths.dtype == np.float16
    assert (bandwidths > 0).all()
    inside = np.exp(lp.log_mass(lp.Queries(x, bandwidth=bandwidths), x, Uniform()))
    assert (np.round(inside) >= 2).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_queries_no_bandwidths(dtype):
    none, keys = np.zeros((0, 2), dtype), np.ones((3, 2))
    bandwidths = lp.neighbour_bandwidths(none, 1, keys)
    assert (bandwidths.shape, bandwidths.dtype) == ((0,), dtype)
    lazy = lp.neighbour_bandwidths(none, 1, da.from_array(keys, chunks=2))
    assert (lazy.compute().shape, lazy.dtype) == ((0,), dtype)


@pytest.mark.parametrize("lazy", [False, True])
def test_factors_of_prepared_keys_are_those_of_the_keys(lazy):
    x = np.random.default_rng(0).normal(size=(30, 2))
    rows = da.from_array(x, chunks=(11, 2)) if lazy else x
    kernel, weight = lp.kernels.Gaussian(0.7), np.linspace(0, 1, 30)
    keys = lp.prepare(rows, sample_weight=weight)
    found = np.asarray(lp.abramson_bandwidths(keys, kernel))
    np.testing.assert_array_equal(found, lp.abramson_bandwidths(rows, kernel, sample_weight=weight))


def test_factors_need_rows_that_can_be_queries(tmp_path):
    zarr.create_array(str(tmp_path), name="x", data=np.ones((4, 2)))
    stored = lp.store.ZarrKeys(tmp_path, "x")
    for keys in (stored, lp.prepare(stored)):
        with pytest.raises(InputError, match=r"keys must be arrays, .* take dask\.array\.from_z"):
            lp.abramson_bandwidths(keys, lp.kernels.Gaussian(1.0))
