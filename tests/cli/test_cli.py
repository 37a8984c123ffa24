"""The command line as a person meets it: a subprocess, its exit status, its one sentence."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cli_calls import Called, locpipe

from locpipe.cli import main
from locpipe.flows.configuration import shipped_yaml

HEAVY = ("prefect", "sklearn", "scipy", "dask", "distributed", "matplotlib", "zarr", "numba")


def imported_before(line: str, *arguments: str) -> set[str]:
    """Return which heavy packages a command has imported when it prints `line`."""
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "locpipe", *arguments],
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        names = set()
        for said in process.stdout:
            if said.startswith("import time:"):
                names.add(said.rsplit("|")[-1].strip())
            elif line in said:
                process.kill()
                return names & set(HEAVY)
    raise AssertionError(f"never said {line!r}")


def test_help_lists_the_commands_and_imports_nothing_heavy() -> None:
    done = locpipe("--help")
    assert done.returncode == 0
    for command in ("run", "plan", "show", "doctor", "config", "unlock"):
        assert command in done.stdout
    assert imported_before("Commands", "--help") == set()


def test_version() -> None:
    assert locpipe("--version").stdout == "locpipe 0.1.0\n"


def test_config_prints_the_shipped_yaml() -> None:
    done = locpipe("config", "embed-corpus")
    assert done.stdout == shipped_yaml("embed-corpus")
    assert yaml.safe_load(done.stdout)["max_words"] == 1000


def test_doctor_finds_this_installation_well() -> None:
    done = locpipe("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert "ok   Dask" in done.stdout


BAD_INPUT = {
    "missing path": ("embed-corpus", ["input={}/no.txt"], "nothing is there"),
    "empty corpus": ("embed-corpus", ["input={}/empty.txt"], "every file is empty"),
    "one-word corpus": ("embed-corpus", ["input={}/one_word.txt"], "two distinct words"),
    "binary file": ("embed-corpus", ["input={}/binary.txt"], "must be UTF-8 text"),
    "output is a file": (
        "embed-corpus",
        ["input={}/good.txt", "output={}/good.txt"],
        "must be a folder|is a file",
    ),
    "output below a file": (
        "embed-corpus",
        ["input={}/good.txt", "output={}/good.txt/map.zarr"],
        "is a file",
    ),
    "output is no store": (
        "embed-corpus",
        ["input={}/good.txt", "output={}/other"],
        "other",
    ),
    "unwritable output": (
        "embed-corpus",
        ["input={}/good.txt", "output=/proc/map.zarr"],
        "must be writable",
    ),
    "unknown key": ("embed-corpus", ["inputs={}"], "did you mean 'input'"),
    "wrong type": ("embed-corpus", ["window=wide"], "window must be a valid integer"),
    "bandwidth": ("embed-corpus", ["bandwidth=0"], "bandwidth must be greater than or equal to 0"),
    "NaN": ("amds", ["input={}/nan.npy"], "must not be NaN, and row 0, column 2 is"),
    "negative": ("amds", ["input={}/negative.npy"], "must be non-negative, got -1.0 in row 1"),
    "too many dimensions": (
        "amds",
        ["input={}/good.npy", "n_components=3"],
        "n_components must be below both sides",
    ),
    "dimensions of words": (
        "embed-corpus",
        ["input={}/good.txt", "max_words=2"],
        "n_components must be below",
    ),
}


@pytest.mark.parametrize(("flow", "settings", "sentence"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input(
    called: Called, texts: Path, tmp_path: Path, flow: str, settings: list[str], sentence: str
) -> None:
    arguments = [f"--set={setting.format(texts)}" for setting in settings]
    if not any(setting.startswith("output") for setting in settings):
        arguments.append(f"--output={tmp_path / 'out.zarr'}")
    done = called("run", flow, "--direct", "--set=dashboard=false", *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("locpipe: ")]
    assert len(said) == 1
    assert re.search(sentence, said[0])
    shown = called("show", tmp_path / "out.zarr")
    assert "cluster" not in shown.stdout  # nothing half-written is taken for a result


def test_bad_input_in_a_shell(texts: Path, tmp_path: Path) -> None:
    done = locpipe("run", "embed-corpus", f"--set=input={texts}/no.txt", "-o", tmp_path / "m.zarr")
    assert done.returncode == 2
    assert done.stdout == ""
    looked, said = done.stderr.splitlines()
    assert looked == "embed-corpus: looking at the input"
    assert said.startswith("locpipe: The input ")
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(texts: Path) -> None:
    done = locpipe("plan", "embed-corpus", "--debug", f"--set=input={texts}/no.txt")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "InputError" in done.stderr


@pytest.mark.parametrize("arguments", [["run"], ["plan", "embed-corpus", "--foo"], ["dance"]])
def test_usage_errors(called: Called, arguments: list[str]) -> None:
    done = called(*arguments)
    assert done.returncode == 2
    assert "Usage: " in done.stderr


def test_plan_and_dry_run_say_what_would_be_done_and_do_nothing(
    called: Called, texts: Path, tmp_path: Path
) -> None:
    arguments = ["embed-corpus", f"--set=input={texts}/good.txt", "-o", tmp_path / "m.zarr"]
    planned = called("plan", *arguments)
    assert planned.returncode == 0
    assert "1 document, 1.3 kB\n" in planned.stdout
    assert " 1 part, window 2\n" in planned.stdout
    assert "8.0 MB before compression; words are not counted yet" in planned.stdout
    assert "Nothing was computed." in planned.stdout
    assert called("run", *arguments, "--dry-run").stdout == planned.stdout
    assert list(tmp_path.iterdir()) == []


def test_show_and_unlock_where_nothing_is(called: Called, tmp_path: Path) -> None:
    done = called("show", tmp_path / "none.zarr")
    assert (done.returncode, done.stdout) == (2, "")
    assert "holds no run, so there is nothing to show" in done.stderr
    assert called("unlock", tmp_path / "none.zarr").returncode == 0


def test_show_of_a_folder_that_is_no_store(
    called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    done = called("show", ".")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "locpipe: '.' must be a locpipe store, and is a folder without one; give the folder that a"
        " run wrote as its output, such as output/embed-corpus/map.zarr.\n"
    )


def test_a_result_is_shown_and_another_run_is_told_the_option(
    called: Called, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "my maps" / "map.zarr"
    arguments = ["amds", f"--set=input={texts}/good.npy", "--set=dashboard=false", "-o", output]
    monkeypatch.setenv("PATH", "")
    done = called("run", *arguments, "--direct")
    assert done.returncode == 0, done.stderr
    again = f"look again {shlex.quote(sys.executable)} -m locpipe show '{output}'"
    assert again in done.stdout.splitlines()
    assert ", computed in " in done.stdout
    assert done.stdout.splitlines()[-1].startswith("The whole command took ")
    assert "on a ring" not in done.stderr
    shown = called("show", output)
    assert shown.returncode == 0
    assert "look again" not in shown.stdout
    assert ", computed in " in shown.stdout
    other = ["--set=random_state=1"]
    refused = called("run", *arguments, *other, "--direct")
    assert refused.returncode == 2
    assert "or replace it with --if-exists replace\n" in refused.stderr
    planned = called("plan", *arguments, *other)
    assert "so another output, or --if-exists replace\n" in planned.stdout


def test_first_line_comes_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    output = str(tmp_path / "m.zarr")
    first = "embed-corpus: looking at the input"
    assert imported_before(first, "run", "embed-corpus", "--direct", "-o", output) == set()


def test_an_ascii_terminal_shows_other_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "t.txt"
    text.write_text("naïve chat, naïve été, été chat " * 30)
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    arguments = ["embed-corpus", f"--set=input={text}", "-s", "dashboard=false", "-s", "n_init=1"]
    output = str(tmp_path / "map.zarr")
    monkeypatch.setattr(sys, "argv", ["locpipe", "run", "--direct", *arguments, "-o", output])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 0
    terminal.flush()
    assert b"na?ve" in terminal.buffer.getvalue()  # type: ignore[attr-defined]


def test_a_lost_store_is_a_failed_run(
    called: Called, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from locpipe.flows.steps import density

    output = tmp_path / "m.zarr"
    find = density.clusters

    def lose(*arguments: object) -> None:
        shutil.rmtree(output)
        find(*arguments)

    monkeypatch.setattr(density, "clusters", lose)
    arguments = ["amds", f"--set=input={texts}/good.npy", "--set=dashboard=false", "-o", output]
    done = called("run", *arguments, "--direct")
    assert done.returncode == 1, done.stderr
    assert "The run failed: RuntimeError: " in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_a_failed_run(
    called: Called, texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        Path("/dev/full").write_bytes(b"x")

    monkeypatch.setattr(Path, "replace", full)
    output = tmp_path / "m.zarr"
    arguments = ["amds", f"--set=input={texts}/good.npy", "--set=dashboard=false", "-o", output]
    done = called("run", *arguments, "--direct")
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in done.stderr
