"""Products of wide rows against the reference: accuracy in every corner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock, row_slices
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.fused import wide
from locpipe.engines.parts import take_apart
from locpipe.errors import InputError
from locpipe.kernels.normalized import Normalized
from locpipe.reductions import LocalMoments, LogMass, WeightedMean

K, M = lp.kernels, lp.masks
RTOL = {np.float32: 1e-6, np.float64: 1e-10}
PROFILES = (
    K.Biweight, K.Cauchy, K.Cosine, K.Epanechnikov, K.Exponential, K.Gaussian, K.Logistic,
    K.Triangular, K.Tricube, K.Triweight, K.Uniform,
)  # fmt: skip
WIDTHS = (1, 3, 9, 20, 70)


def blocks(d, dtype=np.float32, n=(40, 700), n_outputs=2, seed=0, offset=0.0, **given):
    """Standard normal rows, and whatever the blocks carry beside them."""
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=(rows, d)) + offset for rows in n)
    values = rng.normal(size=(n[1], n_outputs)).astype(dtype)
    q = {name[2:]: array for name, array in given.items() if name.startswith("q_")}
    k = {name[2:]: array for name, array in given.items() if name.startswith("k_")}
    return QueryBlock(x.astype(dtype), **q), KeyBlock(y.astype(dtype), values=values, **k)


def fold(reduction, q, k, kernel, rtol, step=None, state=None):
    """All keys, or block by block."""
    parts = take_apart(kernel, q.data.shape[1])
    state = reduction.init(q) if state is None else state
    for rows in row_slices(k.n_rows, step or k.n_rows):
        state = wide.fold(parts, reduction, state, q, k.rows(rows), rtol)
    return state


def agree(q, k, kernel, rtol, step=None):
    """Mass, log mass and mean by the measure that rtol promises; the same for squares."""
    mean = WeightedMean(k.values.shape[1])
    found = fold(mean, q, k, kernel, rtol, step)
    right = dense.fold(mean, mean.init(q), q, k, kernel)
    sizes = KeyBlock(**{**vars(k), "values": np.abs(k.values)})
    size = dense.fold(mean, mean.init(q), q, sizes, kernel)
    some = right.mass > 0
    np.testing.assert_array_equal(found.mass > 0, some)
    agree_in_log(found, right, some, rtol)
    means, right_means, size_means = (
        s.moment[some] / s.mass[some, None] for s in (found, right, size)
    )
    assert np.all(np.abs(means - right_means) <= rtol * size_means + 1e-300)
    agree_in_squares(q, k, kernel, rtol, step, some)


def agree_in_log(found, right, some, rtol):
    logs, right_logs = (s.shift[some] + np.log(s.mass[some]) for s in (found, right))
    # A log of a million carries no more than ten digits after the point.
    rounding = 1e-15 * np.abs(right_logs)
    assert np.all(np.abs(logs - right_logs) <= rtol + 4 * rounding)


def agree_in_squares(q, k, kernel, rtol, step, some):
    found = fold(LogMass(), q, k, kernel, rtol, step)
    right = dense.fold(LogMass(), LogMass().init(q), q, k, kernel)
    agree_in_log(found, right, some, rtol)
    np.testing.assert_allclose(found.key_weight, right.key_weight, rtol=1e-12)
    effective, right_effective = (
        s.mass[some] ** 2 / s.mass_of_squares[some] for s in (found, right)
    )
    np.testing.assert_allclose(effective, right_effective, rtol=4 * rtol)


@st.composite
def cases(draw):
    """Rows, what they carry, and a kernel."""
    d, dtype = draw(st.sampled_from(WIDTHS)), draw(st.sampled_from([np.float32, np.float64]))
    rng, carried = np.random.default_rng(draw(st.integers(0, 2**16))), {}
    if draw(st.booleans()):
        carried["k_log_sample_weight"] = rng.normal(size=700) * 3
        carried["k_log_sample_weight"][rng.random(700) < 0.3] = -np.inf
    if draw(st.booleans()):
        carried["k_bandwidth"] = rng.uniform(0.5, 2, 700)
    if draw(st.booleans()):
        carried["q_bandwidth"] = rng.uniform(0.5, 2, 40)
    offset = draw(st.sampled_from([0.0, 100.0, 1e4]))
    q, k = blocks(d, dtype, seed=draw(st.integers(0, 2**16)), offset=offset, **carried)
    bandwidth = draw(st.sampled_from([0.3, 1.0, 5.0])) * np.sqrt(d)
    if draw(st.booleans()):
        bandwidth = tuple(bandwidth * rng.uniform(0.7, 1.5, d))
    kernel = draw(st.sampled_from([*PROFILES, lambda h: K.StudentT(3.0, h)]))(bandwidth)
    return q, k, kernel, RTOL[dtype], draw(st.sampled_from([None, 333, 100]))


@given(case=cases())
def test_radial_kernels_keep_rtol(case):
    agree(*case)


@given(
    d=st.sampled_from(WIDTHS),
    dtype=st.sampled_from([np.float32, np.float64]),
    scale=st.sampled_from([None, 0.1, 1.0, 20.0]),
    offset=st.sampled_from([0.0, 3.0]),
    step=st.sampled_from([None, 200]),
    seed=st.integers(0, 2**16),
)
def test_dot_products_keep_rtol(d, dtype, scale, offset, step, seed):
    q, k = blocks(d, dtype, seed=seed, offset=offset)
    agree(q, k, K.DotProduct(scale), RTOL[dtype], step)


MASKS = {
    "causal": (M.Causal(),),
    "causal with an offset": (M.Causal(460.5),),
    "window": (M.Window(25),),
    "self": (M.ExcludeSelf(),),
    "all": (M.Causal(300), M.Window(150), M.ExcludeSelf()),
}


@pytest.mark.parametrize("core", [K.Gaussian(2.0), K.DotProduct(), K.Epanechnikov(9.0)], ids=repr)
@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("given_times", [False, True], ids=["by index", "given"])
def test_masks(core, masks, given_times):
    rng, carried = np.random.default_rng(1), {"k_log_sample_weight": np.zeros(800)}
    carried["k_log_sample_weight"][::7] = -np.inf
    if given_times:
        for side, n in (("q", 300), ("k", 800)):
            carried[f"{side}_time"] = rng.integers(0, 800, n)
            carried[f"{side}_ids"] = rng.integers(0, 50, n)
    q, k = blocks(16, n=(300, 800), **carried)
    kernel = core
    for mask in masks:
        kernel = kernel * mask
    agree(q, k, kernel, 1e-6, step=700)


def test_tiles_that_a_mask_empties_are_skipped(monkeypatch):
    from locpipe.engines.fused import wide_logs

    filled, fold_tile = [], wide_logs.Linear.fold

    def note(self, sums, rows, columns, *rest):
        filled.append((rows.stop, columns.start))
        fold_tile(self, sums, rows, columns, *rest)

    monkeypatch.setattr(wide_logs.Linear, "fold", note)
    q, k = blocks(12, n=(2048, 2048))
    fold(WeightedMean(2), q, k, K.Gaussian(5.0) * M.Causal(), 1e-6)
    below = [(row, key) for row in (504, 1008, 1512, 2016, 2048) for key in range(0, row, 512)]
    assert filled == below  # those above the diagonal are left out


@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("d", [2, 30])
def test_queries_far_from_all_keys(d, dtype):
    q, k = blocks(d, dtype)
    far = q.data.copy()
    far[::2] += dtype(1e3)
    far[::5] -= dtype(1e5)
    agree(QueryBlock(far), k, K.Gaussian(0.7), RTOL[dtype])
    agree(QueryBlock(far), k, K.StudentT(2.0, 0.7), RTOL[dtype])
    agree(QueryBlock(far), k, K.Exponential(0.7), RTOL[dtype])


@pytest.mark.parametrize("dtype", RTOL)
def test_outliers_among_the_keys_spoil_no_other_row(dtype):
    q, k = blocks(20, dtype)
    outliers = k.data.copy()
    outliers[::50] *= dtype(1e6)
    agree(q, KeyBlock(outliers, values=k.values), K.Gaussian(1.2), RTOL[dtype])


@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("gap", [1e2, 1e6])
@pytest.mark.parametrize("kernel", [K.Gaussian(1.0), K.Uniform(5.0), K.Triangular(6.0)], ids=repr)
def test_clusters_far_apart(kernel, gap, dtype):
    """No centre serves both, so products are given up for differences."""
    q, k = blocks(16, dtype)
    x, y = q.data.copy(), k.data.copy()
    x[::2] += dtype(gap)
    y[::2] += dtype(gap)
    agree(QueryBlock(x), KeyBlock(y, values=k.values), kernel, RTOL[dtype])


def test_near_identical_rows_far_out():
    """512 features at 37.5, moved by 2**-8: the squared distance is 0.0078125, and not 0."""
    x = np.full((1, 512), 37.5, dtype=np.float32)
    keys = np.concatenate([x + np.float32(2.0**-8), np.zeros_like(x), -x])
    state = fold(LogMass(), QueryBlock(x), KeyBlock(keys), K.Gaussian(0.1), 1e-6)
    assert np.isclose(state.shift + np.log(state.mass), -0.0078125 / 0.02, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("offset", [0, 3000])
def test_balls_have_the_reference_s_members_to_the_edge(dtype, offset):
    """Whole coordinates: many pairs lie exactly on the sphere of radius 5."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 4, (n, 9)).astype(dtype) + dtype(offset) for n in (60, 900))
    q, k = QueryBlock(x), KeyBlock(y, values=np.ones((900, 1), dtype))
    found = fold(WeightedMean(1), q, k, K.Uniform(5.0), RTOL[dtype])
    right = ((x[:, None] - y[None]) ** 2).sum(axis=2) <= 25
    np.testing.assert_array_equal(np.round(np.exp(found.shift) * found.mass), right.sum(axis=1))


