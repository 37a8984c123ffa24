"""Kill -9 at random moments, and runs that compete: nothing is lost, torn, mixed or done twice."""

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_drivers import Job, churn, compete, drive

from locpipe import store
from locpipe.errors import StoreError

FORKS = multiprocessing.get_context("forkserver")
# Imported once: each driver is then a process of its own, forked from a server without threads.
# The same list as in tests/store/test_store_lock.py, because a session has one such server.
FORKS.set_forkserver_preload(["locpipe.store", "locpipe.graph", "distributed", "zarr"])
PATIENCE_SECONDS = 60.0
WINDOW = 6  # of run_blocks on two threads

Stamps = dict[int, tuple[int, int]]


def start(target: Callable[..., None], *args: object) -> BaseProcess:
    process = FORKS.Process(target=target, args=args)
    process.start()
    return process


def kill(process: BaseProcess) -> None:
    process.kill()
    process.join()


def lines(log: str, event: str) -> list[int]:
    """Blocks for which the log has an event, in order; a torn last line is left out."""
    text = Path(log).read_text() if Path(log).exists() else ""
    words = [line.split() for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [int(block) for name, block in words if name == event]


def wait_for(log: str, event: str, count: int, process: BaseProcess) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(lines(log, event)) < count:
        assert process.is_alive(), "the driver ended before it could be killed"
        assert time.monotonic() < deadline, "the driver does not come forward"
        time.sleep(0.005)


def chunk_file(job: Job, block: int) -> Path:
    return Path(job.url, "mean", "c", str(block), "0")


def stamp(job: Job, blocks: set[int]) -> Stamps:
    """Inode and time of change of data files: the file system's word, not the store's."""
    found = {block: chunk_file(job, block).stat() for block in blocks}
    return {block: (status.st_ino, status.st_mtime_ns) for block, status in found.items()}


def unbroken(job: Job, folder: Path) -> Job:
    """The same run without a kill, without Dask, without a pause."""
    whole = Job(str(folder / "unbroken.zarr"), str(folder / "unbroken.log"), job.n_blocks, 0.0)
    compete(whole, FORKS.Barrier(1))
    return whole


def assert_same_bits(job: Job, whole: Job) -> None:
    with job.open() as one, whole.open() as other:
        assert one.complete
        assert one.read("mean").tobytes() == other.read("mean").tobytes()
    for block in range(job.n_blocks):
        assert chunk_file(job, block).read_bytes() == chunk_file(whole, block).read_bytes()


def kill_and_resume(job: Job, n_kills: int, address: str | None, settle: Callable[[], None]) -> str:
    """Start drivers and kill all but the last; check each block's fate, and say what was seen."""
    moments = random.Random(0)
    recorded: Stamps = {}
    in_flight: set[int] = set()
    for life in range(1, n_kills + 1):
        driver = start(drive, job, address)
        target = life * job.n_blocks // (n_kills + 2)
        wait_for(job.log, "record", target, driver)
        time.sleep(moments.uniform(0, 0.04))
        kill(driver)
        settle()
        done = set(lines(job.log, "record"))
        now = stamp(job, done)
        assert now.items() >= recorded.items(), "a recorded block was written again"
        flying = set(lines(job.log, "start")) - done
        assert len(flying - in_flight) <= WINDOW, "more blocks in flight than the window holds"
        recorded, in_flight = now, in_flight | flying
    last = start(drive, job, address)
    last.join(PATIENCE_SECONDS)
    assert last.exitcode == 0
    started = Counter(lines(job.log, "start"))
    again = {block for block, times in started.items() if times > 1}
    rewritten = dict(recorded.items() - stamp(job, set(recorded)).items())
    assert again <= in_flight
    assert not rewritten
    assert set(started) == set(range(job.n_blocks))
    return (
        f"{n_kills} kills, {job.n_blocks} blocks; computed again: {len(again)}, beyond those in "
        f"flight at a kill: {len(again - in_flight)}; recorded data files changed afterwards: "
        f"{len(rewritten)}"
    )


@pytest.mark.slow
def test_kill_and_resume(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "run.zarr"), str(tmp_path / "run.log"), 100)
    print("\n" + kill_and_resume(job, 20, None, settle=lambda: None))
    assert_same_bits(job, unbroken(job, tmp_path))
    assert not list(tmp_path.rglob("*.partial"))
    assert not list(tmp_path.glob("*.lock*"))


