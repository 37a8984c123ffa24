"""What a run reads: it may not change while it is read, nor lie where the run writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from locpipe.errors import InputError
from locpipe.flows.configuration import configure
from locpipe.flows.progress import Progress, Snapshot
from locpipe.flows.results import Report
from locpipe.flows.running import prepare, run_direct, stages_of
from locpipe.store import read_status


def run(flow: str, values: dict[str, Any], *listeners: Any) -> Report:
    job = prepare(configure(flow, values))
    return run_direct(job, Progress(stages_of(flow), *listeners))


@pytest.fixture
def text(tmp_path: Path, corpus: Path) -> Path:
    """Return a text of its own for a test that changes it."""
    file = tmp_path / "texts" / "t.txt"
    file.parent.mkdir()
    file.write_text((corpus / "a.txt").read_text())
    return file


@pytest.mark.parametrize("stage", [1, 2])
def test_a_text_that_changes_while_it_is_counted_ends_the_run_and_its_counts(
    quick: dict[str, Any], text: Path, stage: int
) -> None:
    before = text.read_text()
    values = {**quick, "input": str(text)}

    def edit(now: Snapshot) -> None:
        if (now.stage, now.done) == (stage, 1):
            text.write_text(before.replace("dog", "fox"))

    with pytest.raises(InputError, match=r"^the input changed while it was read: .*t\.txt; run"):
        run("embed-corpus", values, edit)
    text.write_text(before)
    seen: list[Snapshot] = []
    run("embed-corpus", values, seen.append)
    assert (
        next(now for now in seen if now.stage == 1).done == 0
    )  # mixed counts are not gone on with


def test_a_text_that_changes_later_leaves_the_run_unfinished(
    quick: dict[str, Any], text: Path
) -> None:
    def edit(now: Snapshot) -> None:
        if now.stage == 5:
            text.write_text("something else")

    with pytest.raises(InputError, match=r"the input changed while it was read: .*t\.txt"):
        run("embed-corpus", {**quick, "input": str(text)}, edit)
    status = read_status(str(quick["output"]))
    assert status is not None
    assert not status.complete


def test_a_text_that_comes_after_the_first_look_is_noticed(
    quick: dict[str, Any], text: Path
) -> None:
    job = prepare(configure("embed-corpus", {**quick, "input": str(text.parent)}))
    (text.parent / "new.txt").write_text("the dog said so")
    with pytest.raises(InputError, match=r"the input changed while it was read: .*new\.txt"):
        run_direct(job, Progress(stages_of("embed-corpus")))


def test_a_matrix_that_changes_while_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "d.npy"
    delta = np.abs(np.subtract.outer(np.arange(20.0), np.arange(20.0)))
    np.save(file, delta)
    values = {"input": str(file), "output": str(tmp_path / "m.zarr"), "dashboard": False}

    def edit(now: Snapshot) -> None:
        if (now.stage, now.done) == (1, 1):
            np.save(file, delta + 1)

    with pytest.raises(InputError, match=r"the input changed while it was read: .*d\.npy"):
        run("amds", values, edit)
    assert read_status(values["output"]) is None


@pytest.mark.parametrize("name", ["input", "weights"])
def test_a_matrix_in_the_output_is_not_replaced(tmp_path: Path, name: str) -> None:
    np.save(tmp_path / "d.npy", np.ones((5, 5)))
    values = {"input": str(tmp_path / "d.npy"), "output": str(tmp_path / "m.zarr"), "grid_size": 8}
    run("amds", {**values, "dashboard": False})
    (tmp_path / "link.zarr").symlink_to(tmp_path / "m.zarr")
    values[name] = str(tmp_path / "link.zarr" / "dissimilarity")
    with pytest.raises(InputError, match="must not hold an input, nor lie inside one"):
        prepare(configure("amds", {**values, "if_exists": "replace"}))
    assert (tmp_path / "m.zarr" / "dissimilarity" / "zarr.json").is_file()


def test_a_result_does_not_become_part_of_its_input(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "d.zarr", data=np.ones((5, 5)))
    values = {"input": str(tmp_path / "d.zarr"), "output": f"file://{tmp_path}/d.zarr/m.zarr"}
    with pytest.raises(InputError, match="nor lie inside one"):
        prepare(configure("amds", values))


def test_a_text_in_the_output_is_refused(quick: dict[str, Any], text: Path) -> None:
    run("embed-corpus", quick)
    inside = Path(str(quick["output"])) / "mine.txt"
    inside.write_text(text.read_text())
    with pytest.raises(InputError, match=r"must not hold an input, .* '.*mine\.txt'"):
        prepare(configure("embed-corpus", {**quick, "input": str(inside)}))


def test_an_empty_list_is_no_input(quick: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"must name files, folders or globs, but got \[\]"):
        prepare(configure("embed-corpus", {**quick, "input": []}))
