"""Loops over few features against the reference, pass by pass."""

import numpy as np
import pytest

import locpipe as lp
from locpipe.blocks import UNKNOWN_START, KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.engines.base import Need
from locpipe.engines.fused import Fused, small, small_fold
from locpipe.engines.parts import take_apart
from locpipe.errors import InputError
from locpipe.kernels.normalized import Normalized
from locpipe.reductions import LocalMoments, LogMass, WeightedMean

K = lp.kernels
FEW, MANY = 61, 1500
COMPACT = (K.Biweight, K.Cosine, K.Epanechnikov, K.Triangular, K.Tricube, K.Triweight, K.Uniform)
TAILED = (K.Cauchy, K.Exponential, K.Gaussian, K.Logistic)
PROFILES = (*COMPACT, *TAILED)


def blocks(d=2, n_outputs=2, dtype=np.float64, seed=0, offset=0.0, spread=1.0, **given):
    """Queries and keys; what is given by name as a range becomes uniform numbers per row."""
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=(n, d)) * spread + offset for n in (FEW, MANY))
    attributes = {"q": {}, "k": {}}
    for name, (low, high) in given.items():
        side, field = name.split("_", 1)
        n = FEW if side == "q" else MANY
        attributes[side][field] = rng.uniform(low, high, n)
    values = rng.normal(size=(MANY, n_outputs)).astype(dtype)
    q = QueryBlock(x.astype(dtype), **attributes["q"])
    return q, KeyBlock(y.astype(dtype), values=values, **attributes["k"])


def fold(reduction, q, k, kernel, rtol, state=None):
    state = reduction.init(q) if state is None else state
    return Fused(rtol).fold(reduction, state, q, k, kernel)


def reference(reduction, q, k, kernel):
    return dense.fold(reduction, reduction.init(q), q, k, kernel)


def close(a, b, shift_a, shift_b, rtol, size=None):
    """Sums at two shifts: equal to rtol of the second, or of its size."""
    with np.errstate(invalid="ignore", under="ignore"):
        scale = np.exp(np.where(np.isfinite(shift_a), shift_a - shift_b, 0.0))
    scale = scale.reshape(-1, *[1] * (a.ndim - 1))
    bound = rtol * np.abs(b if size is None else size)
    np.testing.assert_array_less(np.abs(a * scale - b), bound + 1e-300)


def agree(q, k, kernel, rtol):
    """Masses and means keep rtol."""
    mean = WeightedMean(k.values.shape[1])
    found, right = fold(mean, q, k, kernel, rtol), reference(mean, q, k, kernel)
    sizes = reference(mean, q, KeyBlock(**{**vars(k), "values": np.abs(k.values)}), kernel)
    np.testing.assert_array_equal(found.mass > 0, right.mass > 0)
    close(found.mass, right.mass, found.shift, right.shift, rtol)
    close(found.moment, right.moment, found.shift, right.shift, rtol, sizes.moment)


@pytest.mark.parametrize("log_weight", [(-650.0, 0.0), (-1.0, 0.0)])
@pytest.mark.parametrize("kernel", [K.Gaussian(0.4), K.Tricube(0.4)])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-10)])
def test_effective_numbers_and_total_weights(kernel, dtype, rtol, log_weight):
    q, k = blocks(dtype=dtype, k_log_sample_weight=log_weight)
    found, right = fold(LogMass(), q, k, kernel, rtol), reference(LogMass(), q, k, kernel)
    close(found.mass, right.mass, found.shift, right.shift, rtol)
    close(found.mass_of_squares, right.mass_of_squares, 2 * found.shift, 2 * right.shift, 4 * rtol)
    np.testing.assert_allclose(found.key_weight, right.key_weight, rtol=1e-14)


