"""Public functions against the oracles: chunked as may be, far from the origin, both dtypes."""

from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.errors import InputError
from locpipe.testing import (
    assert_close,
    assert_log_close,
    assert_mean_close,
    local_mean_reference,
    log_density_reference,
    log_mass_reference,
    nearest_reference,
    no_compute,
)

RTOL = {"float32": 1e-6, "float64": 1e-10}
OFFSETS = [0.0, 1e6]


@st.composite
def chunks(draw, n):
    """A random way to cut n rows, empty chunks included."""
    cuts = draw(st.lists(st.integers(0, n), max_size=4).map(sorted))
    edges = [0, *cuts, n]
    return tuple(b - a for a, b in pairwise(edges))


@st.composite
def problems(draw):
    """Queries, keys, values, weights, bandwidth: some far from the origin, some far apart."""
    n_q, n_k = draw(st.integers(1, 40)), draw(st.integers(1, 60))
    d, p = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    offset = draw(st.sampled_from(OFFSETS))
    spread = draw(st.sampled_from([0.1, 1.0, 30.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q = (rng.normal(size=(n_q, d)) * spread + offset).astype(dtype)
    k = (rng.normal(size=(n_k, d)) + offset).astype(dtype)
    v = rng.normal(size=(n_k, p)).astype(dtype)
    w = rng.choice([0.0, 0.5, 1.0, 7.0], n_k)
    w[rng.integers(n_k)] = 2.0
    h = draw(st.sampled_from([0.05, 0.7, 20.0]))
    return q, k, v, w, h, draw(chunks(n_q)), draw(chunks(n_k))


def dask_rows(array, rows):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


@given(problems())
def test_local_mean_is_the_oracle_on_numpy_and_dask(problem):
    q, k, v, w, h, q_chunks, k_chunks = problem
    kernel = lp.kernels.Gaussian(h)
    expected = local_mean_reference(q, k, v, h, w)
    scale = local_mean_reference(q, k, np.abs(v), h, w)
    rtol = RTOL[str(q.dtype)]
    mean = lp.local_mean(q, k, v, kernel, sample_weight=w)
    assert mean.dtype == q.dtype
    assert_mean_close(mean, expected, scale, rtol)
    with no_compute():
        lazy = lp.local_mean(
            dask_rows(q, q_chunks),
            dask_rows(k, k_chunks),
            dask_rows(v, k_chunks),
            kernel,
            sample_weight=dask_rows(w, k_chunks),
        )
    assert lazy.dtype == q.dtype
    assert lazy.shape == expected.shape
    assert_mean_close(lazy.compute(scheduler="sync"), expected, scale, rtol)


@given(problems(), st.data())
def test_any_mix_of_kinds_and_of_flat_values_gives_the_same(problem, data):
    q, k, v, w, h, q_chunks, k_chunks = problem
    flat = data.draw(st.booleans())
    v = v[:, 0] if flat else v
    expected = lp.local_mean(q, k, v, lp.kernels.Gaussian(h), sample_weight=w)
    kinds = data.draw(st.lists(st.booleans(), min_size=4, max_size=4))
    chunkings = (q_chunks, k_chunks, data.draw(chunks(len(k))), data.draw(chunks(len(k))))
    arrays = [
        dask_rows(array, rows) if lazy else array
        for array, rows, lazy in zip((q, k, v, w), chunkings, kinds, strict=True)
    ]
    with no_compute():
        mean = lp.local_mean(*arrays[:3], lp.kernels.Gaussian(h), sample_weight=arrays[3])
    assert mean.shape == expected.shape
    assert isinstance(mean, np.ndarray) is not any(kinds)
    scale = local_mean_reference(q, k, np.abs(v), h, w)
    rtol = 2 * RTOL[str(q.dtype)]
    assert_mean_close(np.asarray(da.asarray(mean).compute(scheduler="sync")), expected, scale, rtol)


def test_bilateral_kernels_take_flat_values_on_dask():
    y = np.r_[np.zeros(7), np.ones(5)]
    x = np.arange(12.0)[:, None]
    kernel = lp.kernels.Gaussian(1e9) * lp.kernels.Gaussian(0.4).on(query="values", key="values")
    expected = lp.local_mean(lp.Queries(x, values=y), lp.Keys(x, values=y), kernel=kernel)
    lazy = [dask_rows(a, (5, 7)) for a in (x, y)]
    mean = lp.local_mean(
        lp.Queries(lazy[0], values=lazy[1]), lp.Keys(lazy[0], values=lazy[1]), kernel=kernel
    )
    assert_close(mean.compute(), expected)


@given(problems())
def test_log_density_is_the_oracle_on_numpy_and_dask(problem):
    q, k, _, w, h, q_chunks, k_chunks = problem
    kernel = lp.kernels.Gaussian(h)
    expected = log_density_reference(q, k, h, w)
    rtol = RTOL[str(q.dtype)]
    assert_log_close(lp.log_density(q, k, kernel, sample_weight=w), expected, rtol)
    assert_log_close(
        lp.log_mass(q, k, kernel, sample_weight=w), log_mass_reference(q, k, h, w), rtol
    )
    with no_compute():
        lazy = lp.log_density(
            dask_rows(q, q_chunks), dask_rows(k, k_chunks), kernel, sample_weight=w
        )
    assert lazy.dtype == q.dtype
    assert_log_close(lazy.compute(scheduler="sync"), expected, rtol)


@given(problems(), st.integers(1, 8))
def test_nearest_is_the_oracle_on_numpy_and_dask(problem, n):
    q, k, _, _, _, q_chunks, k_chunks = problem
    n = min(n, len(k))
    expected, expected_index = nearest_reference(q, k, n)
    distances, index = lp.nearest(q, k, n)
    assert_close(distances, expected.astype(q.dtype), rtol=1e-6 if q.dtype == "float32" else 1e-12)
    np.testing.assert_array_equal(index, expected_index)
    with no_compute():
        lazy_distances, lazy_index = lp.nearest(dask_rows(q, q_chunks), dask_rows(k, k_chunks), n)
    np.testing.assert_array_equal(lazy_distances.compute(scheduler="sync"), distances)
    np.testing.assert_array_equal(lazy_index.compute(scheduler="sync"), index)


@given(st.integers(0, 2**32 - 1), st.data())
def test_ties_go_to_the_lowest_index_for_any_chunking(seed, data):
    k = np.random.default_rng(seed).integers(0, 3, (50, 2)).astype(float)
    q = k[:10]
    _, expected = nearest_reference(q, k, 7)
    lazy = lp.nearest(dask_rows(q, data.draw(chunks(10))), dask_rows(k, data.draw(chunks(50))), 7)
    np.testing.assert_array_equal(lazy[1].compute(scheduler="sync"), expected)


def test_results_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(1)
    q, k, v = rng.normal(size=(3000, 3)), rng.normal(size=(2500, 3)), rng.normal(size=(2500, 2))
    means = [lp.local_mean(q, k, v, lp.kernels.Gaussian(0.3), n_threads=n) for n in (1, 2, 5)]
    np.testing.assert_array_equal(means[0], means[1])
    np.testing.assert_array_equal(means[0], means[2])


def test_wide_data_takes_the_matrix_product_and_stays_right():
    rng = np.random.default_rng(2)
    q, k = rng.normal(size=(50, 64)) + 1e3, rng.normal(size=(80, 64)) + 1e3
    v = rng.normal(size=(80, 1))
    mean = lp.local_mean(q, k, v, lp.kernels.Gaussian(3.0))
    expected = local_mean_reference(q, k, v, 3.0)
    assert_mean_close(mean, expected, local_mean_reference(q, k, np.abs(v), 3.0), 1e-10)


def test_two_far_clusters_in_one_tile():
    rng = np.random.default_rng(3)
    near, far = rng.normal(size=(40, 20)), rng.normal(size=(40, 20)) + 1e8
    k, v = np.vstack([near, far]), rng.normal(size=(80, 1))
    expected = local_mean_reference(k, k, v, 1.0)
    scale = local_mean_reference(k, k, np.abs(v), 1.0)
    assert_mean_close(lp.local_mean(k, k, v, lp.kernels.Gaussian(1.0)), expected, scale, 1e-10)


class TestOracles:
    """Numbers of the theory sheets."""

    def test_nadaraya_watson(self):
        x, y = [0.0, 1.0, 2.0, 4.0], [1.0, 3.0, 2.0, 5.0]
        mean = lp.local_mean([1.5], x, y, lp.kernels.Gaussian(1.0))
        assert_close(mean, [2.3232380317338], rtol=1e-13)

    def test_density(self):
        log_density = lp.log_density([0.5], [0.0, 1.0, 3.0], lp.kernels.Gaussian(0.8))
        assert_close(np.exp(log_density), [0.27472674797331], rtol=1e-13)


class TestDask:
    def test_exclude_self_across_chunks(self):
        x = np.random.default_rng(0).normal(size=(30, 2))
        lazy = lp.nearest(dask_rows(x, (7, 23)), dask_rows(x, (12, 18)), 3, exclude_self=True)
        expected = lp.nearest(x, x, 3, exclude_self=True)
        np.testing.assert_array_equal(lazy[1].compute(), expected[1])
        assert not (expected[1] == np.arange(30)[:, None]).any()

    def test_a_cluster_of_processes_shares_keys_by_reference(self):
        from distributed import Client

        rng = np.random.default_rng(0)
        q, k = rng.normal(size=(40, 2)), rng.normal(size=(500, 2))
        expected = lp.log_density(q, k, lp.kernels.Gaussian(0.4))
        with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
            lazy = lp.log_density(dask_rows(q, (20, 20)), k, lp.kernels.Gaussian(0.4))
            np.testing.assert_array_equal(client.compute(lazy).result(), expected)

    def test_keys_in_files_for_a_scheduler_without_client(self):
        rng = np.random.default_rng(0)
        q, k = rng.normal(size=(40, 2)), rng.normal(size=(500, 2))
        lazy = lp.log_density(dask_rows(q, (20, 20)), k, lp.kernels.Gaussian(0.4))
        expected = lp.log_density(q, k, lp.kernels.Gaussian(0.4))
        np.testing.assert_array_equal(lazy.compute(scheduler="processes"), expected)


class TestArrays:
    def test_array_api_strict(self):
        xp = pytest.importorskip("array_api_strict")
        rng = np.random.default_rng(0)
        q, k, v = rng.normal(size=(9, 10)), rng.normal(size=(30, 10)), rng.normal(size=(30, 2))
        strict = [xp.asarray(a) for a in (q, k, v)]
        kernel = lp.kernels.Gaussian(0.8) * lp.masks.ExcludeSelf()
        mean = lp.local_mean(*strict, kernel)
        assert type(mean).__module__.startswith("array_api_strict")
        assert_close(np.asarray(mean), lp.local_mean(q, k, v, kernel))
        index = lp.nearest(strict[0], strict[1], 3)[1]
        np.testing.assert_array_equal(np.asarray(index), lp.nearest(q, k, 3)[1])
        log_density = lp.log_density(strict[0], strict[1], lp.kernels.Gaussian(0.8))
        assert_close(np.asarray(log_density), lp.log_density(q, k, lp.kernels.Gaussian(0.8)))

    def test_a_row_without_neighbours(self):
        kernel = lp.kernels.Gaussian(1.0) * lp.masks.ExcludeSelf()
        assert np.isnan(lp.local_mean([0.0], [1.0], [2.0], kernel)).all()
        np.testing.assert_array_equal(
            lp.local_mean([0.0], [1.0], [2.0], kernel, empty="zero"), [0.0]
        )
        assert lp.log_mass([0.0], [1.0], kernel)[0] == -np.inf


def test_bandwidths_far_from_one():
    q, k = lp.Queries([[1.0]], bandwidth=[1e-140]), [[0.0], [1.0]]
    assert lp.local_mean(q, k, [7.0, 9.0], lp.kernels.Gaussian()) == 9
    assert np.isfinite(lp.log_density(q, k, lp.kernels.Gaussian())).all()


GOOD = np.ones((3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: lp.local_mean(GOOD, GOOD[:, :1], GOOD, g), "as many features, got 2 and 1"),
        (
            lambda g: lp.local_mean(GOOD, GOOD, GOOD[:2], g),
            r"values must have one row per row of the keys \(3\), got 2",
        ),
        (lambda g: lp.local_mean(GOOD, GOOD, GOOD[:, None], g), "must be 1-d or 2-d, got 3"),
        (lambda g: lp.local_mean(GOOD, GOOD, None, g), "needs values, one row per key, got none"),
        (lambda g: lp.local_mean(GOOD, GOOD, GOOD, None), "kernel must be a kernel object"),
        (lambda g: lp.local_mean(GOOD, GOOD, GOOD, "gaussian"), "got 'gaussian'"),
        (lambda g: lp.local_mean(GOOD, GOOD[:0], GOOD[:0], g), "at least one key, got none"),
        (lambda g: lp.local_mean(GOOD, lp.Keys(GOOD, values=GOOD), GOOD, g), "give it once"),
        (lambda g: lp.local_mean(GOOD[None], GOOD, GOOD, g), "got 3 dimensions"),
        (lambda g: lp.local_mean(GOOD[:, :0], GOOD[:, :0], GOOD, g), "at least one feature"),
        (lambda g: lp.log_mass(GOOD, GOOD, g, n_threads=-1), "n_threads must be a whole"),
        (lambda g: lp.log_mass(GOOD, GOOD, g, empty=[]), "empty must be one of"),
        (lambda g: lp.log_mass(GOOD, GOOD, g, engine="warp"), "engine must be one of"),
        (lambda g: lp.log_mass(GOOD, GOOD, g, empty="zeros"), "empty must be one of"),
        (lambda g: lp.log_mass(GOOD, GOOD, g, threads=2), r"unknown option\(s\) \['threads'\]"),
        (lambda g: lp.log_density(GOOD, GOOD, g * lp.masks.Causal()), "kernel with a normaliser"),
        (lambda g: lp.nearest(GOOD, GOOD, 0), "at least 1, got 0"),
        (lambda g: lp.nearest(GOOD, GOOD, 1.5), "whole number"),
        (
            lambda g: lp.nearest(GOOD, GOOD, 4),
            r"number of keys that can be neighbours \(3\), got 4",
        ),
        (lambda g: lp.nearest(GOOD, GOOD, 3, exclude_self=True), r"neighbours \(2\), got 3"),
        (lambda g: lp.nearest(GOOD, GOOD, 1, metric="taxi"), "metric must be one of"),
        (
            lambda g: lp.local_mean(GOOD, GOOD, GOOD, g.on(query="values")),
            "looks at the values of the queries",
        ),
    ],
)
def test_bad_input_is_one_clear_sentence(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call(lp.kernels.Gaussian(1.0))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "bandwidth", [-0.2, 0, np.nan, np.inf, 1e-200, 1e200, "scott", None, [], [[1.0]], [1.0, 0.0]]
)
def test_bandwidths_are_positive_and_finite(bandwidth):  # R06
    with pytest.raises(InputError, match="bandwidth must be a positive finite number"):
        lp.kernels.Gaussian(bandwidth)


def test_one_bandwidth_per_feature():
    x = np.array([[0.0, 0.0], [1.0, 1.0]])
    kernel = lp.kernels.Gaussian([0.5, 2.0])
    assert_close(lp.log_density(x, x, kernel), log_density_reference(x, x, [0.5, 2.0]))
    with pytest.raises(InputError, match=r"one per feature \(3\), got 2"):
        lp.log_mass(np.ones((1, 3)), np.ones((1, 3)), kernel)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["queries", "keys", "values of the keys"])
def test_what_is_not_finite_is_refused_in_any_dtype(dtype, bad, where):
    rows = {name: np.ones((400, 20), dtype) for name in ("queries", "keys", "values of the keys")}
    rows[where][3, 4] = bad
    with pytest.raises(lp.errors.InputError, match=f"{where} must be finite, got {bad} in row 3"):
        lp.local_mean(*rows.values(), lp.kernels.Gaussian(2.0))
