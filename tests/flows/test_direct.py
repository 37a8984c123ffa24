"""Whole runs without Prefect: read back with xarray, repeated, spread, killed and resumed."""

import io
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from PIL import Image

from locpipe.errors import InputError, StoreError
from locpipe.flows.configuration import configure
from locpipe.flows.console import program, summary, summary_markdown
from locpipe.flows.picture import PREVIEW_BYTES, preview
from locpipe.flows.progress import Progress, Snapshot
from locpipe.flows.results import Report, picture_path, read_report
from locpipe.flows.running import finished_report, prepare, run_direct, stages_of
from locpipe.plots import word_map
from locpipe.store import read_status


def run(flow: str, values: dict[str, Any], *listeners: Any) -> Report:
    job = prepare(configure(flow, values))
    return run_direct(job, Progress(stages_of(flow), *listeners))


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return the report of one finished run, shared by the tests that only read it."""
    values = {
        "input": str(corpus),
        "output": str(tmp_path_factory.mktemp("whole") / "map.zarr"),
        "max_words": 27,
        "n_near": 5,
        "n_init": 1,
        "max_iter": 20,
        "grid_size": 16,
        "dashboard": False,
    }
    return run("embed-corpus", values)


def test_xarray_opens_the_result_without_a_warning(whole: Report) -> None:
    data = xr.open_zarr(whole.output)
    n = data.sizes["word"]
    assert n == 27
    assert data.dissimilarity.sel(word="dog", other_word="cat").size == 1
    assert data.dissimilarity.dims == data.weight.dims == ("word", "other_word")
    assert data.embedding.dims == ("word", "axis")
    assert data.key_embedding.dims == ("other_word", "axis")
    assert data.density_grid.shape == (16, 16)
    for name in ("embedding", "key_embedding", "density", "density_grid", "dissimilarity"):
        assert np.isfinite(data[name]).all(), name
    assert data.attrs["complete"]
    assert 0 < data.attrs["stress"] < 1
    assert np.diff(data.stress_history).max() <= 0


def test_counts_are_those_of_the_text(whole: Report, corpus: Path) -> None:
    data = xr.open_zarr(whole.output)
    tokens = [(corpus / name).read_text().replace(".", " ").split() for name in ("a.txt", "b.txt")]
    for word in ("dog", "said", "honey"):
        assert data["count"].sel(word=word) == sum(t.count(word) for t in tokens)
    words = data.word.values
    follows = {
        (words[i], words[j]): int(n)
        for i, j, n in zip(data.pair_word.values, data.pair_next.values, data.pair_count.values,
                           strict=True)
    }  # fmt: skip
    expected = sum(
        (t[i], t[i + k]) == ("dog", "said") for t in tokens for i in range(len(t)) for k in (1, 2)
        if i + k < len(t)
    )  # fmt: skip
    assert follows["dog", "said"] == expected
    assert ("said", "dog") not in follows  # directed: it never comes before


def test_clusters_partition_the_words_and_bear_dense_names(whole: Report) -> None:
    data = xr.open_zarr(whole.output).load()
    sizes = np.bincount(data.label.values)
    np.testing.assert_array_equal(sizes, data.cluster_size)
    for cluster, name in enumerate(data.cluster_name.values):
        inside = data.word[data.label == cluster].values
        densest = inside[np.argmax(data.density[data.label == cluster].values)]
        assert str(name).split(", ")[0] == densest
        assert set(str(name).split(", ")) <= set(inside)


def test_words_of_a_kind_are_near(whole: Report) -> None:
    data = xr.open_zarr(whole.output)
    speech = ["said", "cried", "asked", "replied", "shouted", "whispered"]
    at = data.embedding.sel(word=speech).values
    rest = data.embedding.sel(word=[w for w in data.word.values if w not in speech]).values
    inner = np.linalg.norm(at[:, None] - at, axis=2)[np.triu_indices(6, 1)].mean()
    outer = np.linalg.norm(at[:, None] - rest, axis=2).mean()
    assert inner < 0.5 * outer


def test_warning_and_numbers_are_in_the_summary(whole: Report) -> None:
    text = summary_markdown(whole)
    assert text.splitlines()[0].startswith("- **map**: 27 dots, ")
    assert ", computed in " in text
    assert text.splitlines()[-1].startswith("**Warning**: there are too few dots to judge the map")
    assert "Warning" not in summary_markdown(replace(whole, attrs={**whole.attrs, "warning": ""}))


def test_lines_to_copy_are_quoted(whole: Report) -> None:
    lines = summary(replace(whole, output='my "map".zarr'))
    assert lines["look again"].endswith(" show 'my \"map\".zarr'")
    assert lines["in Python"].startswith('xarray.open_zarr("my \\"map\\".zarr")')


def test_program_is_called_by_what_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["prefect"])
    assert program() == f"{shlex.quote(sys.executable)} -m locpipe"
    script = tmp_path / "my venv" / "locpipe"
    script.parent.mkdir()
    script.touch(mode=0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert program() == f"'{script}'"
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "locpipe"


def test_preview_is_a_wide_picture_on_white_below_its_size(tmp_path: Path, whole: Report) -> None:
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(1000)]
    crowded = replace(whole, picture=tmp_path / "crowded.png")
    word_map(crowded.picture, words, rng.normal(size=(1000, 2)), labels=np.arange(1000) % 40)
    for report, least in ((whole, 1000), (crowded, 850)):
        file = preview(report)
        assert len(file) <= PREVIEW_BYTES
        with Image.open(io.BytesIO(file)) as image:
            assert least <= image.width <= 1100
            assert image.convert("RGB").getpixel((0, image.height - 1)) == (255, 255, 255)


def test_preview_of_a_see_through_picture_has_a_white_ground(tmp_path: Path, whole: Report) -> None:
    Image.new("RGBA", (80, 40), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    with Image.open(io.BytesIO(preview(replace(whole, picture=tmp_path / "clear.png")))) as image:
        assert (image.size, image.convert("RGB").getpixel((9, 9))) == ((80, 40), (255, 255, 255))


def test_picture_lies_beside_the_store(whole: Report) -> None:
    assert whole.picture == Path(whole.output).with_name("map.png")
    assert whole.picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert sorted(p.name for p in whole.picture.parent.iterdir()) == ["map.png", "map.zarr"]


@pytest.mark.parametrize(
    ("output", "picture"),
    [("a/map.zarr", "a/map.png"), ("a/map", "a/map.png"), ("a/x.1.zarr", "a/x.1.png")],
)
def test_picture_path(output: str, picture: str) -> None:
    assert picture_path(output).as_posix() == picture


def test_finished_run_is_recognised_and_a_lost_picture_is_drawn_again(
    quick: dict[str, Any], whole: Report
) -> None:
    job = prepare(configure("embed-corpus", {**quick, "output": whole.output}))
    whole.picture.unlink()
    report = finished_report(job)
    assert report == whole
    assert whole.picture.exists()
    other = configure("embed-corpus", {**quick, "output": whole.output, "window": 3})
    assert finished_report(prepare(other)) is None
    failing = configure("embed-corpus", {**quick, "output": whole.output, "if_exists": "fail"})
    assert finished_report(prepare(failing)) is None


def test_another_run_in_the_same_place_is_refused_and_may_replace(quick: dict[str, Any]) -> None:
    run("embed-corpus", quick)
    with pytest.raises(StoreError, match=r"window is 2 there and 3 here; choose another output"):
        run("embed-corpus", {**quick, "window": 3})
    with pytest.raises(StoreError, match="if_exists=fail"):
        run("embed-corpus", {**quick, "if_exists": "fail"})
    run("embed-corpus", {**quick, "window": 3, "if_exists": "replace"})
    status = read_status(str(quick["output"]))
    assert status is not None
    assert (status.complete, status.parameters["window"]) == (True, 3)


def arrays_of(output: str) -> dict[str, np.ndarray]:
    data = xr.open_zarr(output).load()
    return {str(name): variable.values for name, variable in data.variables.items()}


def assert_same_bits(left: str, right: str) -> None:
    one, two = arrays_of(left), arrays_of(right)
    assert one.keys() == two.keys()
    for name, values in one.items():
        assert values.dtype == two[name].dtype
        np.testing.assert_array_equal(values, two[name], err_msg=name)


class StopError(Exception):
    """Ends a run in the middle."""


def test_resumed_run_computes_only_what_is_missing_and_gives_the_same_bits(
    quick: dict[str, Any], whole: Report
) -> None:
    for stage, done in ((1, 1), (4, 5), (5, 1), (6, 3)):

        def stop(now: Any, stage: int = stage, done: int = done) -> None:
            if (now.stage, now.done) == (stage, done):
                raise StopError

        with pytest.raises(StopError):
            run("embed-corpus", quick, stop)
    status = read_status(str(quick["output"]))
    assert status is not None
    seen: list[Snapshot] = []
    report = run("embed-corpus", quick, seen.append)
    assert report.attrs["seconds"] > status.attrs["seconds"] > 0  # of all parts of the run
    assert_same_bits(report.output, whole.output)
    first = {now.stage: now for now in reversed(seen)}
    assert all(first[stage].finished for stage in (1, 2, 4))
    assert first[5].done >= 1
    assert first[6].done >= 3


def has_begun(output: str) -> bool:
    status = read_status(output)
    return status is not None and any(done for done, _ in status.done.values())


@pytest.mark.slow
def test_killed_run_goes_on_in_processes_to_the_same_bits(
    quick: dict[str, Any], as_settings: list[str], whole: Report
) -> None:
    output = str(quick["output"])
    with subprocess.Popen(
        [sys.executable, "-m", "locpipe.cli", "run", "embed-corpus", "--direct", *as_settings],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 120
        while not has_begun(output) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    status = read_status(output)
    assert status is not None
    assert not status.complete
    with pytest.raises(StoreError, match="not finished"):
        read_report(output)
    report = run("embed-corpus", {**quick, "cluster": "processes", "n_workers": 2})
    assert_same_bits(report.output, whole.output)


def test_one_sentence_reports_too_few_words(tmp_path: Path) -> None:
    text = tmp_path / "t.txt"
    text.write_text("the and of " * 50)
    values = {"input": str(text), "output": str(tmp_path / "m.zarr"), "dashboard": False}
    with pytest.raises(InputError, match="at least two words"):
        run("embed-corpus", values)
    status = read_status(tmp_path / "m.zarr")
    assert status is None or not status.complete


@pytest.fixture
def distances(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """Return an exact matrix of distances between two sets of points, named, in Parquet."""
    rng = np.random.default_rng(0)
    rows, columns = rng.normal(size=(12, 2)), rng.normal(size=(9, 2))
    delta = np.linalg.norm(rows[:, None] - columns, axis=2)
    frame = pd.DataFrame(delta, index=[f"r{i}" for i in range(12)], columns=list("abcdefghi"))
    frame.to_parquet(tmp_path / "d.parquet")
    return tmp_path / "d.parquet", delta


def test_amds_maps_a_matrix(distances: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    file, delta = distances
    values = {"input": str(file), "output": str(tmp_path / "m.zarr"), "n_init": 2, "grid_size": 8}
    report = run("amds", {**values, "dashboard": False})
    data = xr.open_zarr(report.output)
    found = np.linalg.norm(data.embedding.values[:, None] - data.key_embedding.values[None], axis=2)
    np.testing.assert_allclose(found, delta, atol=1e-6)
    assert data.row.values.tolist() == [f"r{i}" for i in range(12)]
    assert data.column.values.tolist() == list("abcdefghi")
    assert report.picture.exists()


def test_a_square_of_towns_is_no_ring_and_has_numbers_for_names(tmp_path: Path) -> None:
    towns = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    np.save(tmp_path / "d.npy", np.linalg.norm(towns[:, None] - towns, axis=2))
    values = {"input": str(tmp_path / "d.npy"), "output": str(tmp_path / "m.zarr"), "grid_size": 8}
    report = run("amds", {**values, "dashboard": False})
    assert report.attrs["stress"] < 1e-6
    assert report.attrs["radius_spread"] < 1e-3
    assert report.attrs["warning"] == ""
    data = xr.open_zarr(report.output)
    for name in ("row", "column"):
        assert data[name].dtype == np.int64
        assert data[name].values.tolist() == [0, 1, 2, 3]
    assert float(data.dissimilarity.sel(row=0, column=2)) == pytest.approx(2**0.5)


def test_amds_with_missing_cells_and_weights(
    distances: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    _, delta = distances
    holes = delta.copy()
    holes[0, 1] = np.nan
    holes[3, 3] = 100.0  # wrong, and without weight
    weights = np.ones_like(delta)
    weights[3, 3] = 0.0
    np.save(tmp_path / "d.npy", holes)
    np.save(tmp_path / "w.npy", weights)
    values = {
        "input": str(tmp_path / "d.npy"),
        "weights": str(tmp_path / "w.npy"),
        "output": str(tmp_path / "m.zarr"),
        "grid_size": 8,
        "max_iter": 3000,
        "tol": 0,
        "dashboard": False,
    }
    with pytest.raises(InputError, match="row 0, column 1 is; set missing=allow"):
        run("amds", values)
    report = run("amds", {**values, "missing": "allow"})
    assert report.attrs["stress"] < 1e-3


@pytest.mark.parametrize(
    ("delta", "weights", "message"),
    [
        (-np.ones((4, 4)), None, "must be non-negative"),
        (np.full((4, 4), np.inf), None, "must be finite"),
        (np.ones((4, 4)), np.ones((4, 3)), "weights must have the shape"),
        (np.ones((4, 4)), -np.ones((4, 4)), "weights must be finite and >= 0"),
        (np.zeros((4, 4)), None, "must not all be 0"),
    ],
)
def test_amds_refuses_before_work(
    tmp_path: Path, delta: np.ndarray, weights: np.ndarray | None, message: str
) -> None:
    np.save(tmp_path / "d.npy", delta)
    values = {"input": str(tmp_path / "d.npy"), "output": str(tmp_path / "m.zarr")}
    if weights is not None:
        np.save(tmp_path / "w.npy", weights)
        values["weights"] = str(tmp_path / "w.npy")
    with pytest.raises(InputError, match=message):
        prepare(configure("amds", values))
    assert not (tmp_path / "m.zarr").exists()