@pytest.mark.slow
def test_kill_and_resume_on_a_cluster_that_outlives_the_driver(tmp_path: Path) -> None:
    """Workers go on writing for a moment after their driver was killed."""
    from distributed import Client, LocalCluster

    job = Job(str(tmp_path / "run.zarr"), str(tmp_path / "run.log"), 60)
    size = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**size) as cluster, Client(cluster) as client:

        def busy(dask_worker: Any) -> int:
            # Tasks that the scheduler has given up run on, and their writes would come late.
            return len(dask_worker.state.executing)

        def settle() -> None:
            while any(client.processing().values()) or any(client.run(busy).values()):
                time.sleep(0.01)

        print("\n" + kill_and_resume(job, 4, cluster.scheduler_address, settle))
    assert_same_bits(job, unbroken(job, tmp_path))


# Z06: two runs of different bandwidth start on one store at the same moment.
def test_two_runs_on_one_store(tmp_path: Path) -> None:
    url = str(tmp_path / "run.zarr")
    barrier = FORKS.Barrier(2)
    jobs = [Job(url, str(tmp_path / f"{h}.log"), 20, bandwidth=h) for h in (0.5, 0.7)]
    processes = [start(compete, job, barrier) for job in jobs]
    for process in processes:
        process.join(PATIENCE_SECONDS)
        assert process.exitcode == 0
    texts = [Path(job.log).read_text() for job in jobs]
    (winner,) = [job for job, text in zip(jobs, texts, strict=True) if text.endswith("won 0\n")]
    (loser,) = [text for text in texts if text.startswith("lost: ")]
    assert "one run at a time may write to" in loser
    status = store.read_status(url)
    assert status is not None
    assert status.complete
    assert status.parameters["bandwidth"] == winner.bandwidth
    alone = Job(str(tmp_path / "alone.zarr"), str(tmp_path / "alone.log"), 20, 0, winner.bandwidth)
    compete(alone, FORKS.Barrier(1))
    assert_same_bits(winner, alone)


def test_a_kill_in_any_phase_leaves_a_sound_store(tmp_path: Path) -> None:
    """Opening, replacing, writing, finishing: what is left is complete or can be gone on with."""
    moments = random.Random(1)
    job = Job(str(tmp_path / "run.zarr"), str(tmp_path / "run.log"), 4)
    seen: Counter[bool | None] = Counter()
    for _ in range(16):
        turns = len(lines(job.log, "finished"))
        victim = start(churn, job)
        wait_for(job.log, "finished", turns + 1, victim)
        time.sleep(moments.uniform(0, 0.15))
        kill(victim)
        status = store.read_status(job.url)
        seen[status and status.complete] += 1
        with job.open() as run:
            assert run.complete == bool(status and status.complete)
            if run.complete:
                np.testing.assert_array_equal(run.read("a"), np.arange(8.0))
                assert "".join(run.read("words")) == "abcdefgh"
                assert dict(run.attrs) == {"stress": 1}
    print(f"\nstates found after a kill: {dict(seen)}")
    assert len(seen) > 1, "every kill hit the same state: choose other moments"


def test_while_a_run_goes_on_others_are_refused_and_readers_are_not(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "run.zarr"), str(tmp_path / "run.log"), 60, seconds=0.05)
    driver = start(drive, job, None)
    wait_for(job.log, "record", 3, driver)
    for if_exists in ("default", "replace"):
        with pytest.raises(StoreError, match=f"process {driver.pid} on"):
            job.open(if_exists=if_exists)
    with pytest.raises(StoreError, match="is running; stop that process first"):
        store.unlock(job.url)
    status = store.read_status(job.url)
    assert status is not None
    assert 3 <= status.done["mean"][0] < 60
    assert not status.complete
    kill(driver)
