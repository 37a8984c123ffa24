"""Dask keys that are too large to lie in memory are read again, by chunk, for each pass."""

import subprocess
import sys

import dask.array as da
import numpy as np
import pytest

import locpipe as lp
from locpipe.testing import assert_close, no_compute

GIVEN = 512 * 2**20


def keys_of(calls, n_chunks=6):
    x = np.random.default_rng(0).normal(size=(60, 2))

    def load(block):
        calls.append(len(block))
        return block

    lazy = da.from_array(x, chunks=(10, 2)).map_blocks(load, dtype=x.dtype, meta=np.empty((0, 0)))
    return x, lazy


@pytest.mark.parametrize(("kernel", "passes"), [("gaussian", 1), ("nearest", 2)])
def test_numbers_are_the_same_and_each_pass_reads(kernel, passes, monkeypatch):
    kernel = {"gaussian": lp.kernels.Gaussian(0.5), "nearest": lp.kernels.Nearest(3)}[kernel]
    calls = []
    x, keys = keys_of(calls)
    q = da.from_array(x[:20], chunks=(5, 2))
    expected = lp.local_mean(x[:20], x, x[:, 0], kernel)
    with no_compute():
        shared = lp.local_mean(q, keys, x[:, 0], kernel)
    assert_close(shared.compute(scheduler="sync"), expected, 1e-12)
    assert len(calls) == 6
    monkeypatch.setattr("locpipe.graph.spans._SHARE_OF_KEYS", 0.0)
    monkeypatch.setattr("locpipe.graph.spans._GROUP_BYTES", 10 * 2 * 8)
    with no_compute():
        again = lp.local_mean(q, keys, x[:, 0], kernel)
    calls.clear()
    assert_close(again.compute(scheduler="sync"), expected, 1e-12)
    assert len(calls) == 6 * 2 * passes  # two groups of two chunks of queries


def test_rows_among_themselves_are_read_again_too(monkeypatch):
    x, rows = keys_of([])
    expected = lp.log_mass(x, x, lp.kernels.Gaussian(0.5))
    monkeypatch.setattr("locpipe.graph.spans._SHARE_OF_KEYS", 0.0)
    lazy = lp.log_mass(rows, rows, lp.kernels.Gaussian(0.5))
    assert not any("mutual" in str(task) for task in lazy.__dask_graph__().values())
    assert_close(lazy.compute(scheduler="sync"), expected, 1e-12)


SCRIPT = """
import numpy as np, dask, dask.array as da, locpipe as lp
def made(block_info=None):
    shape = block_info[None]["chunk-shape"]
    return np.random.default_rng(block_info[None]["chunk-location"][0]).normal(size=shape)
keys = da.map_blocks(made, chunks=((8_000,) * 25, (400,)), dtype=float, meta=np.empty((0, 0)))
queries = da.from_array(np.zeros((8, 400)), chunks=(1, 400))
kernel, limit = lp.kernels.{kernel}, {limit}
plan = lp.plan(queries, keys, kernel, reduction="log_mass", memory_limit=limit)
with dask.config.set(scheduler="threads", num_workers=2):
    lp.log_mass(queries, keys, kernel, memory_limit=limit).compute()
peak = [line for line in open("/proc/self/status") if line.startswith("VmHWM")][0].split()[1]
print(keys.nbytes, int(peak) * 1024, plan.peak_bytes)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("kernel", ["Gaussian(30.0)", "Nearest(5)"])
def test_keys_larger_than_the_limit(kernel):
    script = SCRIPT.format(kernel=kernel, limit=GIVEN)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True
    )
    size, peak, planned = map(int, done.stdout.split())
    assert peak <= planned <= GIVEN < size
