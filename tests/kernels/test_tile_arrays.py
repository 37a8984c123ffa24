"""The memory that a kernel says it needs, against what it takes."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

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
from locpipe.kernels.closest import Closest
from locpipe.kernels.masks import Causal, ExcludeSelf, Window
from locpipe.kernels.names import RADIAL
from locpipe.metrics import METRICS

N = 256
TILE = N * N * 8
KERNELS = [
    *(kernel(5.0) for kernel in sorted(set(RADIAL.values()), key=lambda kernel: kernel.__name__)),
    StudentT(3.0),
    *(Gaussian(metric=metric) for metric in METRICS),
    *(Tricube(metric=metric) for metric in METRICS),
    *(Gaussian(metric=metric).nearness() for metric in METRICS),
    *(Nearness(metric) for metric in METRICS),
    *(Nearest(9, w, m) for w in ("uniform", "distance", "tricube", "logistic") for m in METRICS),
    DotProduct(),
    Precomputed(np.ones((N, N))),
    Precomputed(np.ones((N, N), np.float32)),
    Precomputed(scipy.sparse.csr_array(np.ones((N, N)))),
    *(Causal(), Window(3), ExcludeSelf()),
    Closest(Nearness()),
    Gaussian() * Causal(),
    Causal() * Tricube() * Gaussian(),
    Normalized(Gaussian()),
    Gaussian().on("values", "values"),
    Nearest(3).on("values", "values") * ExcludeSelf(),
]


def peak_bytes(kernel, q, k):
    kernel.log_weights(q, k)  # what is imported or cached at the first call is not counted
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kernel.log_weights(q, k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("d", [2, 64])
@pytest.mark.parametrize("rows", [False, True], ids=["plain", "row bandwidths"])
def test_the_peak_of_a_tile_is_declared(kernel, d, rows):
    if d != 2 and "haversine" in str(kernel):
        return  # two coordinates only
    rng = np.random.default_rng(0)
    x, y, h = rng.uniform(-1, 1, (N, d)), rng.uniform(-1, 1, (N, d)), rng.uniform(1, 2, N)
    ranks = {"best_score": np.zeros(N), "kth_score": np.full(N, -1.0), "kth_index": np.full(N, 7)}
    q = QueryBlock(x, values=x, bandwidth=h if rows else None, **ranks)
    k = KeyBlock(y, values=y, bandwidth=h if rows else None)
    # Beside the tile: the rows in bandwidths, centred, and their squares.
    copies_of_rows = 3 * (x.nbytes + y.nbytes) + 2**16
    assert peak_bytes(kernel, q, k) <= kernel.tile_arrays * TILE + copies_of_rows
