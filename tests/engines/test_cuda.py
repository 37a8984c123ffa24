"""The CUDA kernels and all that is around them, run on the CPU, against the engine `dense`."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locpipe import kernels, masks
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines.base import Need, PairEngine
from locpipe.engines.cuda import FusedCuda, device
from locpipe.errors import InputError
from locpipe.reductions import LogMass, TopK, WeightedMean
from tests.engines.cuda_cases import CASES, PROFILES, TOLERANCE, Case, check, compare
from tests.engines.cuda_on_cpu import Emulator


@pytest.fixture(scope="session")
def emulator(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("g++ compiles the CUDA sources for the CPU, and is not here")
    return Emulator(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(autouse=True)
def on_cpu(emulator, monkeypatch):
    emulator.launched.clear()
    monkeypatch.setattr(device, "launch", emulator.launch)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_states_are_those_of_dense(case):
    check(FusedCuda(TOLERANCE[case.dtype]), case)


def test_float_serves_where_it_keeps_the_tolerance(emulator):
    case, among = Case(kernels.Gaussian(0.5)), QueryBlock(np.zeros((9, 2), np.float32))
    check(FusedCuda(1e-6), case, among)
    assert emulator.launched == ["row_sums<0, 2, 1, float>"]
    check(FusedCuda(1e-8), case, among)
    assert emulator.launched[1:] == ["row_max<0, 3>", "row_sums<0, 3, 1, double>"]


def test_rows_that_float_gets_wrong_are_summed_again(emulator):
    # One key at the query, and one 8 bandwidths off whose value is all there is in its column.
    k = KeyBlock(np.float32([[0.0, 0.0], [4.0, 0.1]]), values=np.float32([[1.0, 0.0], [1.0, 1e4]]))
    q = QueryBlock(np.float32([[0.0, 0.0], [0.01, 0.03]]))
    check(FusedCuda(1e-6), Case(kernels.Gaussian(0.5), n_outputs=2), q, k)
    assert "row_sums<0, 3, 4, double>" in emulator.launched


def test_lone_float_pairs_keep_the_tolerance():
    rng = np.random.default_rng(3)
    for d in (1, 3, 6):
        q = rng.normal(size=(400, d)).astype(np.float32) + np.float32(5)
        for row in q[:40]:
            one = KeyBlock((row + rng.normal(size=(1, d)) * 0.7).astype(np.float32))
            check(
                FusedCuda(1e-6), Case(kernels.Gaussian(0.9), d=d, n_outputs=0), QueryBlock(q), one
            )


@pytest.mark.parametrize("values", [1e-300, 1e300, 0.0, "classes", "range"])
def test_values_of_any_size(values):
    case = Case(kernels.Gaussian(0.5), n_outputs=3, dtype="float32")
    q, k = case.blocks()
    v = k.values.astype(np.float64)
    if values == "classes":
        v = np.eye(3)[np.digitize(k.data[:, 0], [-0.5, 0.5])]
    elif values == "range":
        v *= 10.0 ** np.random.default_rng(1).uniform(-200, 200, (len(v), 1))
    else:
        v *= values
    check(FusedCuda(1e-6), case, q, replace(k, values=v))


def test_float_products_serve_a_loose_tolerance_alone(emulator, monkeypatch):
    case = Case(kernels.Gaussian(6.0), d=20, far=3.0)
    check(FusedCuda(1e-4), case)
    check(FusedCuda(1e-4), replace(case, kernel=kernels.DotProduct(), far=0.0, n_outputs=0))
    assert emulator.launched == ["tile_weights<0, float>", "tile_weights<11, float>"]
    monkeypatch.setenv("CUPY_TF32", "1")
    check(FusedCuda(1e-4), case)
    assert emulator.launched[2:] == ["tile_weights<0, double>"]


def test_products_give_way_to_differences(emulator):
    case = Case(kernels.Gaussian(2.0), d=16, dtype="float64", far=0.0)
    check(FusedCuda(1e-10), case)
    assert "squared_differences" not in emulator.launched
    q, k = case.blocks()
    apart = np.where(np.arange(700)[:, None] < 350, 0.0, 1e6)
    check(FusedCuda(1e-10), case, q, replace(k, data=k.data + apart))
    assert "squared_differences" in emulator.launched


def test_a_ball_keeps_its_edge():
    grid = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2) / 10
    for dtype in ("float32", "float64"):
        rows = grid.astype(dtype)
        for h in (0.1, 0.3, (0.2, 0.1)):
            case = Case(kernels.Uniform(h), n_outputs=0)
            check(FusedCuda(1e-10), case, QueryBlock(rows), KeyBlock(rows))


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("reduction", [LogMass(), WeightedMean(2)], ids=repr)
def test_key_blocks_in_any_parts_make_one_state(reduction, d):
    case = Case(kernels.Gaussian(0.4 * d**0.5), d=d, n_outputs=2, weights=3.0, dtype="float64")
    q, k = case.blocks()
    engine, kernel = FusedCuda(1e-10), case.kernel
    whole = engine.fold(reduction, reduction.init(q), q, k, kernel)
    state = reduction.init(q)
    for start in (0, 100, 650):
        part = k.rows(slice(start, {0: 100, 100: 650, 650: 700}[start]))
        before = [a.copy() for a in state]
        new = engine.fold(reduction, state, q, part, kernel)
        for a, b in zip(before, state, strict=True):
            np.testing.assert_array_equal(a, b)  # the state that came is left alone
        state = new
    size = np.abs(k.values).max(axis=0)
    compare(state, whole, 1e-12, lambda: np.broadcast_to(size, (q.n_rows, 2)))


def test_blocks_need_not_be_contiguous_or_writable():
    case = Case(kernels.Gaussian(0.5))
    q, k = case.blocks()
    data = np.asfortranarray(k.data)[::1]
    data.flags.writeable = False
    check(FusedCuda(1e-6), case, QueryBlock(q.data[::2]), replace(k, data=data))


def test_keys_without_weight_and_empty_blocks_change_nothing():
    q = QueryBlock(np.zeros((3, 2)))
    engine, reduction = FusedCuda(1e-10), WeightedMean(1)
    state = reduction.init(q)
    none = KeyBlock(np.zeros((0, 2)), values=np.zeros((0, 1)))
    assert engine.fold(reduction, state, q, none, kernels.Gaussian()) is state
    absent = KeyBlock(
        np.zeros((4, 2)), values=np.ones((4, 1)), log_sample_weight=np.full(4, -np.inf)
    )
    for kernel in (kernels.Gaussian(), kernels.Gaussian() * masks.Causal(), kernels.DotProduct()):
        after = engine.fold(reduction, state, q, absent, kernel)
        for a, b in zip(after, state, strict=True):
            np.testing.assert_array_equal(a, b)


@given(
    kernel=st.sampled_from(
        [kernels.Gaussian(0.7), kernels.Epanechnikov(1.5), kernels.DotProduct(0.5)]
    ),
    n_outputs=st.sampled_from([0, 1]),
    dtype=st.sampled_from(["float32", "float64"]),
    sizes=st.tuples(st.integers(2, 40), st.integers(3, 300)),
    weights=st.sampled_from([0.0, 1.0, 200.0]),
    spread=st.sampled_from([0.1, 1.0, 20.0]),
)
def test_any_fold(kernel, n_outputs, dtype, sizes, weights, spread):
    n_queries, n_keys = sizes
    case = Case(kernel, 2, n_outputs, dtype, n_queries, n_keys, spread, far=2.0, weights=weights)
    check(FusedCuda(TOLERANCE[dtype]), case)


def need(kernel, reduction=None, **given):
    reduction = reduction or LogMass()
    return Need(kernel, reduction, 10, 10, 2, 0, 1e-6, **({"library": "cupy"} | given))


@pytest.mark.parametrize("kernel", [*PROFILES, kernels.DotProduct()], ids=repr)
def test_every_profile_of_the_library_is_served(kernel):
    assert FusedCuda.refusal(need(kernel)) is None
    assert FusedCuda.refusal(need(kernel * masks.Causal() * masks.ExcludeSelf())) is None
    engine = FusedCuda.build(need(kernel))
    assert isinstance(engine, PairEngine)
    assert engine == FusedCuda(1e-6)
    assert FusedCuda.seconds(need(kernel)) > 0
    assert engine.tile_bytes(need(kernel)) > 0


class Mine(kernels.Gaussian):
    """A profile that no compiled loop knows."""


@pytest.mark.parametrize(
    ("asked", "reason"),
    {
        "NumPy arrays": (need(kernels.Gaussian(), library="numpy"), "takes CuPy arrays"),
        "a ranking": (need(kernels.Gaussian(), TopK(3)), "masses and means"),
        "a metric": (need(kernels.Gaussian(metric="manhattan")), "Euclidean"),
        "a profile of one's own": (need(Mine()), "the library's"),
        "two kernels": (need(kernels.Gaussian() * kernels.Cauchy()), "the library's"),
        "data per pair": (need(kernels.Gaussian(), has_pairs=True), "the library's"),
        "no kernel": (need(None), "the library's"),
        "given times": (
            need(kernels.Gaussian() * masks.Causal(), attributes=frozenset({"keys.time"})),
            "indices of the rows",
        ),
    }.values(),
    ids=str,
)
def test_what_is_not_served_says_why(asked, reason):
    assert reason in (FusedCuda.refusal(asked) or "")


def test_a_kernel_that_was_refused_is_refused_again():
    q = QueryBlock(np.zeros((1, 2)))
    with pytest.raises(InputError, match="engine='dense'"):
        FusedCuda(1e-6).fold(LogMass(), LogMass().init(q), q, KeyBlock(q.data), Mine())


def test_products_out_of_range_are_refused():
    q = QueryBlock(np.full((1, 2), 1e200))
    with pytest.raises(InputError, match="dot product"):
        FusedCuda(1e-10).fold(
            LogMass(), LogMass().init(q), q, KeyBlock(q.data), kernels.DotProduct()
        )