@pytest.mark.parametrize("log_weight", [-690.0, 690.0])
def test_masses_from_1e_minus_300_to_1e300(log_weight):
    log_weights = np.full(700, log_weight)
    log_weights[::3] -= 600
    q, k = blocks(12, np.float64, k_log_sample_weight=log_weights)
    for kernel in (K.Gaussian(1.0), K.Epanechnikov(4.0), K.Cauchy(1.0)):
        agree(q, k, kernel, 1e-10)


@pytest.mark.parametrize("dtype", RTOL)
def test_products_beyond_the_range_of_exp(dtype):
    q, k = blocks(16, dtype)
    agree(q, k, K.DotProduct(500.0), RTOL[dtype])


def test_products_beyond_float64_are_refused():
    q, k = (
        QueryBlock(np.full((2, 4), 1e150)),
        KeyBlock(np.full((3, 4), 1e150), values=np.ones((3, 1))),
    )
    with pytest.raises(InputError, match="dot product must be at most"):
        fold(WeightedMean(1), q, k, K.DotProduct(1e6), 1e-10)


@pytest.mark.parametrize("size", [1e-120, 1e120])
def test_coordinates_of_any_size(size):
    q, k = blocks(10, np.float64)
    q, k = QueryBlock(q.data * size), KeyBlock(k.data * size, values=k.values)
    agree(q, k, K.Gaussian(size), 1e-10)
    agree(q, k, K.Gaussian(1e-140), 1e-10)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_values_of_any_size(scale):
    q, k = blocks(16)
    agree(q, KeyBlock(k.data, values=k.values * np.float32([1, scale])), K.Gaussian(1.0), 1e-6)


