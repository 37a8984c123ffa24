"""Signals end a run once and for all: pressed once, even where Python loses the exception."""

import importlib
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from cli_calls import LOCPIPE, Called, locpipe


class Pressing:
    """What is pressed while Python finalizes something: it prints and drops the exception."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


def lose_in_finalizer(number: signal.Signals) -> None:
    Pressing(number)


def lose_in_weak_reference(number: signal.Signals) -> None:
    dying = set[int]()
    reference = weakref.ref(dying, lambda _: signal.raise_signal(number))
    del dying, reference


def lose_in_careless_code(number: signal.Signals) -> None:
    with suppress(BaseException):
        signal.raise_signal(number)


IN_A_STEP = "locpipe.flows.steps.density.clusters"
AFTER_THE_LAST = "locpipe.flows.running.draw"


@pytest.mark.parametrize(
    ("number", "status", "lose", "step"),
    [
        (signal.SIGINT, 130, lose_in_finalizer, IN_A_STEP),
        (signal.SIGINT, 130, lose_in_weak_reference, AFTER_THE_LAST),
        (signal.SIGINT, 130, lose_in_careless_code, IN_A_STEP),
        (signal.SIGTERM, 143, lose_in_finalizer, AFTER_THE_LAST),
    ],
)
def test_a_signal_that_python_loses_ends_the_run(
    called: Called,
    texts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    status: int,
    lose: Callable[[signal.Signals], None],
    step: str,
) -> None:
    arguments = ["amds", f"--set=input={texts}/good.npy", "-s", "dashboard=false", "-s", "n_init=1"]
    module, _, name = step.rpartition(".")
    do = getattr(importlib.import_module(module), name)
    lost: list[type[BaseException]] = []

    def press(*given: object) -> None:
        do(*given)
        lose(number)

    before = signal.getsignal(number)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "unraisablehook", lambda what: lost.append(what.exc_type))
        patched.setattr(step, press)
        done = called("run", *arguments, "--direct", "-o", tmp_path / "m.zarr")
    assert len(lost) == (lose is not lose_in_careless_code)
    assert signal.getsignal(number) == before
    assert done.returncode == status
    assert done.stderr.splitlines()[-1].endswith("; the same command goes on from here.")
    assert "The whole command took" not in done.stdout
    assert not (tmp_path / "m.zarr.lock").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "how", "options"),
    [
        (signal.SIGINT, 130, "Interrupted", ["--direct"]),
        (signal.SIGTERM, 143, "Terminated", []),
    ],
    ids=["INT, direct", "TERM, Prefect"],
)
def test_stopped_run_says_so_and_leaves_nothing_behind(
    tmp_path: Path,
    prefect_cache: Path,
    number: signal.Signals,
    status: int,
    how: str,
    options: list[str],
) -> None:
    scratch, output = tmp_path / "scratch", tmp_path / "m.zarr"
    scratch.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    places = {
        "TMPDIR": str(scratch),
        "XDG_CACHE_HOME": str(prefect_cache),
        "PREFECT_PROFILES_PATH": str(scratch / "none.toml"),
    }
    with subprocess.Popen(
        [*LOCPIPE, "run", "embed-corpus", *options, "-s", "dashboard=false", "-o", output],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**kept, **places},
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "counting words" in line:
                break
        process.send_signal(number)  # once
        said = process.stderr.read()
    assert process.returncode == status
    assert said.splitlines()[-1] == f"locpipe: {how}; the same command goes on from here."
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.zarr", "scratch"]
    assert list(scratch.glob("locpipe-prefect-*")) == []
    assert "not finished" in locpipe("show", output).stdout