ROWS = {
    "plain": {},
    "weighted": {"k_log_sample_weight": (-5.0, 0.0)},
    "bandwidths": {"q_bandwidth": (0.5, 2.0), "k_bandwidth": (0.5, 2.0)},
    "offset": {"offset": 1e4},
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kernel", PROFILES, ids=lambda kernel: kernel.__name__)
def test_every_profile_in_float64(kernel, rows):
    q, k = blocks(**ROWS[rows])
    agree(q, k, kernel(0.4), 1e-10)


@pytest.mark.parametrize("rows", ["plain", "offset"])
@pytest.mark.parametrize("kernel", PROFILES, ids=lambda kernel: kernel.__name__)
def test_every_profile_in_float32(kernel, rows):
    q, k = blocks(dtype=np.float32, **ROWS[rows])
    agree(q, k, kernel(0.4), 1e-6)


@pytest.mark.parametrize("rows", ["weighted", "bandwidths"])
@pytest.mark.parametrize(
    "kernel", [K.Gaussian, K.Logistic, K.Tricube, K.Uniform], ids=lambda kernel: kernel.__name__
)
def test_keys_that_differ_in_float32(kernel, rows):
    q, k = blocks(dtype=np.float32, **ROWS[rows])
    agree(q, k, kernel(0.4), 1e-6)


@pytest.mark.parametrize("n_keys", [2, 5, 40, MANY])
def test_values_of_all_sizes_in_float32(n_keys):
    q, k = blocks(2, 3, np.float32)
    exponents = np.random.default_rng(1).integers(-3, 4, k.values.shape)
    labels = np.random.default_rng(2).integers(0, 3, MANY)[:, None] == np.arange(3)
    for values in (k.values * 10.0**exponents, labels):
        keys = KeyBlock(k.data, values=values.astype(np.float32)).rows(slice(0, n_keys))
        agree(q, keys, K.Gaussian(0.4), 1e-6)
        agree(q, keys, K.Biweight(2.0), 1e-6)


def passes(monkeypatch):
    """Precisions and numbers of queries of the passes that follow."""
    seen, plain = [], small_fold._summed
    monkeypatch.setattr(
        small_fold,
        "_summed",
        lambda p, c, block, job: seen.append((p.real, block.q.n_rows)) or plain(p, c, block, job),
    )
    return seen


@pytest.mark.parametrize("steps", [(16,), (MANY, 1)])
@pytest.mark.parametrize("kernel", [K.Gaussian(1.0), K.Biweight(3.0)])
@pytest.mark.parametrize("kind", ["signs", "labels", "zeros"])
def test_means_near_0_stay_in_float32(kernel, kind, steps, monkeypatch):
    monkeypatch.setattr(small_fold, "_STEPS", steps)
    q, k = blocks(2, 1, np.float32)
    values = {
        "signs": np.sign(np.arange(MANY) % 2 - 0.5),
        "labels": (np.arange(MANY) % 3 == 0) * 1.0,
        "zeros": np.zeros(MANY),
    }[kind][:, None].astype(np.float32)
    near = QueryBlock(0.1 * q.data)
    seen = passes(monkeypatch)
    agree(near, KeyBlock(k.data, values=values), kernel, 1e-6)
    assert seen == [(np.float32, FEW)]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_values_from_afar_are_summed_in_float64(sign, monkeypatch):
    q, k = blocks(2, 1, np.float32)
    far = np.linalg.norm(k.data, axis=1) > 2.5
    values = np.where(far, np.where(np.arange(MANY) % 2, 1.0, sign), 1e-9)[:, None]
    near = QueryBlock(0.1 * q.data)
    seen = passes(monkeypatch)
    agree(near, KeyBlock(k.data, values=values.astype(np.float32)), K.Gaussian(0.4), 1e-6)
    assert seen == [(np.float32, FEW), (np.float64, FEW)]


def test_a_sample_of_keys_leaves_out_no_row_by_mistake(monkeypatch):
    """A row that is not its own neighbour does not count among the sizes near it."""
    monkeypatch.setattr(small_fold, "_STEPS", (2,))
    x = 10 * np.arange(40, dtype=np.float32)[:, None]
    values = np.where(np.arange(40) == 20, 1.0, -1e-9)[:, None].astype(np.float32)
    masked = K.Gaussian(2.0) * lp.masks.ExcludeSelf()
    agree(QueryBlock(x), KeyBlock(x, values=values), masked, 1e-6)


def test_few_neighbours_in_float32():
    q, k = blocks(3, 1, np.float32)
    for kernel in (K.Epanechnikov(0.2), K.Triweight(0.3), K.Gaussian(0.05)):
        agree(q, k, kernel, 1e-6)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-10)])