def test_densities_with_bandwidths_of_rows():
    rng = np.random.default_rng(0)
    given = {"k_bandwidth": rng.uniform(0.5, 2, 700), "q_bandwidth": rng.uniform(0.5, 2, 40)}
    q, k = blocks(11, np.float64, **given)
    agree(q, k, Normalized(K.Gaussian(1.5)), 1e-10)
    agree(q, k, Normalized(K.Triweight(6.0)), 1e-10)


def test_keys_as_their_own_queries():
    _, k = blocks(300, n=(1, 900))
    agree(QueryBlock(k.data), k, K.Gaussian(0.3 * 300**0.5), 1e-6)
    agree(QueryBlock(k.data), k, K.Gaussian(1.0), 1e-6)


def test_states_of_other_engines_go_on():
    """A state at any scale, and one that is never written."""
    q, k = blocks(16, np.float64)
    kernel, mean = K.Gaussian(1.0), WeightedMean(2)
    first = dense.fold(mean, mean.init(q), q, k.rows(slice(0, 300)), kernel)
    moved = type(first)(first.shift + 600, first.mass * np.exp(-600), first.moment * np.exp(-600))
    for array in moved:
        array.setflags(write=False)
    found = fold(mean, q, k.rows(slice(300, 700)), kernel, 1e-10, state=moved)
    right = dense.fold(mean, mean.init(q), q, k, kernel)
    agree_in_log(found, right, right.mass > 0, 1e-10)


def test_views_and_read_only_rows():
    q, k = blocks(40, n=(80, 900))
    x, y = q.data[::2, ::-2], k.data[:, 1::2]
    for array in (x, y, k.values):
        array.setflags(write=False)
    agree(QueryBlock(x), KeyBlock(y, values=k.values), K.Gaussian(2.0), 1e-6)


def test_many_queries_and_outputs():
    """More queries than are made ready at once, and outputs enough for other tiles."""
    q, k = blocks(9, n=(4300, 60))
    agree(q, k, K.Gaussian(2.0), 1e-6)
    q, k = blocks(12, n=(50, 3000), n_outputs=300)
    agree(q, k, K.Gaussian(2.0), 1e-6)


