"""Whole runs without Prefect: read back with xarray, repeated, spread, killed and resumed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from locpipe.errors import InputError, StoreError
from locpipe.flows.configuration import configure
from locpipe.flows.progress import Progress, Snapshot
from locpipe.flows.results import Report, picture_path, read_report
from locpipe.flows.running import finished_report, prepare, run_direct, stages_of
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


def test_processes_give_the_same_bits_as_threads(quick: dict[str, Any], whole: Report) -> None:
    report = run("embed-corpus", {**quick, "cluster": "processes", "n_workers": 2})
    assert_same_bits(report.output, whole.output)


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
    seen: list[Snapshot] = []
    report = run("embed-corpus", quick, seen.append)
    assert_same_bits(report.output, whole.output)
    first = {now.stage: now for now in reversed(seen)}
    assert all(first[stage].finished for stage in (1, 2, 4))
    assert first[5].done >= 1
    assert first[6].done >= 3


def has_begun(output: str) -> bool:
    status = read_status(output)
    return status is not None and any(done for done, _ in status.done.values())


@pytest.mark.slow
def test_killed_run_goes_on_to_the_same_bits(
    quick: dict[str, Any], as_settings: list[str], whole: Report
) -> None:
    output = str(quick["output"])
    with subprocess.Popen(
        [sys.executable, "-m", "locpipe.cli", "run", "embed-corpus", "--direct", *as_settings],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 60
        while not has_begun(output) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    status = read_status(output)
    assert status is not None
    assert not status.complete
    with pytest.raises(StoreError, match="not finished"):
        read_report(output)
    report = run("embed-corpus", quick)
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