@pytest.mark.parametrize("nu", [1e-300, 1e-4, 0.5, 3.0, 1e5, 1e300])
def test_students_t_at_any_number_of_degrees(nu, dtype, rtol):
    agree(*blocks(dtype=dtype), K.StudentT(nu, 0.4), rtol)


@pytest.mark.parametrize("d", [1, 3, 5, 10])
@pytest.mark.parametrize("n_outputs", [1, 3, 4, 5])
def test_features_and_outputs(d, n_outputs):
    agree(*blocks(d, n_outputs, np.float32), K.Gaussian(0.3 * d**0.5), 1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bandwidth_per_feature(dtype):
    q, k = blocks(3, dtype=dtype)
    agree(q, k, K.Gaussian((0.3, 30.0, 1.0)), 1e-6)
    agree(q, k, K.Uniform((0.5, 30.0, 1.0)), 1e-6)


@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e-3, 1e30, 1e140])
def test_any_unit(scale):
    q, k = blocks()
    far = QueryBlock(q.data * scale), KeyBlock(k.data * scale, values=k.values)
    agree(*far, K.Gaussian(0.4 * scale), 1e-10)
    agree(*far, K.Epanechnikov(0.4 * scale), 1e-10)


def test_float32_of_any_unit():
    q, k = blocks(dtype=np.float32)
    for scale in (np.float32(2.0**-100), np.float32(2.0**60)):
        far = QueryBlock(q.data * scale), KeyBlock(k.data * scale, values=k.values)
        agree(*far, K.Gaussian(0.4 * float(scale)), 1e-6)


@pytest.mark.parametrize("kernel", [K.Gaussian(1.0), K.Exponential(0.1), K.Logistic(0.1)])
def test_queries_far_from_all_keys(kernel):
    q, k = blocks()
    far = QueryBlock(q.data + np.linspace(0, 1000, FEW)[:, None])
    agree(far, k, kernel, 1e-8)


@pytest.mark.parametrize("log_weight", [(-690.0, 690.0), (-1e-3, 0.0)])
@pytest.mark.parametrize("kernel", [K.Gaussian(0.3), K.Tricube(0.5), K.Cauchy(0.3)])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-10)])
def test_weights_of_any_size(kernel, log_weight, dtype, rtol):
    agree(*blocks(dtype=dtype, k_log_sample_weight=log_weight), kernel, rtol)


def test_a_region_of_tiny_weights():
    q, k = blocks(1, dtype=np.float32)
    log_weight = np.where(k.data[:, 0] > 0, -650.0, 0.0)
    k = KeyBlock(k.data, values=k.values, log_sample_weight=log_weight)
    for kernel in (K.Gaussian(0.01), K.Tricube(0.1), K.Cauchy(0.01)):
        agree(q, k, kernel, 1e-6)


def test_keys_of_weight_0_are_not_there():
    q, k = blocks()
    log_weight = np.where(np.arange(MANY) % 3, 0.0, -np.inf)
    agree(
        q, KeyBlock(k.data, values=k.values, log_sample_weight=log_weight), K.Gaussian(1.0), 1e-10
    )
    nothing = KeyBlock(k.data, values=k.values, log_sample_weight=np.full(MANY, -np.inf))
    state = fold(LogMass(), q, nothing, K.Gaussian(1.0), 1e-10)
    assert np.all(state.mass == 0)
    assert np.all(np.isneginf(state.shift))
    assert np.all(state.key_weight == 0)


