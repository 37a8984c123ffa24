"""Kernels see any library that follows the array API standard."""

import array_api_strict as strict
import numpy as np
import pytest

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.kernels import (
    DotProduct,
    Gaussian,
    Nearest,
    Nearness,
    Normalized,
    Precomputed,
    StudentT,
    Tricube,
)
from locpipe.kernels.masks import Causal, ExcludeSelf, Window
from locpipe.kernels.names import RADIAL
from locpipe.metrics import METRICS

N = 12
KERNELS = [
    *(kernel(2.0) for kernel in sorted(set(RADIAL.values()), key=lambda kernel: kernel.__name__)),
    StudentT(3.0),
    *(Tricube(metric=metric) for metric in METRICS),
    *(Gaussian(metric=metric).nearness() for metric in METRICS),
    *(Nearness(metric) for metric in METRICS),
    *(Nearest(3, w, m) for w in ("uniform", "distance", "tricube") for m in METRICS),
    DotProduct(),
    *(Causal(), Window(3), ExcludeSelf()),
    Gaussian() * Causal(),
    Normalized(Gaussian()),
    Gaussian(0.3).on("values", "values"),
    Gaussian(0.3).on("time", "time"),
]


def blocks(xp, d, rows):
    rng = np.random.default_rng(0)
    x, y, h = rng.uniform(-1, 1, (N, d)), rng.uniform(-1, 1, (N, d)), rng.uniform(1, 2, N)
    ranks = np.zeros(N), np.full(N, -0.3), np.full(N, 5)
    x, y, h, best, kth, index = map(xp.asarray, (x, y, h, *ranks))
    h = h if rows else None
    q = QueryBlock(x, values=x, bandwidth=h, best_score=best, kth_score=kth, kth_index=index)
    return q, KeyBlock(y, values=y, bandwidth=h)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("d", [2, 11])
@pytest.mark.parametrize("rows", [False, True], ids=["plain", "row bandwidths"])
def test_the_standard_is_enough(kernel, d, rows):
    if d != 2 and "haversine" in str(kernel):
        return  # two coordinates only
    ours = kernel.log_weights(*blocks(strict, d, rows))
    assert ours.dtype == strict.float64
    expected = kernel.log_weights(*blocks(np, d, rows))
    np.testing.assert_allclose(np.from_dlpack(ours), expected, rtol=1e-12, atol=1e-13)


def test_precomputed_weights_of_another_library():
    w = np.random.default_rng(0).uniform(0, 1, (3, 4))
    q, k = QueryBlock(strict.zeros((3, 1))), KeyBlock(strict.zeros((4, 1)))
    log_w = Precomputed(strict.asarray(w)).log_weights(q, k)
    np.testing.assert_allclose(np.from_dlpack(log_w), np.log(w), rtol=1e-14)


@pytest.mark.parametrize("layout", ["Fortran", "strided", "read-only", "empty"])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_layouts(kernel, layout):
    q, k = blocks(np, 2, rows=True)
    expected = kernel.log_weights(q, k)
    if layout == "empty":
        assert kernel.log_weights(q.rows(slice(0, 0)), k).shape == (0, N)
        assert kernel.log_weights(q, k.rows(slice(0, 0))).shape == (N, 0)
        return
    data = {
        "Fortran": np.asfortranarray(q.data),
        "strided": np.repeat(np.repeat(q.data, 2, 0), 3, 1)[::2, ::3],
        "read-only": np.frombuffer(q.data.tobytes()).reshape(q.data.shape),
    }[layout]
    seen = QueryBlock(**{**vars(q), "data": data, "values": data})
    np.testing.assert_array_equal(kernel.log_weights(seen, k), expected)
