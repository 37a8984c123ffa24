"""Arrays that tasks refer to by a file: seen as they are now, gone with their owner."""

import os
import pickle

import numpy as np

from locpipe.blocks import KeyBlock
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
