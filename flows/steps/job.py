"""A job: its configuration, what its numbers depend on, its store, its blocks."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from locpipe.cluster import connect, dashboard_link
from locpipe.errors import InputError, LocpipeError, StoreError
from locpipe.flows.models import RunSettings
from locpipe.flows.progress import Progress
from locpipe.flows.steps.clock import Clock
from locpipe.flows.steps.inputs import Inputs
from locpipe.graph import run_blocks
from locpipe.store import BlockWriter, Run, RunStatus, open_run, read_status

__all__ = ["Job", "Work", "at_work", "finished", "settle"]


Config = TypeVar("Config", bound=RunSettings, covariant=True)


@dataclass(frozen=True)
class Job(Generic[Config]):
    """A run that is about to start, or to go on.

    Attributes
    ----------
    config : RunSettings
    fingerprint : str
        Of everything that changes a number.
    plan : mapping
        How the work is cut; where the store has one already, that one is used.
    about : mapping of str to str
        What a person wants to know beforehand, line by line.
    inputs : Inputs
    """

    config: Config
    fingerprint: str
    plan: Mapping[str, Any]
    about: Mapping[str, str]
    inputs: Inputs


@dataclass(frozen=True)
class Work:
    """What the steps of a running job share: its store, its cluster, its progress, its clock."""

    config: Any
    run: Run
    client: Any
    progress: Progress
    clock: Clock
    inputs: Inputs

    def finish(self) -> None:
        """Mark the store complete, unless an input changed meanwhile."""
        self.inputs.check()
        self.clock.keep()
        self.run.finish()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read the inputs in the block; what an input that changed gave is not kept.

        Raises
        ------
        InputError
            If an input changed.
        """
        try:
            yield
        finally:
            try:
                self.inputs.check()
            except InputError:
                self.run.discard()
                raise

    def stored(self, *names: str) -> bool:
        """Return whether results are there in full, from an earlier run or an earlier step."""
        done = self._status().done
        return all(name in done and done[name][0] == done[name][1] for name in names)

    def _status(self) -> RunStatus:
        status = read_status(self.run.url)
        if status is None:
            raise StoreError(f"{self.run.url} vanished while it was written; run again.")
        return status

    def blocks(
        self,
        title: str,
        names: tuple[str, ...],
        compute: Callable[[int], Mapping[str, Any]],
        *,
        here: bool = False,
    ) -> None:
        """Compute the blocks that are still missing, on the cluster, and record each as it ends.

        Parameters
        ----------
        title
            What the stage does.
        names
            Results that share these blocks; a block is computed again if one of them lacks it.
        compute
            ``compute(block)`` returns the block's data for each name; it runs on a worker.
        here
            Run it in this process: for work that is only reading and writing.
        """
        pending = sorted(set().union(*(self.run.pending(name) for name in names)))
        total = self._status().done[names[0]][1]
        with self.progress.stage(title, total, total - len(pending)) as advance:

            def on_done(block: int, _: object) -> None:
                for name in names:
                    self.run.record(name, block)
                self.clock.keep(seldom=True)
                advance()

            writers = {name: self.run.writer(name) for name in names}
            if pending:
                client = None if here else self.client
                with _loss_of_workers(title):
                    run_blocks(
                        _WriteBlock(compute, writers), pending, client=client, on_done=on_done
                    )


@dataclass(frozen=True)
class _WriteBlock:
    """A task: compute one block and write it, so that only its number travels back."""

    compute: Callable[[int], Mapping[str, Any]]
    writers: Mapping[str, BlockWriter]

    def __call__(self, block: int) -> None:
        for name, data in self.compute(block).items():
            self.writers[name](block, data)


@contextmanager
def _loss_of_workers(title: str) -> Iterator[None]:
    """Say what it means that Dask gave up: its own messages name tasks, not causes."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError
    from distributed.scheduler import NoWorkerError

    try:
        yield
    except (CancelledError, CommClosedError, KilledWorker, NoWorkerError) as error:
        raise RuntimeError(
            f"the workers were lost while {title} ({type(error).__name__}; memory is the usual"
            " reason); finished blocks are kept, so the same command goes on from here"
        ) from error


def settle(config: RunSettings, fingerprint: str) -> RunStatus | None:
    """Return the status of the output, as far as this run may go on with it."""
    status = read_status(config.output)
    if status is None or status.fingerprint != fingerprint or config.if_exists == "replace":
        return None
    return status


def finished(job: Job[RunSettings]) -> bool:
    """Return whether the output holds this very run, complete, and the run may take it as it is."""
    status = settle(job.config, job.fingerprint)
    return status is not None and status.complete and job.config.if_exists != "fail"


@contextmanager
def _opened(job: Job[RunSettings]) -> Iterator[Run]:
    """Open the job's store; its lock is held within the block."""
    with open_run(
        job.config.output,
        flow=job.config.flow,
        parameters=job.config.numbers(),
        fingerprint=job.fingerprint,
        plan=job.plan,
        if_exists=job.config.if_exists,
    ) as run:
        yield run


@contextmanager
def at_work(job: Job[RunSettings], progress: Progress) -> Iterator[Work]:
    """Open the job's store and connect to its cluster.

    Raises
    ------
    InputError, StoreError
        If the store cannot be opened.
    RuntimeError
        If it fails later: the disk is full, the store or its lock is lost.
    """
    opened = False
    try:
        with _opened(job) as run:
            opened = True
            with _connected(job.config, run, progress, job.inputs) as work:
                yield work
    except StoreError as error:
        if not opened:
            raise
        raise RuntimeError(str(error)) from error


@contextmanager
def _connected(config: RunSettings, run: Run, progress: Progress, inputs: Inputs) -> Iterator[Work]:
    with (
        connect(
            config.cluster,
            n_workers=config.n_workers,
            threads_per_worker=config.threads_per_worker,
            memory_limit=config.memory_limit,
            address=config.address,
            dashboard=config.dashboard,
        ) as client,
    ):
        if link := dashboard_link(client):
            progress.announce(link)
        clock = Clock(run)
        try:
            yield Work(config, run, client, progress, clock, inputs)
        except BaseException:
            # Why the run ends matters more than how long it took so far.
            with suppress(LocpipeError, OSError):
                clock.keep()
            raise
