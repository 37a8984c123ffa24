"""Times of any integer type: compared and subtracted as the whole numbers they are."""

import array_api_strict as strict
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.kernels import Gaussian, Nearest, Nearness, Tricube
from locpipe.kernels.masks import Causal, Window
from locpipe.kernels.times import around_origins, at_most
from locpipe.testing import assert_close

INTEGERS = [np.bool_, np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64]
NOW = 1_700_000_000_000_000_000


def times(dtype):
    """Numbers near the ends of a type, and near 0."""
    if dtype is np.bool_:
        return st.booleans()
    info = np.iinfo(dtype)
    near = [info.min, info.max, 0, 2**63]
    pieces = [
        st.integers(max(info.min, c - 3), min(info.max, c + 3)) for c in near if c <= info.max
    ]
    return st.one_of(*pieces, st.integers(info.min, info.max))


@given(st.data(), st.sampled_from(INTEGERS), st.sampled_from(INTEGERS))
def test_whole_numbers_are_compared_exactly(data, one, other):
    t = data.draw(st.lists(times(one), min_size=1, max_size=4))
    s = data.draw(st.lists(times(other), min_size=1, max_size=4))
    if (one is np.uint64) != (other is np.uint64):
        t, s = ([x for x in xs if x < 2**63] or [0] for xs in (t, s))
    offset = data.draw(
        st.one_of(st.floats(-300, 300), st.integers(-(2**65), 2**65), st.sampled_from([0, 0.5]))
    )
    width = data.draw(st.one_of(st.floats(1, 300), st.integers(1, 2**65)))
    expected = [[int(b) <= int(a) + offset for b in s] for a in t]
    if isinstance(offset, float):
        expected = [[int(b) - int(a) <= np.floor(offset) for b in s] for a in t]
    if abs(offset) < 2**64 - 1:
        found = at_most(np.array(s, other), np.array(t, one), offset)
        assert found.tolist() == expected
        again = at_most(
            strict.asarray(np.array(s, other)), strict.asarray(np.array(t, one)), offset
        )
        assert np.from_dlpack(again).tolist() == expected
    q = QueryBlock(np.zeros((len(t), 1)), time=np.array(t, one))
    k = KeyBlock(np.zeros((len(s), 1)), time=np.array(s, other))
    seen = Window(width).log_weights(q, k) == 0
    assert seen.tolist() == [[0 <= int(a) - int(b) < width for b in s] for a in t]


@pytest.mark.parametrize(
    ("mask", "dtype", "query", "keys", "expected"),
    [
        (Window(20), np.uint8, [5], [4, 250], [1]),
        (Causal(5000), np.int16, [30000], [20000, 32767], [1.5]),
        (Causal(-3600), np.uint32, [10_000], [6400, 6401], [1]),
        (Window(1), np.bool_, [True], [False, True], [2]),
        (Window(2), np.bool_, [True], [False, True], [1.5]),
        (Causal(1.0), np.int64, [NOW], [NOW + 1, NOW + 2], [1]),
        (Causal(0.5), np.int64, [NOW], [NOW, NOW + 1], [1]),
    ],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_times_do_not_wrap(mask, dtype, query, keys, expected, lazy):
    k = lp.Keys([0.0, 0.0], [1.0, 2.0], time=np.array(keys, dtype))
    if lazy:
        k = lp.Keys(
            *(da.from_array(np.asarray(x), chunks=1) for x in (k.data, k.values)), time=k.time
        )
    q = lp.Queries([0.0], time=np.array(query, dtype))
    assert_close(np.asarray(lp.local_mean(q, k, kernel=mask)), np.array(expected), 0)


def test_unsigned_and_signed_times_beyond_int64():
    big = np.array([2**63 + 5], np.uint64)
    assert at_most(big - np.uint64(5), big, -5).tolist() == [[True]]
    message = (
        r"times of queries and keys must both be uint64 where some exceed 2\*\*63, got uint64 on"
    )
    with pytest.raises(InputError, match=message):
        at_most(np.array([1]), big, 0)


def test_floating_times_are_compared_in_float64():
    t = np.array([2.0**24], np.float32)
    assert at_most(np.array([2.0**24 + 2], np.float32), t, 1).tolist() == [[False]]
    assert at_most(np.array([2**24 + 1]), t, 1).tolist() == [[True]]


@pytest.mark.parametrize("offset", [10**400, -(10**400)])
def test_an_offset_beyond_float64(offset):
    with pytest.raises(InputError, match=r"offset must be a finite number, got -?1000"):
        Causal(offset)


def mean_by_hand(t, s, y, h):
    rows = []
    for a in t:
        u = np.array([float(int(a) - int(b)) / h for b in s])
        w = np.exp(-0.5 * (u**2 - (u**2).min()))
        rows.append((w * y).sum() / w.sum())
    return np.array(rows)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2**20, 2**40, 2**55]))
