"""`lp.nearest`: weights, places without a key, and angles."""

import array_api_strict as strict
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.errors import InputError
from locpipe.kernels import Gaussian, Nearest, Tricube
from locpipe.metrics import METRICS
from locpipe.reductions import ArgBest


def kinds_of_keys(x, w):
    lazy = da.from_array(x, chunks=(2, -1))
    return [
        lp.Keys(x, sample_weight=w),
        lp.Keys(lazy, sample_weight=w),
        lp.Keys(lazy, sample_weight=da.from_array(w, chunks=3)),
        lp.prepare(x, sample_weight=w),
        lp.prepare(lazy, sample_weight=w),
    ]


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(METRICS)), st.booleans())
def test_weights_only_say_which_keys_are_there(seed, metric, exclude_self):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (7, 2))
    w = rng.choice([0.0, 1e-300, 1.0, 1e100], 7)
    w[:2] = 1.0, 3.0
    there = np.flatnonzero(w)
    q = lp.Queries(x[:2], ids=[0, 1])
    some = lp.Keys(x[there], ids=there)
    plain = lp.nearest(q, some, 1, metric=metric, exclude_self=exclude_self)
    for keys in kinds_of_keys(x, w):
        found = lp.nearest(q, keys, 1, metric=metric, exclude_self=exclude_self)
        np.testing.assert_array_equal(np.asarray(found[0]), plain[0])
        np.testing.assert_array_equal(np.asarray(found[1]), there[plain[1]])


def test_weights_of_rows_among_themselves():
    x = np.random.default_rng(0).normal(size=(5000, 1))
    w = np.linspace(1, 1e6, 5000)
    expected = lp.nearest(x, x, 2, exclude_self=True)
    found = lp.nearest(x, lp.Keys(x, sample_weight=w), 2, exclude_self=True, n_threads=1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_places_without_a_key_are_infinitely_far(metric):
    x = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, -0.1]])
    w = np.array([0.0, 2.0, 1.0])
    for dtype in (np.float32, np.float64):
        for keys in kinds_of_keys(x, w):
            distance, index = map(
                np.asarray, lp.nearest(x[:1].astype(dtype), keys, 3, metric=metric)
            )
            assert distance.dtype == dtype
            assert np.isfinite(distance[0, :2]).all()
            assert sorted(index[0, :2]) == [1, 2]
            assert (distance[0, 2], index[0, 2]) == (np.inf, -1)


def test_places_without_a_key_in_any_library():
    x = strict.asarray([[0.0], [1.0]])
    distance, index = lp.nearest(x, lp.Keys(x, sample_weight=strict.asarray([0.0, 1.0])), 2)
    np.testing.assert_array_equal(np.from_dlpack(distance), [[1, np.inf], [0, np.inf]])
    np.testing.assert_array_equal(np.from_dlpack(index), [[1, -1], [1, -1]])


def test_k_is_at_most_the_number_of_keys_whatever_they_weigh():
    for keys in kinds_of_keys(np.zeros((3, 1)), np.array([0.0, 1.0, 1.0])):
        with pytest.raises(InputError, match=r"that can be neighbours \(3\), got 4$"):
            lp.nearest([0.0], keys, 4)


DEGREES = np.array([[52.0, 13.0], [48.0, 2.0]])
MESSAGE = r"latitudes of the queries must be radians between -pi/2 and pi/2, got [0-9.]+ in row"


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.1, metric="haversine"),
        Tricube(metric="haversine") * Gaussian(),
        lp.masks.ExcludeSelf() * Gaussian(metric="haversine"),
        Nearest(1, metric="haversine"),
        Gaussian(metric="haversine").nearness(),
    ],
    ids=str,
)
def test_angles_are_radians_under_any_kernel(kernel):
    calls = [
        lambda x: lp.local_mean(x, x, [1.0, 2.0], kernel),
        lambda x: lp.log_mass(x, x, kernel),
        lambda x: lp.fold(ArgBest(), x, x, kernel),
    ]
    for call in calls:
        with pytest.raises(InputError, match=MESSAGE):
            call(DEGREES)
    lazy = lp.log_mass(da.from_array(DEGREES, chunks=1), np.deg2rad(DEGREES), kernel)
    with pytest.raises(InputError, match=MESSAGE):
        lazy.compute(scheduler="sync")
    calls[1](np.deg2rad(DEGREES))


def test_rows_on_the_sphere_are_recognised_behind_their_checks():
    lazy = da.from_array(np.deg2rad(DEGREES), chunks=1)
    plan = lp.plan(lazy, lazy, Gaussian(metric="haversine"), reduction="log_mass")
    plain = lp.plan(lazy, lazy, Gaussian(), reduction="log_mass")
    assert plan.strategy == plain.strategy
