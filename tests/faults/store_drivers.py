"""What the fault tests run in processes of their own, to be killed.

The module is loaded by spawned processes too, so it imports only what they need.
"""

import os
import time
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np

from locpipe import store
from locpipe.errors import StoreError
from locpipe.graph import run_blocks
from locpipe.store import ArraySpec

BLOCK_ROWS = 50


@dataclass(frozen=True)
class Job:
    """Blocks to be computed into a store, and a log that outlives every kill."""

    url: str
    log: str
    n_blocks: int
    seconds: float = 0.02
    bandwidth: float = 0.5

    def open(self, **options: Any) -> store.Run:
        parameters = {"bandwidth": self.bandwidth, "n_blocks": self.n_blocks}
        digest = store.fingerprint(parameters, [])
        return store.open_run(
            self.url, flow="f", parameters=parameters, fingerprint=digest, plan={}, **options
        )

    @property
    def spec(self) -> ArraySpec:
        rows = self.n_blocks * BLOCK_ROWS
        return ArraySpec("mean", ("query", "output"), (rows, 3), (BLOCK_ROWS, 3), "f8")

    def note(self, event: str, block: int) -> None:
        """Append one line, in one write, so that processes may share the log."""
        line = f"{event} {block}\n".encode()
        descriptor = os.open(self.log, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, line)
        os.close(descriptor)


@dataclass(frozen=True)
class Compute:
    """One block: a local mean whose bits depend on the block's number alone."""

    job: Job
    writer: store.BlockWriter

    def __call__(self, block: int) -> None:
        self.job.note("start", block)
        rng = np.random.default_rng(block)
        queries, keys = rng.normal(size=(BLOCK_ROWS, 3)), rng.normal(size=(400, 3))
        squared = ((queries[:, None] - keys) ** 2).sum(axis=-1)
        weight = np.exp(-squared / (2 * self.job.bandwidth**2))
        time.sleep(self.job.seconds)
        self.writer(block, weight @ keys / weight.sum(axis=1, keepdims=True))


def connect(address: str | None) -> Any:
    """A client of two threads of this process, or of a cluster that outlives it."""
    from distributed import Client

    if address is not None:
        return Client(address)
    two = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": "127.0.0.1:0"}
    return Client(processes=False, **two)


def drive(job: Job, address: str | None) -> None:
    """Compute what is missing, as a flow does; or be killed."""
    with job.open() as run, connect(address) as client:
        run.ensure(job.spec)

        def record(block: int, _: object) -> None:
            run.record("mean", block)
            job.note("record", block)

        run_blocks(
            Compute(job, run.writer("mean")), run.pending("mean"), on_done=record, client=client
        )
        run.finish()


def compete(job: Job, barrier: Barrier) -> None:
    """Start together with others; log what happened."""
    barrier.wait()
    try:
        run = job.open()
    except StoreError as error:
        Path(job.log).write_text(f"lost: {error}")
        return
    with run:
        run.ensure(job.spec)
        for block in run.pending("mean"):
            Compute(job, run.writer("mean"))(block)
            run.record("mean", block)
        run.finish()
    job.note("won", 0)


def churn(job: Job) -> None:
    """Write and replace whole runs without end, so that a kill hits every phase."""
    while True:
        with job.open(if_exists="replace") as run:
            run.put(ArraySpec("a", ("i",), (8,), (2,), "f8"), np.arange(8.0))
            run.put(ArraySpec("words", ("i",), (8,), (4,), str), list("abcdefgh"))
            run.set_attrs(stress=1)
            run.finish()
        job.note("finished", 0)
