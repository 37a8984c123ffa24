"""Five uses that the interfaces must serve; they were written first, and freeze signatures."""

import numpy as np
import pytest

import locpipe as lp
from locpipe.blocks import ArrayPairs
from locpipe.graph import fold
from locpipe.reductions import MajorizationStep
from locpipe.testing import assert_close, local_mean_reference, majorization_reference


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_local_mean_with_a_bandwidth_per_key(rng):
    x, v, h = rng.normal(size=(30, 2)), rng.normal(size=(30, 3)), rng.uniform(0.5, 2, 30)
    q = rng.normal(size=(7, 2))
    w = np.exp(-0.5 * ((q[:, None] - x[None]) ** 2).sum(2) / h**2)
    mean = lp.local_mean(q, lp.Keys(x, bandwidth=h), v, lp.kernels.Gaussian())
    assert_close(mean, w @ v / w.sum(1, keepdims=True))


def test_exclude_self_by_ids(rng):
    x, v = rng.normal(size=(20, 2)), rng.normal(size=(20, 1))
    ids = rng.permutation(20)
    kernel = lp.kernels.Gaussian(0.7) * lp.masks.ExcludeSelf()
    mean = lp.local_mean(lp.Queries(x, ids=ids), lp.Keys(x, ids=ids), v, kernel)
    expected = [
        local_mean_reference(x[i : i + 1], np.delete(x, i, 0), np.delete(v, i, 0), 0.7)[0]
        for i in range(20)
    ]
    assert_close(mean, np.array(expected))


def test_bilateral_kernel():
    # Theory sheet 1.6: seven zeros and five ones, flat in space, h = 0.4 in the values.
    y = np.r_[np.zeros(7), np.ones(5)][:, None]
    x = np.arange(12.0)[:, None]
    kernel = lp.kernels.Gaussian(1e9) * lp.kernels.Gaussian(0.4).on(query="values", key="values")
    mean = lp.local_mean(lp.Queries(x, values=y), lp.Keys(x, values=y), kernel=kernel)
    assert_close(mean[0, 0], 0.030428568312296, rtol=1e-11)


def test_one_pass_of_unfolding_from_a_pair_source(rng):
    x, y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2))
    delta, w = rng.uniform(1, 3, (40, 30)), rng.uniform(0, 1, (40, 30))
    delta[rng.random(delta.shape) < 0.2] = np.nan
    s = fold(MajorizationStep(2), lp.Queries(x), lp.Keys(y), pairs=ArrayPairs(delta, w))
    moved = (s.moment + x * s.ratio[:, None] - s.ratio_moment) / s.weight[:, None]
    expected, stress = majorization_reference(x, y, delta, w)
    assert_close(moved, expected)
    assert_close(s.stress.sum(), stress)


def test_keys_from_a_zarr_store(rng, tmp_path):
    import zarr

    from locpipe.store import ZarrKeys

    x, v = rng.normal(size=(100, 2)), rng.normal(size=(100, 1))
    group = zarr.open_group(tmp_path / "keys.zarr", mode="w")
    group.create_array("x", data=x, chunks=(30, 2))
    group.create_array("v", data=v, chunks=(40, 1))
    keys = ZarrKeys(str(tmp_path / "keys.zarr"), data="x", values="v")
    q = rng.normal(size=(9, 2))
    mean = lp.local_mean(q, keys, kernel=lp.kernels.Gaussian(0.5))
    assert_close(mean, local_mean_reference(q, x, v, 0.5))
