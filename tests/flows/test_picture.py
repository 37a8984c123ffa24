"""The picture beside a store: only what a run has drawn is overwritten, and it shows that run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from locpipe.errors import InputError
from locpipe.flows.configuration import configure
from locpipe.flows.picture import is_drawn
from locpipe.flows.progress import Progress
from locpipe.flows.results import Report, picture_path
from locpipe.flows.running import finished_report, prepare, run_direct, stages_of
from locpipe.plots import word_map


def run(values: dict[str, Any]) -> Report:
    return run_direct(prepare(configure("amds", values)), Progress(stages_of("amds")))


@pytest.fixture
def values(tmp_path: Path) -> dict[str, Any]:
    """Return settings of a run of `amds` that takes no time."""
    np.save(tmp_path / "d.npy", np.ones((4, 4)) - np.eye(4))
    out = str(tmp_path / "holiday.zarr")
    return {"input": str(tmp_path / "d.npy"), "output": out, "grid_size": 8, "dashboard": False}


def draw_by_hand(path: Path) -> None:
    word_map(path, ["a", "b"], [[0, 0], [1, 1]])


@pytest.mark.parametrize(
    "put",
    [
        lambda path: Image.new("RGB", (4, 4)).save(path),
        lambda path: path.write_text("no picture"),
        lambda path: path.mkdir(),
        lambda path: path.symlink_to("nowhere"),
        draw_by_hand,
    ],
    ids=["picture", "text", "folder", "dead link", "map drawn by hand"],
)
def test_what_no_run_has_drawn_is_kept(values: dict[str, Any], tmp_path: Path, put: Any) -> None:
    path = tmp_path / "holiday.png"
    put(path)
    before = path.lstat()
    with pytest.raises(
        InputError, match=r"holiday\.png, and what is there is not one that locpipe"
    ):
        prepare(configure("amds", values))
    assert (path.lstat().st_ino, path.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not Path(values["output"]).exists()


def test_a_picture_of_another_run_is_drawn_again(values: dict[str, Any], tmp_path: Path) -> None:
    old = run({**values, "output": str(tmp_path / "old.zarr"), "bandwidth": 0.3})
    report = run(values)
    assert is_drawn(report)
    drawn = report.picture.read_bytes()
    report.picture.write_bytes(old.picture.read_bytes())
    assert not is_drawn(report)
    assert finished_report(prepare(configure("amds", values))) == report
    assert report.picture.read_bytes() == drawn


def test_a_replaced_run_has_its_own_picture_under_prefect_too(values: dict[str, Any]) -> None:
    from locpipe.flows.prefect_side import summarise_task

    run(values)
    config = configure("amds", {**values, "bandwidth": 0.3, "if_exists": "replace"})
    after = run_direct(prepare(config), Progress(stages_of("amds")))
    drawn = after.picture.read_bytes()
    word_map(after.picture, ["a"], [[0, 0]], tags={"Software": "locpipe", "Run": "another"})
    summarise_task.fn(config)
    assert after.picture.read_bytes() == drawn


@pytest.mark.parametrize("output", ["file://{}/url.zarr", "{}/a/..", "."])
def test_unusual_names_of_outputs(
    values: dict[str, Any], tmp_path: Path, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    report = run({**values, "output": output.format(tmp_path / "new")})
    assert report.picture.is_file()
    assert report.picture == picture_path(report.output)


def test_the_root_folder_is_no_output(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be a folder with a name, got '/'"):
        prepare(configure("amds", {**values, "output": "/"}))
