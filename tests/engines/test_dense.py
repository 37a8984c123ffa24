"""The reference engine: blocks of any size, states of any size, memory that comes again."""

import os
import subprocess
import sys

import numpy as np
import pytest

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.kernels import Gaussian
from locpipe.reductions import LogMass, TopK, WeightedMean
from locpipe.testing import assert_close, local_mean_reference


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("reduction", [LogMass(), WeightedMean(2), TopK(3)], ids=repr)
def test_blocks_of_many_tiles_are_their_tiles(rng, reduction):
    q, x = rng.normal(size=(700, 2)), rng.normal(size=(600, 2))
    k = KeyBlock(x, values=x)
    whole = dense.fold(reduction, reduction.init(QueryBlock(q)), QueryBlock(q), k, Gaussian())
    for start in (0, 256, 512):
        part = QueryBlock(q[start : start + 256], start=start)
        state = dense.fold(reduction, reduction.init(part), part, k, Gaussian())
        for a, b in zip(whole, state, strict=True):
            np.testing.assert_array_equal(a[start : start + 256], b)


def test_the_state_that_came_is_left_alone(rng):
    q, k = QueryBlock(rng.normal(size=(300, 2))), KeyBlock(rng.normal(size=(300, 2)))
    before = LogMass().init(q)  # its arrays share memory
    after = dense.fold(LogMass(), before, q, k, Gaussian())
    assert float(before.mass.max()) == 0.0
    assert float(after.mass.min()) > 0.0
    assert not np.array_equal(after.mass, after.mass_of_squares)


def test_float32_far_from_the_origin_is_widened(rng):
    x = (rng.normal(size=(300, 2)) + 1e4).astype(np.float32)
    q, k = QueryBlock(x), KeyBlock(x, values=x)
    reduction = WeightedMean(2)
    state = dense.fold(reduction, reduction.init(q), q, k, Gaussian())
    assert_close(reduction.finalize(state, np.nan)[0], local_mean_reference(x, x, x, 1.0))


FAULTS = """
import resource, numpy as np, locpipe as lp
x = np.random.default_rng(0).normal(size=(5000, 2))
def run(n):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    lp.local_mean(x[:n], x, x, lp.kernels.Gaussian(1.0), n_threads=1, engine="dense")
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
run(300)
print(run(5000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="its C library is the one that is taught")
def test_tiles_take_the_pages_of_the_tiles_before():
    # Dask's nanny sets the allocator's bounds by these, and leaves them behind in its own process.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    script = [sys.executable, "-c", FAULTS]
    done = subprocess.run(script, capture_output=True, text=True, env=env, check=True)
    assert int(done.stdout) < 400 * 20  # 400 tiles of more than 1000 pages each