@pytest.mark.parametrize("kernel", COMPACT, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("h", [1.0, 0.1, 3.0])
def test_keys_on_the_edge_of_a_support(kernel, h):
    axis = np.arange(-5.0, 6.0)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2) * h
    values = np.ones((len(grid), 1))
    q, k = QueryBlock(grid[:50] + np.array([h, 0.0])), KeyBlock(grid, values=values)
    apart = KeyBlock(grid[::7], values=values[::7])
    for keys in (k, apart):
        found = fold(WeightedMean(1), q, keys, kernel(h), 1e-10)
        right = reference(WeightedMean(1), q, keys, kernel(h))
        np.testing.assert_array_equal(found.mass > 0, right.mass > 0)
        close(found.mass, right.mass, found.shift, right.shift, 1e-10)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-10)])
@pytest.mark.parametrize("kernel", [K.Gaussian(0.05), K.Tricube(0.2)])
def test_no_row_is_its_own_neighbour(kernel, dtype, rtol):
    x = np.random.default_rng(0).normal(size=(3000, 2)).astype(dtype)
    masked = kernel * lp.masks.ExcludeSelf()
    agree(QueryBlock(x[:50]), KeyBlock(x, values=x), masked, rtol)
    agree(QueryBlock(x[2000:2051], start=2000), KeyBlock(x, values=x), masked, rtol)


def test_rows_of_equal_ids_leave_each_other_out():
    q, k = blocks()
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 5, FEW), rng.integers(0, 5, MANY)
    log_weight = np.where(np.arange(MANY) % 3, 0.0, -np.inf)
    q = QueryBlock(q.data, start=UNKNOWN_START, ids=groups[0])
    k = KeyBlock(k.data, UNKNOWN_START, k.values, log_weight, ids=groups[1])
    agree(q, k, K.Gaussian(0.3) * lp.masks.ExcludeSelf(), 1e-10)
    # Far away the shift must not come from a key that is left out.
    far = QueryBlock(q.data + 100.0, ids=groups[0])
    agree(far, k, K.Gaussian(0.3) * lp.masks.ExcludeSelf(), 1e-8)


def test_rows_of_unknown_place_need_ids():
    q, k = blocks()
    nowhere = QueryBlock(q.data, start=UNKNOWN_START)
    with pytest.raises(InputError, match="give ids="):
        fold(LogMass(), nowhere, k, K.Gaussian(1.0) * lp.masks.ExcludeSelf(), 1e-10)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-10)])
def test_densities_with_bandwidths_per_row(dtype, rtol):
    q, k = blocks(dtype=dtype, q_bandwidth=(0.5, 2.0), k_bandwidth=(0.1, 5.0))
    for kernel in (K.Gaussian(0.4), K.Tricube((0.4, 1.0))):
        agree(q, k, Normalized(kernel), rtol)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float32, 1e-6), (np.float64, 1e-10)])
@pytest.mark.parametrize("kernel", [K.Gaussian(0.4), K.Tricube(0.8)])
@pytest.mark.parametrize(("order", "n_outputs"), [(0, 1), (1, 2), (2, 1), (1, 0)])
def test_local_moments(kernel, order, n_outputs, dtype, rtol):
    q, k = blocks(dtype=dtype, offset=3.0, k_log_sample_weight=(-3.0, 0.0))
    k = KeyBlock(**{**vars(k), "values": k.values[:, :n_outputs] if n_outputs else k.values})
    moments = LocalMoments(order, (0.4, 0.7), n_outputs)
    found, right = fold(moments, q, k, kernel, rtol), reference(moments, q, k, kernel)
    # Even moments and sizes of values bound the odd and the signed ones.
    reach = right.moments[:, :1] * 10.0 ** (2 * order) + np.abs(right.moments)
    close(found.moments, right.moments, found.shift, right.shift, rtol, reach)
    if n_outputs:
        size = np.abs(right.value_moments) + reach[:, :1, None]
        close(found.value_moments, right.value_moments, found.shift, right.shift, rtol, size)


