"""The fused kernels on a device, against the engine `dense` on the CPU; the cases of the suite."""

from dataclasses import replace

import numpy as np
import pytest

from locpipe import kernels, masks
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines.cuda import FusedCuda
from tests.engines.cuda_cases import CASES, TOLERANCE, Case, check

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_states_are_those_of_dense(case, cupy, to_device):
    state = check(FusedCuda(TOLERANCE[case.dtype]), case, to=to_device)
    assert all(isinstance(a, cupy.ndarray) for a in state)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 10, 16, 64, 300])
@pytest.mark.parametrize("n_outputs", [0, 1, 5, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sizes_that_fill_a_device(d, n_outputs, dtype, to_device):
    case = Case(kernels.Gaussian(0.4 * d**0.5), d, n_outputs, dtype, n_queries=1_500, n_keys=20_000)
    check(FusedCuda(TOLERANCE[dtype]), case, to=to_device)


@pytest.mark.parametrize("d", [2, 64])
def test_a_second_run_gives_the_same_bits(d, to_device):
    case = Case(kernels.Gaussian(0.4 * d**0.5), d, 2, n_queries=500, n_keys=30_000)
    q, k = map(to_device, case.blocks())
    engine, reduction = FusedCuda(1e-6), case.reduction
    first, second = (engine.fold(reduction, reduction.init(q), q, k, case.kernel) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.get(), b.get())


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_attention_of_long_rows(scale, to_device):
    kernel = kernels.DotProduct(scale) * masks.Causal()
    check(
        FusedCuda(1e-6), Case(kernel, 64, 64, n_queries=3_000, n_keys=3_000, far=0.0), to=to_device
    )


def test_a_view_of_columns(to_device):
    case = Case(kernels.Gaussian(0.5), n_keys=3_000)
    q, k = case.blocks()
    wide = np.repeat(k.data, 2, axis=1)
    moved = to_device(KeyBlock(wide, values=k.values))
    views = replace(moved, data=moved.data[:, ::2])

    def to(block):
        return views if isinstance(block, KeyBlock) else to_device(block)

    check(FusedCuda(1e-6), case, QueryBlock(q.data), KeyBlock(k.data, values=k.values), to=to)
