"""The command line: ``locpipe run | plan | show | doctor | config | unlock``."""

import errno
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as installed_version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locpipe.errors import LocpipeError

if TYPE_CHECKING:
    from locpipe.flows.models import RunSettings
    from locpipe.flows.results import Report
    from locpipe.flows.steps.job import Job

__all__ = ["app", "main"]

OK, FAILED, BAD_INPUT = 0, 1, 2  # and 128 + its number if a signal ended the run
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE)  # full or lost

app = typer.Typer(
    help="Kernel-weighted local means over data of any size: run flows, look at their results.",
    epilog="--debug anywhere on the line shows the traceback of an error.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Flow = Annotated[str, typer.Argument(help="embed-corpus or amds", show_default=False)]
Store = Annotated[str, typer.Argument(help="Path of a result (a Zarr store)", show_default=False)]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", help="YAML file", show_default=False)
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="KEY=VALUE", help="Set a key; may be repeated"),
]
Output = Annotated[
    str | None, typer.Option("--output", "-o", help="Store to write", show_default=False)
]
IfExists = Annotated[
    str | None,
    typer.Option("--if-exists", help="default, fail, resume or replace", show_default=False),
]


@app.command()
def run(
    flow: Flow,
    config: ConfigFile = None,
    settings: Settings = None,
    output: Output = None,
    if_exists: IfExists = None,
    direct: Annotated[bool, typer.Option("--direct", help="Run without Prefect")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done")] = False,
) -> None:
    """Run a flow; a run that was interrupted goes on where it stopped."""
    start = time.monotonic()
    with _stoppable():
        job = _prepare(flow, config, settings, output, if_exists)
        if dry_run:
            _print_plan(job)
            return
        from locpipe.flows.running import finished_report

        report = finished_report(job)
        if report is not None:
            typer.echo("This run is finished already; nothing was computed.")
        else:
            report = _run(job, direct=direct)
    _print_report(report)
    typer.echo(f"The whole command took {time.monotonic() - start:.1f} s.")


@app.command()
def plan(
    flow: Flow,
    config: ConfigFile = None,
    settings: Settings = None,
    output: Output = None,
    if_exists: IfExists = None,
) -> None:
    """Check input, output and configuration; say what a run would do."""
    _print_plan(_prepare(flow, config, settings, output, if_exists))


@app.command()
def show(store: Store) -> None:
    """Show a result, or how far an unfinished run is."""
    from locpipe.flows.console import print_arrays, print_status
    from locpipe.flows.results import look, read_report

    status = look(store)
    if status is not None and not status.complete:
        print_status(store, status)
        return
    report = read_report(store)
    _print_report(report, again=False)
    print_arrays(report)


@app.command()
def config(flow: Flow) -> None:
    """Print a flow's configuration, commented, to be edited."""
    from locpipe.flows.configuration import shipped_yaml

    typer.echo(shipped_yaml(flow), nl=False)


@app.command()
def unlock(store: Store) -> None:
    """Remove the lock of a run that is known to be dead."""
    from locpipe.store import unlock as unlock_store

    unlock_store(store)
    typer.echo(f"{store} has no lock now.")


@app.command()
def doctor() -> None:
    """Check that this installation works."""
    from locpipe.flows.doctor import examine

    if not examine():
        raise typer.Exit(FAILED)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version")] = False,
) -> None:
    if version:
        typer.echo(f"locpipe {installed_version('locpipe')}")
        raise typer.Exit(OK)


@contextmanager
def _stoppable() -> Iterator[None]:
    """End the command as a signal asks, even where Python lost what its handler raised."""
    from locpipe.flows.stopping import check_stopped, stoppable, stopped_by

    with stoppable():
        try:
            yield
            check_stopped()
        except BaseException:
            number = stopped_by()
            if number is None:
                raise
            raise typer.Exit(_say_stopped(number)) from None


def _say_stopped(number: int) -> int:
    how = "Terminated" if number == signal.SIGTERM else "Interrupted"
    return _say(f"{how}; the same command goes on from here.", 128 + number)


def main() -> None:
    """Run the command line; one sentence for an error, the exit status says of which kind."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that lacks a character shows another
            stream.reconfigure(errors="replace")
    debug = "--debug" in sys.argv
    try:
        app([argument for argument in sys.argv[1:] if argument != "--debug"])
    except LocpipeError as error:
        if debug:
            raise
        sys.exit(_say(_as_options(str(error)), FAILED if _is_of_disk(error) else BAD_INPUT))
    except Exception as error:
        if debug:
            raise
        sys.exit(_say(f"The run failed: {_name(error)} (--debug shows where).", FAILED))


def _say(sentence: str, status: int) -> int:
    """Write an error's sentence, on a line of its own even where progress was being shown."""
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    typer.echo(f"{start}locpipe: {sentence}", err=True)
    return status


def _is_of_disk(error: Exception) -> bool:
    reason = error.__context__
    return isinstance(reason, OSError) and reason.errno in DISK


def _as_options(sentence: str) -> str:
    """Write what a library says of its argument in the words of the command line.

    Examples
    --------
    >>> _as_options("replace it with if_exists=replace")
    'replace it with --if-exists replace'
    """
    return re.sub(r"\bif_exists=(\w+)", r"--if-exists \1", sentence)


def _name(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _prepare(
    flow: str,
    file: Path | None,
    settings: list[str] | None,
    output: str | None,
    if_exists: str | None,
) -> "Job[RunSettings]":
    from locpipe.flows.configuration import load_config

    given = {"output": output, "if_exists": if_exists}
    options = {key: value for key, value in given.items() if value is not None}
    checked = load_config(flow, file=file, settings=settings or [], options=options)
    typer.echo(f"{flow}: looking at the input", err=True)
    from locpipe.flows.running import prepare

    return prepare(checked)


def _run(job: "Job[RunSettings]", *, direct: bool) -> "Report":
    if direct:
        from locpipe.flows.console import terminal_progress
        from locpipe.flows.running import run_direct

        return run_direct(job, terminal_progress(job.config.flow))
    from locpipe.flows.server import configured_server, server_for_run

    where = configured_server() or "its own server for this run, some seconds to start"
    typer.echo(f"Prefect: {where}", err=True)
    with server_for_run() as wait_until_up:
        from locpipe.flows.prefect_side import run_flow

        wait_until_up()
        return run_flow(job)


def _print_plan(job: "Job[Any]") -> None:
    from locpipe.flows.console import print_plan

    print_plan(job)


def _print_report(report: "Report", *, again: bool = True) -> None:
    from locpipe.flows.console import print_report

    print_report(report, again=again)


if __name__ == "__main__":
    main()
