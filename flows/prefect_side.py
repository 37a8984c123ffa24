"""Prefect's side of the flows: parameters from a model, four tasks, progress, artifacts."""

import base64
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, Final, cast
from uuid import UUID

from prefect import task
from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger
from pydantic.fields import FieldInfo

from locpipe.flows.console import summary_markdown, terminal_progress
from locpipe.flows.models import RunSettings
from locpipe.flows.picture import draw, is_drawn, picture_text, preview
from locpipe.flows.progress import Progress, Snapshot, log_lines
from locpipe.flows.results import Report, read_report
from locpipe.flows.running import finished_report, prepare, stages_of, steps_of
from locpipe.flows.steps.job import Job

__all__ = ["parameters_of", "run_flow", "run_tasks"]

PROGRESS_SECONDS: Final = 2.0  # a progress artifact is a request to the server

# Whether a person watches this process: set by `run_flow`, read where progress is made.
_watched: ContextVar[bool] = ContextVar("watched", default=False)


def parameters_of(model: type[RunSettings]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a flow function the keys of a model as its parameters: types, ranges, help, defaults.

    Parameters
    ----------
    model
        What the flow may be told.
    """
    fields = model.model_fields
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=_annotation(field),
        )
        for name, field in fields.items()
    ]
    # Prefect shows what it finds in this form.
    described = "".join(f"    {name}: {field.description}.\n" for name, field in fields.items())

    def give(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.Signature(parameters, return_annotation=str)
        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__doc__ = f"{inspect.getdoc(function)}\n\nArgs:\n{described}"
        return function

    return give


def _annotation(field: FieldInfo) -> Any:
    """Return a field's type with its range, as it stands in the model."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def run_tasks(config: RunSettings) -> str:
    """Run a flow's four tasks within a Prefect flow.

    Returns
    -------
    str
        The store.
    """
    if not prepare_task(config):
        compute_task(config)
    summarise_task(config)
    publish_task(config)
    return config.output


@task(name="prepare", cache_policy=NO_CACHE)
def prepare_task(config: RunSettings) -> bool:
    """Look at input and output; return whether the run is finished already."""
    return finished_report(prepare(config)) is not None


@task(name="compute", cache_policy=NO_CACHE)
def compute_task(config: RunSettings) -> None:
    """Do what the store does not have yet, block by block on Dask."""
    with _progress(config.flow) as progress:
        steps_of(config.flow).compute(prepare(config), progress)


@task(name="summarise", cache_policy=NO_CACHE)
def summarise_task(config: RunSettings) -> None:
    """Draw the picture."""
    report = read_report(config.output)
    if not is_drawn(report):
        draw(report)


@task(name="publish", cache_policy=NO_CACHE)
def publish_task(config: RunSettings) -> None:
    """Show the result in Prefect: a table of clusters, the picture, the numbers."""
    report = read_report(config.output)
    flow = config.flow
    rows = [{"dots": c.size, "densest members": c.name} for c in report.clusters]
    create_table_artifact(rows, key=f"{flow}-clusters", description="Clusters, largest first")
    image = base64.b64encode(preview(report)).decode()
    create_image_artifact(
        f"data:image/png;base64,{image}",
        key=f"{flow}-map",
        description=f"{picture_text(report)}; in full size: {report.picture}",
    )
    text = summary_markdown(report)
    create_markdown_artifact(text, key=f"{flow}-summary", description=f"Result of {flow}")


def run_flow(job: Job[Any]) -> Report:
    """Run a job's flow from the command line; progress goes to the terminal, too.

    Raises
    ------
    Exception
        What a step raised.
    """
    from locpipe.flows.amds import amds
    from locpipe.flows.embed_corpus import embed_corpus

    flows: dict[str, Any] = {"embed-corpus": embed_corpus, "amds": amds}
    token = _watched.set(True)
    try:
        flows[job.config.flow](**job.config.model_dump())
    finally:
        _watched.reset(token)
    return read_report(job.config.output)


@contextmanager
def _progress(flow: str) -> Iterator[Progress]:
    """Progress as an artifact, and for whoever reads: in the terminal, or in the run's log."""
    key, description = f"{flow}-progress", f"{flow}: share done"
    artifact = cast("UUID", create_progress_artifact(0.0, key=key, description=description))
    listeners = [_artifact_updater(artifact)]
    if _watched.get():
        watched = terminal_progress(flow)
        listeners.extend(watched.listeners)
    else:
        listeners.append(log_lines(get_run_logger().info))
    yield Progress(stages_of(flow), *listeners, announce=_announce_dashboard)
    update_progress_artifact(artifact, 100.0)


def _artifact_updater(artifact: UUID) -> Callable[[Snapshot], None]:
    last = 0.0

    def update(now: Snapshot) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            update_progress_artifact(artifact, round(100 * now.share, 1))
            last = time.monotonic()

    return update


def _announce_dashboard(link: str) -> None:
    create_link_artifact(key="dask-dashboard", link=link, description="While the run computes")