def test_nanoseconds_keep_their_bits(seed, spread):
    rng = np.random.default_rng(seed)
    s = NOW + rng.integers(0, 40, 12) + spread * rng.integers(-20, 20, 12)
    t = s[:6] + rng.integers(-5, 5, 6)
    y = rng.normal(size=12)
    kernel = Gaussian(10.0).on("time", "time")
    expected = mean_by_hand(t, s, y, 10.0)
    found = lp.local_mean(
        lp.Queries(np.zeros(6), time=t), lp.Keys(np.zeros(12), y, time=s), kernel=kernel
    )
    assert_close(found, expected, 1e-10)
    q = lp.Queries(da.zeros(6, chunks=4), time=da.from_array(t, chunks=4))
    k = lp.Keys(da.zeros(12, chunks=5), da.from_array(y, chunks=5), time=da.from_array(s, chunks=5))
    assert_close(lp.local_mean(q, k, kernel=kernel).compute(scheduler="sync"), expected, 1e-10)


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(10.0),
        Tricube(50.0, metric="manhattan"),
        Nearest(1),
        Nearness(),
        Gaussian(10.0).nearness(),
        Gaussian(10.0) * Tricube(1e9) * Causal(2**62),
        Gaussian(10.0) * Causal(),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_any_kernel_of_differences_sees_whole_numbers(kernel, dtype):
    q = lp.Queries([0.0], time=np.array([NOW + 10], dtype))
    k = lp.Keys([0.0, 0.0], [1.0, 2.0], time=np.array([NOW, NOW + 100], dtype))
    small = lp.Queries([0.0], time=[10.0]), lp.Keys([0.0, 0.0], [1.0, 2.0], time=[0.0, 100.0])
    seen = kernel.on("time", "time")
    expected = lp.local_mean(*small, kernel=seen)
    assert_close(lp.local_mean(q, k, kernel=seen), expected, 1e-12)
    assert expected[0] < 1.001


def test_groups_do_not_depend_on_the_block():
    rng = np.random.default_rng(0)
    t = rng.integers(-(2**62), 2**62, 50)
    kernel = Gaussian(1e17).on("time", "time")
    q, k = QueryBlock(np.zeros((50, 1)), time=t), KeyBlock(np.zeros((50, 1)), time=t)
    whole = kernel.log_weights(q, k)
    for i in range(0, 50, 7):
        part = kernel.log_weights(q.rows(slice(i, i + 7)), k.rows(slice(i, 50)))
        np.testing.assert_array_equal(part, whole[i : i + 7, i:])
    assert kernel.log_weights(q.rows(slice(0, 0)), k).shape == (0, 50)
    assert_close(whole, -0.5 * ((t[:, None] - t[None, :].astype(float)) / 1e17) ** 2, 1e-9)


@given(st.lists(times(np.int64), min_size=1), st.lists(times(np.int64), min_size=1))
def test_differences_are_right_to_the_last_place(t, s):
    found = np.full((len(t), len(s)), np.nan)
    for rows, near_t, near_s in around_origins(np.array(t, np.int64), np.array(s, np.int64)):
        found[rows] = near_t[:, None] - near_s[None, :]
    for i, a in enumerate(t):
        for j, b in enumerate(s):
            exact = a - b
            assert abs(int(found[i, j]) - exact) <= (
                0 if abs(exact) <= 2**52 else abs(exact) * 2**-51
            )


def test_whole_numbers_of_another_library():
    t, s = strict.asarray([NOW + 10, NOW - 2**60]), strict.asarray([NOW, NOW + 100])
    q, k = QueryBlock(strict.zeros((2, 1)), time=t), KeyBlock(strict.zeros((2, 1)), time=s)
    log_w = np.from_dlpack(Gaussian(10.0).on("time", "time").log_weights(q, k))
    assert_close(log_w[0], np.array([-0.5, -40.5]), 1e-15)


def test_other_kernels_see_whole_numbers_as_they_are():
    q = QueryBlock(np.zeros((1, 1)), time=np.array([3]))
    k = KeyBlock(np.zeros((2, 1)), time=np.array([2, 5]))
    dot = lp.kernels.DotProduct(1.0).on("time", "time")
    assert dot.log_weights(q, k).tolist() == [[6.0, 15.0]]
    both = (lp.kernels.DotProduct(1.0) * Gaussian()).on("time", "time")
    assert both.log_weights(q, k).tolist() == [[5.5, 13.0]]
