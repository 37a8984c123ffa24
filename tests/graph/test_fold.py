"""Folds over pairs and sources; block runs on real clients."""

import logging
import os
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_info

import locpipe as lp
from locpipe.blocks import ArrayPairs, KeyBlock
from locpipe.engines import single_threaded_libraries
from locpipe.errors import ConfigError, InputError
from locpipe.graph import ArrayKeys, KeySource, fold, run_blocks
from locpipe.reductions import LogMass, MajorizationStep
from locpipe.testing import assert_close, majorization_reference, no_compute


@pytest.fixture(scope="module")
def threads_client():
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    ) as client:
        yield client


def test_pairs_on_dask_queries_equal_numpy():
    rng = np.random.default_rng(0)
    x, y, delta = rng.normal(size=(20, 2)), rng.normal(size=(15, 2)), rng.uniform(0, 3, (20, 15))
    with no_compute():
        lazy = fold(
            MajorizationStep(2),
            da.from_array(x, chunks=(7, 2)),
            da.from_array(y, chunks=(4, 2)),
            pairs=ArrayPairs(delta),
        )
    _, stress = majorization_reference(x, y, delta)
    assert_close(lazy.stress.sum().compute(scheduler="sync"), stress)
    assert lazy._fields[0] == "weight"


def test_sizes_must_agree():
    x = np.ones((3, 2))
    with pytest.raises(InputError, match=r"\(n_queries, n_keys\) = \(3, 3\), got \(2, 3\)"):
        fold(MajorizationStep(2), x, x, pairs=ArrayPairs(np.ones((2, 3))))
    with pytest.raises(InputError, match="LogMass needs a kernel, got None"):
        fold(LogMass(), x, x)


def test_array_keys_pickle_as_files():
    keys = ArrayKeys(KeyBlock(np.random.default_rng(0).normal(size=(100_000, 2))))
    assert isinstance(keys, KeySource)
    data = pickle.dumps(keys)
    assert len(data) < 2000
    np.testing.assert_array_equal(pickle.loads(data).block.data, keys.block.data)
    assert [b.start for b in keys.iter_blocks(40_000)] == [0, 40_000, 80_000]
    assert [b.n_rows for b in keys.iter_blocks(40_000, start=90_000)] == [10_000]


def test_pairs_pickle_as_files():
    pairs = ArrayPairs(np.ones((500, 500)), np.zeros((500, 500)))
    data = pickle.dumps(pairs)
    assert len(data) < 2000
    tile = pickle.loads(data).tile(slice(0, 2), slice(0, 3))
    np.testing.assert_array_equal(tile[1], np.zeros((2, 3)))


def square(block):
    return block * block


def test_run_blocks_here_and_on_a_client(threads_client):
    for client in (None, threads_client):
        done = {}
        run_blocks(square, range(57), on_done=done.__setitem__, client=client)
        assert done == {i: i * i for i in range(57)}


def test_run_blocks_keeps_a_window(threads_client):
    in_flight = []

    def on_done(block, result):
        in_flight.append(len(threads_client.futures) - 1)  # all but the shared task

    run_blocks(square, range(30), on_done=on_done, client=threads_client, window=2)
    assert len(in_flight) == 30
    assert max(in_flight) <= 2


def test_run_blocks_raises_the_first_error(threads_client):
    def compute(block):
        if block == 3:
            raise InputError("block 3 is bad")
        return block

    for client in (None, threads_client):
        done = {}
        with pytest.raises(InputError, match="block 3 is bad"):
            run_blocks(compute, range(10), on_done=done.__setitem__, client=client)
        assert 3 not in done


def test_blocks_compute_on_one_thread(threads_client):
    seen = []
    run_blocks(
        lambda block: lp.config.current().n_threads,
        range(3),
        on_done=lambda b, n: seen.append(n),
        client=threads_client,
    )
    assert seen == [1, 1, 1]


class DiesOnce:
    """Computes blocks, but the worker that meets block 3 for the first time is killed."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, block):
        with (self.folder / f"{block}.log").open("a") as log:
            log.write("x")
        if block == 3 and not (self.folder / "died").exists():
            (self.folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block


def test_run_blocks_survives_the_loss_of_its_only_worker(tmp_path):  # Q10
    done = {}
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        run_blocks(DiesOnce(tmp_path), range(6), on_done=done.__setitem__, client=client, window=1)
    assert done == {i: i for i in range(6)}
    runs = {i: len((tmp_path / f"{i}.log").read_text()) for i in range(6)}
    assert runs == {0: 1, 1: 1, 2: 1, 3: 2, 4: 1, 5: 1}


def library_threads(layers=("openmp", "pthreads", None)):
    pools = threadpool_info()
    return {pool["num_threads"] for pool in pools if pool.get("threading_layer") in layers}


def stay_inside(entered, leave):
    with single_threaded_libraries():
        entered.set()
        leave.wait()
        return library_threads()


def test_library_threads_are_bounded_in_every_thread_and_restored():
    pytest.importorskip("faiss")  # its OpenBLAS stands on OpenMP: a limit for each thread
    before = threadpool_info()
    entered, leave = threading.Event(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with single_threaded_libraries():
            other = pool.submit(stay_inside, entered, leave)
            entered.wait()
            with single_threaded_libraries():
                assert library_threads() == {1}
        assert library_threads(["pthreads"]) == {1}  # the other thread is still inside
        leave.set()
        assert other.result() == {1}
    assert threadpool_info() == before


def test_any_thread_bounds_the_libraries_after_any_other():
    """OpenBLAS obeys one thread at a time; the one before may still be alive."""
    before, done = threadpool_info(), threading.Event()

    def bound():
        with single_threaded_libraries():
            return library_threads(["pthreads"])

    def bound_and_stay():
        found = bound()
        done.wait(30)
        return found

    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        stays = first.submit(bound_and_stay)
        assert second.submit(bound).result() == {1}
        done.set()
        assert stays.result() == {1}
    assert threadpool_info() == before


def test_settings_are_checked():
    with lp.config.override(n_threads=3):
        assert lp.config.current().n_threads == 3
    with pytest.raises(ConfigError, match="unknown setting"), lp.config.override(threads=3):
        pass
    with pytest.raises(ConfigError, match="at least 1, got 0"), lp.config.override(n_threads=0):
        pass