def test_local_moments_far_from_all_keys():
    q, k = blocks()
    far = QueryBlock(q.data + np.linspace(0, 1000, FEW)[:, None])
    moments = LocalMoments(1, (1.0, 1.0), 2)
    found = fold(moments, far, k, K.Gaussian(1.0), 1e-10)
    right = reference(moments, far, k, K.Gaussian(1.0))
    close(found.moments, right.moments, found.shift, right.shift, 1e-8)


def test_blocks_of_keys_add_up():
    q, k = blocks(dtype=np.float32, spread=5.0)
    whole = reference(WeightedMean(2), q, k, K.Gaussian(0.2))
    state = WeightedMean(2).init(q)
    for part in (slice(0, 500), slice(500, 501), slice(501, MANY)):
        state = fold(WeightedMean(2), q, k.rows(part), K.Gaussian(0.2), 1e-6, state)
    close(state.mass, whole.mass, state.shift, whole.shift, 1e-6)


def test_keys_are_laid_out_in_parts(monkeypatch):
    q, k = blocks()
    monkeypatch.setattr(small, "_KEY_BYTES", 8 * 6 * 200)
    agree(q, k, K.Gaussian(0.4) * lp.masks.ExcludeSelf(), 1e-10)


def test_rows_in_any_layout_are_left_as_they_are():
    q, k = blocks(dtype=np.float32)
    strided = np.asfortranarray(np.repeat(q.data, 2, axis=0))[::2]
    strided.flags.writeable = False
    agree(
        QueryBlock(strided),
        KeyBlock(k.data[:, ::-1][:, ::-1], values=k.values),
        K.Gaussian(0.4),
        1e-6,
    )
    single = QueryBlock(q.data), KeyBlock(k.data.astype(np.float64), values=k.values)
    agree(*single, K.Gaussian(0.4), 1e-6)


def test_rows_doubtful_in_float32_are_summed_in_float64(monkeypatch):
    k = blocks(1, dtype=np.float32)[1]
    lone = QueryBlock(np.array([[9.0], [0.0]], np.float32))
    seen = passes(monkeypatch)
    state = fold(LogMass(), lone, k, K.Gaussian(0.3), 1e-6)
    assert seen == [(np.float32, 2), (np.float64, 1)]
    # What it holds already is so much that the tail of other keys does not matter.
    seen.clear()
    near = KeyBlock(np.array([[9.0]], np.float32), start=MANY)
    state = fold(LogMass(), lone, near, K.Gaussian(0.3), 1e-6)
    seen.clear()
    fold(
        LogMass(),
        lone.rows(slice(0, 1)),
        k,
        K.Gaussian(0.3),
        1e-6,
        dense.take_rows(state, slice(0, 1)),
    )
    assert seen == [(np.float32, 1)]


def need(kernel, reduction=None, d=2, **given):
    return Need(kernel, reduction or LogMass(), 1000, 1000, d, 0, 1e-6, **given)


def test_what_is_refused():
    causal = K.Gaussian(1.0) * lp.masks.Causal()
    assert "not Causal" in Fused.refusal(need(causal))
    assert "not TopK" in Fused.refusal(need(K.Gaussian(1.0), lp.reductions.TopK(3)))
    assert Fused.refusal(need(K.Gaussian(1.0) * lp.masks.ExcludeSelf())) is None
    assert not small.suits(take_apart(K.Gaussian(1.0, metric="manhattan"), 2), 2)


def test_a_subclass_of_a_kernel_is_not_taken_for_it():
    class Mine(K.Gaussian):
        def log_profile(self, u2, n_features):
            return -u2

    assert not small.suits(take_apart(Mine(1.0), 2), 2)


def test_seconds_and_bytes_grow_with_the_work():
    few, many = need(K.Gaussian(1.0)), need(K.Gaussian(1.0), d=6)
    assert 0 < Fused.seconds(few) < Fused.seconds(many)
    assert 0 < Fused(1e-6).tile_bytes(few) <= 2 * small._KEY_BYTES
