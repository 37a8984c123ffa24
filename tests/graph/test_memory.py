"""Memory as it is measured, one process per shape: measured peak <= planned peak <= limit.

The shapes are those of `benchmarks/memory.py`, with fewer queries.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from locpipe.testing import nearest_reference

MiB = 2**20
# Each takes a second or two; the numbers of keys and features are those of the benchmark.
SHAPES = {
    "plane": 0.1,
    "among_themselves": 0.2,
    "two_passes": 0.05,
    "pictures": 0.005,
    "best_fifty": 0.05,
    "moments": 0.02,
    "many_outputs": 0.02,
    "dask_threads": 0.02,
    "dask_pairs": 1.0,
}


def measure(repo, name, scale):
    """Figures of a shape that runs in a process of its own."""
    command = [sys.executable, "benchmarks/memory.py", "--json", "--only", name]
    done = subprocess.run(
        [*command, "--scale", str(scale)], cwd=repo, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", SHAPES)
def test_the_measured_peak_is_below_the_planned_and_the_planned_below_the_limit(repo, name):
    found = measure(repo, name, SHAPES[name])
    assert found["peak"] <= found["planned"] <= found["limit"]
    # A plan that says far too much would keep its word and be of no use.
    assert found["planned"] <= 2 * found["peak"]


def test_neighbours_of_all_rows_need_no_matrix(repo):  # D16: 60,000 x 4, here 12,000
    found = measure(repo, "self_neighbours", 0.2)
    # The matrix would be 1152 MB; 160 MiB are for the compiler, which rankings by trees spare.
    assert found["peak"] <= found["planned"] < 500 * MiB


@pytest.mark.parametrize("name", ["stored_pairs", "shards", "columns"])
def test_chunks_of_a_store_are_counted(repo, name):
    found = measure(repo, name, 0.1)
    assert found["peak"] <= found["planned"] <= found["limit"]
    assert found["planned"] <= 3 * found["peak"]  # stored chunks may be as large as decoded ones


@pytest.mark.slow
def test_keys_from_a_store_larger_than_the_limit(repo):
    found = measure(repo, "store", 0.02)
    assert found["peak"] <= found["planned"] <= found["limit"] == 768 * MiB


@pytest.mark.slow
def test_workers_stay_below_their_limit(repo):  # Q08: 40,000 x 32 on 2 x 1 GB, here 4,000
    found = measure(repo, "cluster", 0.1)
    assert found["peak"] <= found["planned"] <= found["limit"] == 8 * 10**8


WIDE = """
import numpy as np, locpipe as lp
from benchmarks.memory import forget_peak, peak_bytes, warm_up
warm_up()
x = np.random.default_rng(0).normal(size=(2000, 5000)).astype(np.float32)
forget_peak(); before = peak_bytes()
distances, indices = lp.nearest(x[:100], x, 4)
print(peak_bytes() - before)
np.savez({file!r}, distances=distances, indices=indices)
"""


def test_wide_rows_need_no_cube(repo, tmp_path):  # D16b: the cube of differences would be 80 GB
    file = str(tmp_path / "found.npz")
    code = ["-c", WIDE.format(file=file)]
    done = subprocess.run([sys.executable, *code], cwd=repo, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 500 * MiB
    x = np.random.default_rng(0).normal(size=(2000, 5000)).astype(np.float32)
    found = np.load(file)
    for row in range(0, 100, 20):  # one at a time: the oracle itself makes the cube
        distances, indices = nearest_reference(x[row : row + 1], x, 4)
        np.testing.assert_array_equal(found["indices"][row], indices[0])
        np.testing.assert_allclose(found["distances"][row], distances[0], rtol=1e-5)
