"""Arrays that tasks refer to by a file: seen as they are now, gone with their owner."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from locpipe import config
from locpipe.blocks import KeyBlock
from locpipe.errors import StoreError
from locpipe.graph import ArrayKeys
from locpipe.shared import SharedArray, _remove


def test_a_change_in_place_is_seen_by_the_next_graph():
    x = np.zeros((3, 1))
    pickle.dumps(ArrayKeys(KeyBlock(x)))
    x += 100
    again = ArrayKeys(KeyBlock(x))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).block.data, x)


def test_a_file_of_keys_goes_with_its_owner_only():
    shared = SharedArray(np.zeros(3))
    file = shared._written()
    _remove(file, owner=os.getpid() + 1)  # a forked child at its end
    assert file.exists()
    del shared
    assert not file.exists()


def test_a_scratch_folder_that_is_not_there_is_named(tmp_path):
    gone = tmp_path / "gone"
    with (
        config.override(scratch=gone),
        pytest.raises(StoreError, match=rf"scratch folder {gone} must take 24 bytes .* TMPDIR"),
    ):
        pickle.dumps(SharedArray(np.zeros(3)))


FULL = """
import resource, sys
import numpy as np, dask, dask.array as da, locpipe as lp

resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
keys, kernel = np.zeros((100_000, 2)), lp.kernels.Gaussian(1.0)
mass = lp.log_mass(da.zeros((10, 2), chunks=(5, 2)), keys, kernel)
with lp.config.override(scratch=sys.argv[1]), dask.config.set(scheduler="processes"):
    mass.compute(num_workers=1)
"""


def test_a_full_scratch_folder_is_named_and_left_empty(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"scratch folder {tmp_path} must take 1,600,000 bytes" in last
    assert "File too large; make room" in last
    assert list(tmp_path.iterdir()) == []
