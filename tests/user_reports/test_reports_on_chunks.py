"""User reports on Dask chunks: D19b, Q01, Q03, Q05 and their kind."""

from collections.abc import Callable
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
import pytest
from report_cuts import CUTS, every_cut, results

import locpipe as lp
from locpipe.errors import InputError
from locpipe.testing import assert_close, no_compute

GAUSSIAN = lp.kernels.Gaussian(1.0)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "local_mean": lambda q, k, y: lp.local_mean(q, k, y, GAUSSIAN),
    "log_mass": lambda q, k, y: lp.log_mass(q, k, GAUSSIAN),
    "log_density": lambda q, k, y: lp.log_density(q, k, GAUSSIAN),
    "nearest": lambda q, k, y: lp.nearest(q, k, 2)[0],
    "k nearest": lambda q, k, y: lp.local_mean(q, k, y, lp.kernels.Nearest(2)),
}
every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


@every_cut
def test_d19b_an_empty_chunk_of_keys(cut):
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 2.0])
    assert_close(results(lp.local_mean([[1.0]], cut(x), cut(y), GAUSSIAN)), [1.0], rtol=1e-15)


@every_function
def test_d19b_queries_keys_and_values_in_chunks_of_their_own(function):
    rng = np.random.default_rng(0)
    q, k, y = rng.normal(size=(4, 2)), rng.normal(size=(7, 2)), rng.normal(size=7)
    expected = function(q, k, y)
    for cut_q in CUTS.values():
        for cut_k in CUTS.values():
            found = function(cut_q(q), cut_k(k), CUTS["empty between"](y))
            assert found.shape == expected.shape
            np.testing.assert_allclose(results(found), expected, rtol=1e-12)


@every_function
def test_d19b_no_queries_at_all(function):
    k, y = np.ones((3, 2)), np.ones(3)
    trailing = function(k, k, y).shape[1:]
    none = np.empty((0, 2))
    for q in (none, da.from_array(none), da.from_array(none, chunks=((0, 0), (2,)))):
        found = results(function(q, k, y))
        assert (found.shape, found.dtype) == ((0, *trailing), np.float64)


@pytest.mark.parametrize("keys", [np.empty((0, 2)), da.from_array(np.empty((0, 2)))])
@every_function
def test_d19b_no_keys_at_all_are_refused(function, keys):
    with pytest.raises(InputError, match=r"at least one key, got none|neighbours \(0\), got 2"):
        function(np.ones((1, 2)), keys, keys[:, 0])


def filtered(x: Any) -> Any:
    """Rows of unknown number, as a boolean filter leaves them."""
    lazy = da.from_array(np.asarray(x, float), chunks=5)
    return lazy[lazy > 3]


@every_function
def test_q01_queries_of_unknown_chunk_sizes_work(function):
    k = np.arange(5.0)
    found = function(filtered(np.arange(10)), k, k)
    assert np.isnan(found.shape[0])
    assert_close(results(found), function(np.arange(4.0, 10), k, k))


@every_function
def test_q01_keys_of_unknown_chunk_sizes_are_refused_before_anything_is_computed(function):
    x = filtered(np.arange(10))
    with no_compute(), pytest.raises(InputError, match=r"compute_chunk_sizes\(\)"):
        function([1.0], x, x)


@pytest.mark.parametrize("name", ["values", "sample_weight", "bandwidth", "ids", "time"])
def test_q01_attributes_of_unknown_chunk_sizes_are_refused_and_named(name):
    keys = lp.Keys(np.arange(6.0), **{"values": np.arange(6.0), name: filtered(np.arange(10))})
    with no_compute(), pytest.raises(InputError, match=f"^{name} must have the chunks of the rows"):
        lp.local_mean([1.0], keys, kernel=GAUSSIAN)


def test_q01_queries_of_unknown_number_with_attributes():
    x = filtered(np.arange(10))
    keys = lp.Keys(np.arange(5.0), values=np.arange(5.0))
    found = lp.local_mean(lp.Queries(x, bandwidth=x), keys, kernel=GAUSSIAN)
    whole = np.arange(4.0, 10)
    right = lp.local_mean(lp.Queries(whole, bandwidth=whole), keys, kernel=GAUSSIAN)
    assert_close(results(found), right)
    with no_compute(), pytest.raises(InputError, match="must be a Dask array chunked like them"):
        lp.local_mean(lp.Queries(x, bandwidth=whole), keys, kernel=GAUSSIAN)


def test_q01_a_bad_row_of_unknown_place_is_told_within_its_chunk():
    x = filtered(np.arange(10))
    bad = da.where(x > 8, np.nan, x)
    with pytest.raises(InputError, match="queries must be finite, got nan in row 4 of its chunk"):
        results(lp.log_mass(bad, [0.0], GAUSSIAN))


def test_q01_rows_told_apart_by_place_need_known_chunks():
    lazy = lp.nearest(filtered(np.arange(10)), np.arange(10.0), 2, exclude_self=True)[1]
    with pytest.raises(InputError, match="chunk sizes before them are unknown"):
        results(lazy)


@every_function
@pytest.mark.parametrize("what", ["queries", "keys"])
def test_q03_each_chunk_is_computed_once_and_none_is_invented(function, what):
    calls: list[tuple[int, ...]] = []

    def block(chunk: Any) -> Any:
        calls.append(chunk.shape)
        return chunk

    x = da.from_array(np.arange(30.0)[:, None], chunks=((10, 10, 10), (1,)))
    counted = x.map_blocks(block, dtype=x.dtype, meta=np.empty((0, 0)))
    other = np.arange(3.0)[:, None]
    found = function(counted, other, other[:, 0]) if what == "queries" else function(
        other, counted, np.arange(30.0)
    )  # fmt: skip
    assert calls == []
    results(found)
    assert calls == [(10, 1)] * 3


@every_function
def test_q05_no_array_is_embedded_in_the_graph(function):
    keys = np.zeros((1_000_000, 4))
    q = da.zeros((100, 4), chunks=(10, 4))
    with no_compute():
        found = function(q, keys, keys[:, 0])
        assert len(cloudpickle.dumps(found.__dask_graph__())) < 1_000_000


def test_q05_no_weight_nor_bandwidth_is_embedded_either():
    n = 1_000_000
    keys = lp.Keys(
        np.zeros((n, 1)), values=np.zeros(n), sample_weight=np.ones(n), bandwidth=np.ones(n)
    )
    lazy = lp.local_mean(da.zeros((100, 1), chunks=(10, 1)), keys, kernel=GAUSSIAN)
    assert len(cloudpickle.dumps(lazy.__dask_graph__())) < 1_000_000