def test_costs_grow_with_the_work():
    def seconds(kernel, d, n_outputs, rtol):
        need = Need(kernel, WeightedMean(n_outputs), 1000, 1000, d, n_outputs, rtol)
        assert wide.tile_bytes(take_apart(kernel, d), need) < 2**27
        return wide.seconds(take_apart(kernel, d), need)

    base = seconds(K.Gaussian(1.0), 64, 64, 1e-6)
    assert base < seconds(K.Gaussian(1.0), 65, 64, 1e-6)
    assert base < seconds(K.Gaussian(1.0), 64, 65, 1e-6)
    assert base < seconds(K.Gaussian(1.0), 64, 64, 1e-9)
    assert base < seconds(K.Uniform(1.0), 64, 64, 1e-6)


def test_no_key_of_any_weight():
    q, k = blocks(12, k_log_sample_weight=np.full(700, -np.inf))
    state = fold(LogMass(), q, k, K.Gaussian(1.0), 1e-6)
    assert not state.mass.any()
    assert not state.key_weight.any()


def test_what_is_not_served():
    def refused(kernel, reduction):
        need = Need(kernel, reduction, 10, 10, 20, 2, 1e-6)
        return wide.refusal(take_apart(kernel, 20), need)

    assert refused(K.Gaussian(1.0), WeightedMean(2)) is None
    assert refused(K.DotProduct() * M.Causal(), LogMass()) is None
    assert "dense" in refused(K.Gaussian(1.0), LocalMoments(1, (1.0,) * 20))
    assert "own kernels" in refused(K.Gaussian(1.0, metric="manhattan"), LogMass())


@pytest.mark.parametrize("kernel", [K.DotProduct(0.01), K.Cauchy(30.0)], ids=repr)
def test_many_keys_alike(kernel):
    """Where all weights are equal, all roundings of a sum go the same way."""
    q, k = blocks(16, n=(100, 1024), n_outputs=17)
    keys, values = (np.repeat(rows[:2], 512, axis=0) for rows in (k.data, np.abs(k.values)))
    agree(q, KeyBlock(keys, values=values), kernel, 1e-6)


def test_labels_of_far_keys_under_kernels_that_are_no_products():
    """Weights of 2 to the minus 50 are right to rtol too, each alone in its column."""
    rng = np.random.default_rng(0)
    given = {"k_bandwidth": rng.uniform(0.5, 2, 700)}
    q, k = blocks(16, n=(60, 700), **given)
    labels = np.eye(100, dtype=np.float32)[rng.integers(0, 100, 700)]
    labelled = KeyBlock(k.data, values=labels, bandwidth=k.bandwidth)
    agree(q, labelled, K.Gaussian(0.5), 1e-6)


def test_later_blocks_of_keys_beside_logs_of_billions():
    """A sum at such a level has no neighbour among the levels that float32 knows."""
    q, k = blocks(16, np.float64)
    keys = k.data.copy()
    keys[:100] += 1e6
    agree(q, KeyBlock(keys, values=k.values), K.Gaussian(0.5), 1e-3, step=100)
    keys[100:] += 2e6
    agree(q, KeyBlock(keys, values=k.values), K.Gaussian(0.5), 1e-3, step=100)


@pytest.mark.parametrize("d", [16, 256])
@pytest.mark.parametrize("spread", [0.0, 1e-3])
def test_keys_that_are_alike_err_alike(d, spread):
    rng = np.random.default_rng(d)
    places = rng.normal(size=d) * 0.3
    signs = [np.where(rng.random(n) < 0.5, 1, -1)[:, None] for n in (40, 3000)]
    x, y = (
        (sign * places + spread * rng.normal(size=(len(sign), d))).astype(np.float32)
        for sign in signs
    )
    values = np.abs(rng.normal(size=(3000, 5))).astype(np.float32)
    agree(QueryBlock(x), KeyBlock(y, values=values), K.Gaussian(1.0), 1e-6)


def test_outputs_that_are_large_in_different_places():
    """The sizes that are usual in all keys are not those of a query's neighbours."""
    q, k = blocks(32, n=(60, 4000))
    values = np.full((4000, 2), 1e-7, dtype=np.float32)
    far = k.data[:, 0] > 1
    values[far, 0], values[~far, 1] = 1.0, 1.0
    agree(q, KeyBlock(k.data, values=values), K.Gaussian(1.7), 1e-6)


def test_a_query_far_from_the_only_key():
    """What rounding takes of the query counts in full: there is nothing that averages it."""
    rng = np.random.default_rng(1)
    q = QueryBlock((40 * rng.normal(size=(64, 12))).astype(np.float32))
    key = KeyBlock(np.zeros((1, 12), np.float32), values=np.ones((1, 1), np.float32))
    agree(q, key, K.Gaussian(tuple(rng.uniform(0.6, 2, 12))), 1e-6)
