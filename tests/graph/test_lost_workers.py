"""Workers that die while queries are answered: the result is the same."""

import logging
import os
import signal
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import locpipe as lp

GAUSSIAN = lp.kernels.Gaussian(0.3)
rng = np.random.default_rng(0)
QUERIES, KEYS, VALUES = (rng.normal(size=shape) for shape in ((2_000, 2), (6_000, 2), 6_000))


def dying(block, mark, number, block_id):
    """The block; the first time that this number is asked for, its process is gone instead."""
    if block_id[0] == number and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def lazy(array, mark):
    """Four chunks, of which the third kills the worker that reads it first."""
    rows = da.from_array(array, chunks=(len(array) // 4, *array.shape[1:]))
    return rows.map_blocks(dying, mark=str(mark), number=2, dtype=array.dtype, meta=array[:0])


@pytest.fixture(scope="module")
def client():
    two = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(**two, silence_logs=logging.CRITICAL) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("engine", ["pruned", "spectral"])
def test_summaries_that_are_lost_are_made_anew(engine, tmp_path, client):
    keys = lp.prepare(da.from_array(KEYS, 1_500), da.from_array(VALUES[:, None], 1_500))
    queries = lazy(QUERIES, tmp_path / "died")
    found = lp.local_mean(queries, keys, kernel=GAUSSIAN, engine=engine).compute()
    assert (tmp_path / "died").exists()
    expected = lp.local_mean(QUERIES, KEYS, VALUES, GAUSSIAN, engine="dense")
    sizes = lp.local_mean(QUERIES, KEYS, np.abs(VALUES), GAUSSIAN, engine="dense")
    assert (np.abs(found.reshape(expected.shape) - expected) <= 1e-10 * sizes).all()
