"""Ours and its peers, side by side: one process, the same threads, interleaved, warm.

Each contender is called once to warm up (what it compiles is in that first call, which is shown on
its own), then all are called in turn, round after round.  Seconds are medians over the rounds; a
ratio is the median over the rounds of theirs by ours, so what slows the machine slows both.
"""

import argparse
import datetime
import gc
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

MISSING = "not installed"
PACKAGES = ("numpy", "scipy", "numba", "finufft", "dask", "scikit-learn")
PEERS = ("torch", "pykeops", "faiss-cpu", "KDEpy")


@dataclass(frozen=True)
class Contender:
    """One that computes the same thing.

    Attributes
    ----------
    build : callable
        Prepares its input, which is not timed, and gives what is timed, a call without arguments;
        raises ImportError where the peer is not installed.
    warm : bool
        Whether to warm it up first; not worth it for a long call that compiles nothing.
    """

    build: Callable[[], Callable[[], Any]]
    warm: bool = True


@dataclass
class Times:
    """Seconds of a contender, of its first call and of each round, and what it computed."""

    first: float = 0.0
    rounds: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def median(self) -> float:
        return median(self.rounds)


def compare(
    contenders: Mapping[str, Contender], *, n_threads: int, rounds: int = 7, budget: float = 20.0
) -> dict[str, Times]:
    """Times of every contender that is installed; none begins a round once it has had `budget`."""
    calls = {name: call for name, c in contenders.items() if (call := _built(c)) is not None}
    found = {name: Times() for name in calls}
    with threads(n_threads):
        for name, call in calls.items():
            if contenders[name].warm:
                found[name].first, found[name].result = seconds(call)
        for name, call in list(calls.items()) * rounds:
            if sum(found[name].rounds) < budget:
                spent, found[name].result = seconds(call)
                found[name].rounds.append(spent)
    return found


def _built(contender: Contender) -> Callable[[], Any] | None:
    try:
        return contender.build()
    except ImportError:
        return None


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of one call, and its result; the garbage of others is no part of it."""
    gc.collect()
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def ratio(theirs: Times, ours: Times) -> float:
    """Median over the rounds that both ran of their seconds by ours."""
    return median(t / o for t, o in zip(theirs.rounds, ours.rounds, strict=False))


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Every library that is loaded runs on `n` threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(n):
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(n)
        if faiss := sys.modules.get("faiss"):
            faiss.omp_set_num_threads(n)
        yield


def arguments(text: str, **defaults: Any) -> argparse.ArgumentParser:
    """A parser with one option per keyword and those that all benchmarks have."""
    parser = argparse.ArgumentParser(description=text.split("\n\n")[0])
    for name, default in ({"rounds": 7, "threads": 2, "seed": 0} | defaults).items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(default), default=default, help=f"{default}")
    return parser


def heading(title: str, n_threads: int) -> None:
    """Print what was measured where, when, and with which versions."""
    versions = ", ".join(
        f"{name} {found}" for name in (*PACKAGES, *PEERS) if (found := _version(name))
    )
    print(f"### {title}\n")
    print(f"{processor()}, {os.cpu_count()} cores, {n_threads} threads each side; ", end="")
    print(f"{datetime.date.today()}; Python {platform.python_version()}, {versions}\n", flush=True)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def processor() -> str:
    """Name of the processor, and its widest vector unit."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    lines = dict(line.split(":", 1) for line in info.read_text().splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in lines.items()}
    vectors = [name for name in ("avx512f", "avx2") if name in fields.get("flags", "").split()]
    model = f"family {fields.get('cpu family')} model {fields.get('model')}"
    return f"{fields.get('model name', platform.machine())} ({', '.join([model, *vectors[:1]])})"


def peak() -> float:
    """Highest resident memory of this process so far, in GiB.

    On Linux `getrusage` counts what the parent held when the process began; its status does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**20
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def table(columns: Sequence[str]) -> Callable[..., None]:
    """A function that prints a row of a Markdown table, whose head is printed now."""
    print("| " + " | ".join(columns) + " |")
    print("|" + "|".join("---" for _ in columns) + "|", flush=True)

    def row(*cells: Any) -> None:
        print("| " + " | ".join(shown(cell) for cell in cells) + " |", flush=True)

    return row


def shown(cell: Any) -> str:
    """A number in three digits, small ones as a power of ten."""
    if cell is None:
        return MISSING
    if not isinstance(cell, float):
        return f"{cell:,}" if isinstance(cell, int) else str(cell)
    if cell == 0:
        return "0"
    return f"{cell:.1e}" if cell < 1e-4 else f"{cell:.3g}" if cell < 1000 else f"{cell:,.0f}"


def lines(
    found: Mapping[str, Times],
    contenders: Sequence[str],
    error: Callable[[Any], float] | None = None,
) -> None:
    """Print one line per contender against the first."""
    ours = found[contenders[0]]
    row = table(("", "median s", f"by {contenders[0]}", "error", "first call s", "rounds"))
    for name in contenders:
        if name not in found:
            row(name, *(MISSING,) * 5)
            continue
        one = found[name]
        wrong = "" if error is None or one.result is None else error(one.result)
        row(name, one.median, ratio(one, ours), wrong, one.first or "", len(one.rounds))
    print(flush=True)
