"""Prepared keys: what one pass tells, and the same results to the bit."""

from dataclasses import replace

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import locpipe as lp
from locpipe.errors import InputError
from locpipe.store import ZarrKeys

GAUSSIAN = lp.kernels.Gaussian(0.7)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def stored(folder, **arrays):
    for name, array in arrays.items():
        zarr.create_array(str(folder), name=name, data=array, chunks=(7, *array.shape[1:]))
    return ZarrKeys(str(folder), "x", "v", "w")


def kinds(folder, x, v, w):
    """The same keys as every kind, prepared."""
    chunked = [da.from_array(a, chunks=(5, *a.shape[1:])) for a in (x, v, w)]
    return {
        "numpy": lp.prepare(x, v, w),
        "dask": lp.prepare(*chunked),
        "mixed": lp.prepare(chunked[0], v, chunked[2]),
        "keys": lp.prepare(lp.Keys(x, values=v, sample_weight=w)),
        "store": lp.prepare(stored(folder, x=x, v=v, w=w)),
    }


def test_box_and_moments_are_those_of_the_keys_that_weigh(tmp_path, rng):
    x, v = rng.normal(size=(40, 3)) * [1, 10, 0.1] + 5, rng.normal(size=(40, 2))
    w = rng.uniform(0, 2, 40)
    w[:12] = 0
    x[0] = 1e6  # weighs nothing: not in the box
    for kind, keys in kinds(tmp_path, x, v, w).items():
        mean = np.average(x, axis=0, weights=w)
        variance = np.average((x - mean) ** 2, axis=0, weights=w)
        np.testing.assert_allclose(keys.mean, mean, rtol=1e-12, err_msg=kind)
        np.testing.assert_allclose(keys.variance, variance, rtol=1e-12)
        np.testing.assert_array_equal(keys.low, x[12:].min(axis=0))
        np.testing.assert_array_equal(keys.high, x[12:].max(axis=0))
        assert keys.total_weight == pytest.approx(w.sum())
        assert (keys.n_keys, keys.n_features) == (40, 3)


def test_moments_far_from_the_origin(rng):
    x = (rng.normal(size=(100_000, 1)) + 1e8).astype(np.float64)
    keys = lp.prepare(x)
    np.testing.assert_allclose(keys.variance, x.var(axis=0), rtol=1e-9)
    assert keys.total_weight == 100_000.0


def test_results_are_the_same_to_the_bit(tmp_path, rng):
    x, v, q = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)), rng.normal(size=(30, 2))
    w = rng.uniform(0, 2, 300)
    chunked = [da.from_array(a, chunks=(100, *a.shape[1:])) for a in (x, v, w)]
    for plain, keys in (
        (lp.Keys(x, v, w), lp.prepare(x, v, w)),
        (lp.Keys(*chunked), lp.prepare(*chunked)),
        (stored(tmp_path, x=x, v=v, w=w), lp.prepare(ZarrKeys(str(tmp_path), "x", "v", "w"))),
    ):
        for function in (
            lambda k: lp.local_mean(q, k, kernel=GAUSSIAN),
            lambda k: lp.log_density(q, k, GAUSSIAN),
            lambda k: lp.log_mass(q, k, GAUSSIAN),
            lambda k: lp.nearest(q, k, 3),
            lambda k: lp.fold(lp.reductions.LogMass(), q, k, GAUSSIAN),
        ):
            ours, theirs = dask.compute(function(keys), function(plain))
            np.testing.assert_array_equal(ours, theirs)
        plans = [lp.plan(q, k, GAUSSIAN) for k in (keys, plain)]
        assert replace(plans[0], peak_bytes=0) == replace(plans[1], peak_bytes=0)


def test_checks_run_once(rng):
    x = rng.normal(size=(30, 2))
    seen = []

    def look(block):
        seen.append(len(block))
        return block

    lazy = da.from_array(x, chunks=(10, 2)).map_blocks(look, dtype=x.dtype, meta=np.empty((0, 0)))
    keys = lp.prepare(lazy)
    assert seen == [10, 10, 10]
    assert keys.rows.data.name == lazy.name  # no check hangs on it any more


def test_unknown_chunk_sizes_become_known(rng):
    x, w = rng.normal(size=(30, 2)), rng.uniform(1, 2, 30)
    cut = da.from_array(x, chunks=(10, 2)), da.from_array(w, chunks=10)
    x_lazy, w_lazy = cut[0][cut[0][:, 0] > 0], cut[1][cut[0][:, 0] > 0]
    keys = lp.prepare(x_lazy, sample_weight=w_lazy)
    some = x[:, 0] > 0
    assert keys.rows.data.shape == (some.sum(), 2)
    ours = lp.log_density(x[:5], keys, GAUSSIAN).compute()
    plain = lp.log_density(x[:5], x[some], GAUSSIAN, sample_weight=w[some])
    np.testing.assert_allclose(ours, plain, rtol=1e-12)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("x", "w", "message"),
    [
        ([[0.0], [np.nan]], None, "keys must be finite, got nan in row 1"),
        ([[0.0], [1.0]], [1.0, -1.0], "must be non-negative, got -1.0"),
        ([[0.0], [1.0]], [0.0, 0.0], "at least one positive entry, got all zeros"),
    ],
)
def test_bad_keys_are_refused(lazy, x, w, message):
    x, w = np.array(x), None if w is None else np.array(w)
    if lazy:
        x, w = da.from_array(x, chunks=1), None if w is None else da.from_array(w, chunks=1)
    with pytest.raises(InputError, match=message):
        lp.prepare(x, sample_weight=w)


def test_other_refusals(rng):
    x = rng.normal(size=(4, 2))
    keys = lp.prepare(x)
    with pytest.raises(InputError, match="prepared keys bring their own values"):
        lp.local_mean(x, keys, x, GAUSSIAN)
    with pytest.raises(InputError, match="at least one key, got none"):
        lp.prepare(np.empty((0, 2)))
    with pytest.raises(InputError, match=r"unknown option\(s\) \['fast'\]"):
        lp.prepare(x, fast=True)
    lazy = da.from_array(x, chunks=(2, 2))
    fewer = lazy[lazy[:, 0] > x[:, 0].min()]
    with pytest.raises(InputError, match="values must have one row per row"):
        lp.prepare(lazy[lazy[:, 0] > -9], fewer)
