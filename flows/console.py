"""What a person sees in the terminal: plan, progress, result."""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import rich.box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from locpipe.flows.progress import Progress, terminal
from locpipe.flows.results import Report
from locpipe.flows.running import stages_of
from locpipe.flows.steps.job import Job
from locpipe.flows.wording import counted
from locpipe.store import RunStatus, read_status

__all__ = [
    "print_arrays",
    "print_plan",
    "print_report",
    "print_status",
    "program",
    "summary",
    "summary_markdown",
    "terminal_progress",
]

MOST_CLUSTERS: Final = 20
# Small results and how they are shown, in this order.
SHOWN: Final = {
    "stress": "stress {:.3f}",
    "neighbour_overlap": "neighbour overlap {:.3f}",
    "neighbour_overlap_by_chance": "by chance {:.3f}",
    "radius_spread": "spread of radii {:.2f}",
    "bandwidth": "bandwidth {:.4g}",
    "seconds": "computed in {:.1f} s",
}


def terminal_progress(flow: str) -> Progress:
    """Return progress that is written to standard error."""
    return Progress(
        stages_of(flow),
        terminal(sys.stderr),
        announce=lambda link: print(f"Dask dashboard: {link}", file=sys.stderr),
    )


def print_plan(job: Job[Any]) -> None:
    """Print what a run would do."""
    console = _console()
    for name, value in job.about.items():
        console.print(f"  {name:<10} {value}", markup=False, highlight=False, soft_wrap=True)
    status = read_status(job.config.output)
    if status is None:
        state = "new"
    elif status.fingerprint != job.fingerprint:
        replaced = job.config.if_exists == "replace"
        advice = "which is replaced" if replaced else "so another output, or --if-exists replace"
        state = f"holds another run, {advice}"
    else:
        state = "this run, finished" if status.complete else "this run, to be continued"
    console.print(f"  {'store':<10} {state}", markup=False, highlight=False, soft_wrap=True)
    console.print("Nothing was computed.")


def print_status(output: str, status: RunStatus) -> None:
    """Print how far an unfinished run is."""
    console = _console()
    console.print(
        f"{output}: {status.flow}, not finished", markup=False, highlight=False, soft_wrap=True
    )
    for name, (done, total) in status.done.items():
        console.print(f"  {name:<20} {done} of {total}", markup=False, highlight=False)
    console.print("Run the same command again to finish it.")


def program() -> str:
    """Return how a person calls locpipe in a shell: by its name, if that is on the path.

    Examples
    --------
    >>> program().split()[-1].endswith("locpipe")
    True
    """
    if shutil.which("locpipe"):
        return "locpipe"
    called = Path(sys.argv[0])
    if called.name == "locpipe" and called.is_file():
        return shlex.quote(sys.argv[0])
    return f"{shlex.quote(sys.executable)} -m locpipe"


def summary(report: Report) -> dict[str, str]:
    """Return a result in a few lines: numbers, files, and how to open it."""
    numbers = (text.format(report.attrs[key]) for key, text in SHOWN.items() if key in report.attrs)
    return {
        "map": f"{counted(report.n_dots, 'dot')}, {counted(len(report.clusters), 'cluster')}: "
        + ", ".join(numbers),
        "picture": str(report.picture),
        "store": report.output,
        "look again": f"{program()} show {shlex.quote(report.output)}",
        "in Python": f"xarray.open_zarr({json.dumps(report.output, ensure_ascii=False)})"
        "   (pip install xarray)",
    }


def summary_markdown(report: Report) -> str:
    """Return the same for a page of Prefect, with the warning, if there is one."""
    lines = [f"- **{name}**: {text}" for name, text in summary(report).items()]
    if warning := report.attrs.get("warning"):
        lines += ["", f"**Warning**: {warning}."]
    return "\n".join(lines)


def print_report(report: Report, *, again: bool = True) -> None:
    """Print a result: clusters, numbers, files.

    Parameters
    ----------
    report
        Of a finished run.
    again
        Whether to say how to see it again.
    """
    console = _console()
    console.print(_cluster_table(report))
    for name, line in summary(report).items():
        if name == "look again" and not again:
            continue
        console.print(f"{name:<10} {line}", markup=False, highlight=False, soft_wrap=True)
    if warning := report.attrs.get("warning"):
        Console(stderr=True, soft_wrap=True).print(f"Warning: {warning}.", style="bold yellow")


def _cluster_table(report: Report) -> Table:
    shown = report.clusters[:MOST_CLUSTERS]
    rest = len(report.clusters) - len(shown)
    caption = f"and {counted(rest, 'smaller cluster')}" if rest else None
    table = Table(title="Largest clusters", box=rich.box.SIMPLE_HEAD, caption=caption)
    table.add_column("dots", justify="right")
    table.add_column("densest members", overflow="fold")
    for cluster in shown:
        table.add_row(str(cluster.size), Text(cluster.name))
    return table


def print_arrays(report: Report) -> None:
    """Print which arrays a result has."""
    console = _console()
    for name, described in report.arrays.items():
        console.print(f"  {name:<20} {described}", markup=False, highlight=False, soft_wrap=True)


def _console() -> Console:
    return Console(soft_wrap=False)
