"""Running a flow without Prefect, and what both ways of running share."""

from typing import Any, Protocol

from locpipe.flows.models import RunSettings
from locpipe.flows.picture import check_picture, draw, is_drawn
from locpipe.flows.progress import Progress
from locpipe.flows.results import Report, read_report
from locpipe.flows.steps.job import Job, finished

__all__ = ["finished_report", "prepare", "run_direct", "stages_of", "steps_of"]


class Steps(Protocol):
    """What a flow's module of steps has."""

    STAGES: int

    def prepare(self, config: Any) -> Job[Any]:
        """Say what would be done."""

    def compute(self, job: Any, progress: Progress) -> None:
        """Do it."""


def steps_of(flow: str) -> Steps:
    """Return the steps of a flow."""
    from locpipe.flows.steps import amds, embed_corpus

    modules: dict[str, Any] = {"embed-corpus": embed_corpus, "amds": amds}
    steps: Steps = modules[flow]
    return steps


def stages_of(flow: str) -> int:
    """Return the number of stages of a flow."""
    return steps_of(flow).STAGES


def prepare(config: RunSettings) -> Job[Any]:
    """Look at input and output without work.

    Raises
    ------
    LocpipeError
        If the run could not be done.
    """
    check_picture(config.output)
    return steps_of(config.flow).prepare(config)


def finished_report(job: Job[Any]) -> Report | None:
    """Return the report of the run if its output holds it complete, or None.

    A picture that was lost, or shows another run, is drawn again.
    """
    if not finished(job):
        return None
    report = read_report(job.config.output)
    if not is_drawn(report):
        draw(report)
    return report


def run_direct(job: Job[Any], progress: Progress) -> Report:
    """Do a run in this process, without Prefect.

    Raises
    ------
    LocpipeError
        If it cannot be done.
    """
    steps_of(job.config.flow).compute(job, progress)
    report = read_report(job.config.output)
    draw(report)
    return report
