"""A run from start to finish: what is written is read, by us and by xarray."""

import json
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray
import zarr

from locpipe import store
from locpipe.errors import InputError, StoreError
from locpipe.store import ArraySpec, PartsSpec

Start = Callable[..., store.Run]

WORDS = ArraySpec("words", ("word",), (10,), (4,), str, description="the words")
MAP = ArraySpec(
    "embedding", ("word", "component"), (10, 2), (4, 2), "f4", "bits", "where", None, ("words",)
)
TEXT = ["naïve", "Straße", "", "①", "語", "a b", "x" * 500, "e\u0301", "🙂", "z"]


def finished(start: Start) -> np.ndarray[Any, Any]:
    points = np.arange(20.0, dtype="f4").reshape(10, 2)
    with start() as run:
        run.ensure(PartsSpec("counts", 2))
        for part in run.pending("counts"):
            run.writer("counts")(part, {"row": np.arange(part)})
            run.record("counts", part)
        run.put(WORDS, TEXT)
        run.put(MAP, points)
        run.put(ArraySpec("cluster", ("word",), (10,), (10,), "i8"), np.full(10, -1))
        run.set_attrs(stress=0.25, seconds=np.float32(2), worst=float("nan"))
        run.finish()
    return points


def test_xarray_opens_it_without_a_warning_and_sees_results_only(start: Start, url: Path) -> None:
    points = finished(start)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xarray.open_zarr(str(url)) as found:
            found.load()
    assert set(found.variables) == {"words", "embedding", "cluster"}
    assert set(found.coords) == {"words"}
    assert dict(found.sizes) == {"word": 10, "component": 2}
    np.testing.assert_array_equal(found["embedding"], points)
    assert found["embedding"].dtype == np.float32
    assert list(found["words"].values) == TEXT
    np.testing.assert_array_equal(found["cluster"], np.full(10, -1))
    assert found["cluster"].dtype == np.int64
    assert found["embedding"].attrs == {"units": "bits", "description": "where"}


def test_the_root_says_what_it_is(start: Start, url: Path) -> None:
    finished(start)
    attributes = dict(zarr.open_group(str(url), mode="r").attrs)
    assert attributes["schema"] == "locpipe-run"
    assert attributes["schema_version"] == 1
    assert attributes["complete"] is True
    assert attributes["flow"] == "embed-corpus"
    assert attributes["parameters"] == {"bandwidth": 0.5, "input": "novel.txt"}
    assert attributes["plan"] == {"block_rows": 4}
    assert attributes["stress"] == 0.25
    assert attributes["seconds"] == 2
    assert attributes["worst"] == "NaN"
    assert attributes["versions"]["numpy"] == np.__version__
    assert len(attributes["fingerprint"]) == 16


def test_chunks_are_zstd_with_a_checksum(start: Start, url: Path) -> None:
    finished(start)
    for name in ("embedding", "words", "cluster"):
        codecs = json.loads((url / name / "zarr.json").read_text())["codecs"]
        assert codecs[-1] == {"name": "zstd", "configuration": {"level": 1, "checksum": True}}


def test_an_unfinished_run_never_looks_complete(start: Start, url: Path) -> None:
    with start() as run:
        run.ensure(MAP)
        with pytest.raises(StoreError, match=r"not: \{'embedding': 3\}; compute them first"):
            run.finish()
        with pytest.raises(StoreError, match="3 of 3 are not"):
            run.read("embedding")
        assert not run.complete
    status = store.read_status(url)
    assert status is not None
    assert not status.complete
    assert status.done == {"embedding": (0, 3)}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (MAP, "embedding/c/0/0, a chunk of 'embedding', was written but is missing"),
        (PartsSpec("counts", 1), "must list the arrays of part 0 of 'counts', but is missing"),
    ],
)
def test_blocks_recorded_without_being_written_are_found(
    start: Start, spec: ArraySpec | PartsSpec, message: str
) -> None:
    with start() as run:
        run.ensure(spec)
        run.record(spec.name, *run.pending(spec.name))
        with pytest.raises(StoreError, match=message):
            run.finish()
        assert not run.complete


def test_words_can_be_the_index_of_their_dimension(start: Start, url: Path) -> None:
    with start() as run:
        run.put(ArraySpec("word", ("word",), (2,), (1,), str), ["é", "b"])
        run.put(ArraySpec("density", ("word",), (2,), (2,), "f8"), [1, 2])
        run.finish()
    assert float(xarray.open_zarr(str(url)).sel(word="é").density) == 1.0


def test_data_reach_the_disk_before_their_record(
    start: Start, url: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut a record must not name a block whose file is not there."""
    synced: list[str] = []
    fsync = os.fsync

    def spy(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(os.path.realpath(f"/proc/self/fd/{descriptor}"))

    with start() as run:
        run.ensure(MAP, PartsSpec("counts", 1))
        monkeypatch.setattr(os, "fsync", spy)
        run.writer("embedding")(1, np.zeros((4, 2)))
        assert synced == [str(url / "embedding/c/1/0"), str(url / "embedding/c/1")]
        run.record("embedding", 1)
        assert len(synced) == 2
        run.writer("counts")(0, {"row": np.arange(3)})
        assert str(url / "_run/counts/0/row/c/0") in synced[2:]
        assert synced[-1] == str(url / "_run/counts/0")


def test_a_block_that_is_all_fill_is_known_as_done(start: Start) -> None:
    with start() as run:
        run.ensure(MAP)
        run.writer("embedding")(1, np.full((4, 2), np.nan))
        run.record("embedding", 1)
    with start() as run:
        assert run.pending("embedding") == [0, 2]


def test_record_is_on_disk_when_it_returns(start: Start, url: Path) -> None:
    with start() as run:
        run.ensure(MAP)
        for n_done in range(1, 4):
            run.record("embedding", n_done - 1)
            status = store.read_status(url)
            assert status is not None
            assert status.done["embedding"] == (n_done, 3)


def test_writers_ride_in_graphs(start: Start) -> None:
    with start() as run:
        run.ensure(MAP, PartsSpec("counts", 2))
        for name in ("embedding", "counts"):
            sent = pickle.dumps(run.writer(name))
            assert len(sent) < 1000
        pickle.loads(sent)(1, {"row": np.arange(3)})
        run.record("counts", 1)
        assert run.read_part("counts", 1)["row"].tolist() == [0, 1, 2]


# Z01: Dask chunks smaller than the stored chunks, written in parallel, must lose nothing.
def test_parallel_writers_lose_nothing(start: Start) -> None:
    data = np.arange(24**3).reshape(24, 24, 24)
    lazy = da.from_array(data, chunks=6)
    with start() as run:
        run.ensure(ArraySpec("a", ("i", "j", "k"), data.shape, (12, 12, 12), "i8"))
        writer = run.writer("a")
        with pytest.raises(InputError, match=r"must have shape \(12, 12, 12\), got \(6, 6, 6\)"):
            writer(0, data[:6, :6, :6])

        def write(block: int) -> int:
            writer(block, lazy[run.region("a", block)].compute(scheduler="sync"))
            return block

        with ThreadPoolExecutor(8) as pool:
            for block in pool.map(write, run.pending("a")):
                run.record("a", block)
        found = run.read("a")
    np.testing.assert_array_equal(found, data)
    assert found.sum() == 95_544_576


# Z03: consolidated metadata that is older than an array hides it.
def test_arrays_added_after_a_stray_consolidation_are_seen(start: Start, url: Path) -> None:
    with start() as run:
        run.put(WORDS, TEXT)
    with pytest.warns(UserWarning, match="Consolidated metadata"):
        zarr.consolidate_metadata(str(url))
    with start() as run:
        run.put(MAP, np.zeros((10, 2)))
        assert {"words", "embedding"} <= set(zarr.open_group(str(url), mode="r").array_keys())
        run.finish()
    assert set(zarr.open_group(str(url), mode="r").array_keys()) == {"words", "embedding"}
    assert set(xarray.open_zarr(str(url)).variables) == {"words", "embedding"}


def test_partial_files_are_swept_on_resume_and_finish(start: Start, url: Path) -> None:
    left = [url / "embedding" / "c" / f"0.{'0' * 32}.partial", url / f"zarr.{'1' * 32}.partial"]
    kept = url / "notes.partial"
    with start() as run:
        run.put(MAP, np.zeros((10, 2)))
        kept.write_text("not ours")
        for path in left:
            path.write_bytes(b"torn")
    with start() as run:
        assert not any(path.exists() for path in left)
        left[0].write_bytes(b"torn")
        run.finish()
    assert not left[0].exists()
    assert kept.exists()


def test_put_keeps_what_is_recorded(start: Start) -> None:
    with start() as run:
        run.put(MAP, np.zeros((10, 2)))
        run.put(MAP, np.ones((10, 2)))
        assert run.read("embedding").sum() == 0


def test_numbers_are_cast_within_their_kind(start: Start) -> None:
    with start() as run:
        run.put(MAP, np.full((10, 2), 1 / 3))
        assert run.read("embedding")[0, 0] == np.float32(1 / 3)


def misuse(run: store.Run) -> dict[str, tuple[Callable[[], object], type[Exception], str]]:
    run.ensure(MAP, WORDS, PartsSpec("counts", 2))
    wrong = np.zeros((4, 2), dtype=complex)
    write, write_words = run.writer("embedding"), run.writer("words")
    longer = ArraySpec("e", ("word",), (11,), (4,), "f8")
    dim = ArraySpec("component", ("word",), (10,), (4,), "f8")
    other = ArraySpec("words", ("word",), (10,), (5,), str)
    return {
        "dtype": (lambda: write(0, wrong), InputError, "must fit float32, got complex128"),
        "text": (lambda: write_words(2, [1, 2]), InputError, "must hold str, got int64"),
        "block": (lambda: write(3, wrong), InputError, r"must be in 0\.\.2, got 3"),
        "record": (lambda: run.record("embedding", -1), InputError, r"must be in 0\.\.2, got -1"),
        "name": (lambda: run.pending("x"), StoreError, "has no result 'x'; it has"),
        "parts": (lambda: run.region("counts", 0), InputError, "consists of parts; use read_part"),
        "part": (lambda: run.writer("counts")(0, [1]), InputError, "a mapping of names to 1-d"),
        "2-d": (lambda: run.writer("counts")(0, {"a": wrong}), InputError, "1 dimension, got 2"),
        "shape": (lambda: run.put(MAP, np.zeros(3)), InputError, r"shape \(10, 2\), got \(3,\)"),
        "size": (lambda: run.ensure(longer), InputError, "'word' is 10 in 'embedding' and 11 in"),
        "dim": (lambda: run.ensure(dim), InputError, "'component' has the name of a dimension"),
        "form": (lambda: run.ensure(other), StoreError, r"chunks \(5,\) asked for, \(4,\) stored"),
        "kind": (lambda: run.ensure(PartsSpec("words", 1)), StoreError, "in another form"),
        "attrs": (lambda: run.set_attrs(complete=1), InputError, r"not be named \['complete'\]"),
        "json": (lambda: run.set_attrs(a=object()), InputError, "must be a number, text, list"),
    }


def test_misuse_is_refused_in_one_sentence(start: Start) -> None:
    with start() as run:
        for name, (call, error, message) in misuse(run).items():
            with pytest.raises(error, match=message) as caught:
                call()
            assert "\n" not in str(caught.value), name


def test_a_complete_run_is_closed_to_writing(start: Start) -> None:
    finished(start)
    with start() as run:
        assert run.complete
        run.finish()
        run.ensure(MAP)
        run.put(WORDS, TEXT)
        more = ArraySpec("more", ("word",), (10,), (4,), "f8")
        for call in (
            lambda: run.ensure(more),
            lambda: run.record("words", 0),
            lambda: run.writer("words"),
            lambda: run.set_attrs(stress=1),
        ):
            with pytest.raises(StoreError, match="it is complete; use if_exists=replace"):
                call()


def test_what_a_run_tells(start: Start, url: Path) -> None:
    finished(start)
    with start() as run:
        assert Path(run.url) == url
        assert run.flow == "embed-corpus"
        assert dict(run.parameters) == {"bandwidth": 0.5, "input": "novel.txt"}
        assert dict(run.plan) == {"block_rows": 4}
        assert dict(run.attrs) == {"stress": 0.25, "seconds": 2, "worst": "NaN"}
        assert run.fingerprint == store.fingerprint(run.parameters, [])


def test_a_status_is_quick_and_imports_no_dask_nor_zarr(start: Start, url: Path) -> None:
    finished(start)
    code = (
        "import sys; from locpipe.store import read_status; s = read_status(sys.argv[1]); "
        "print(s.complete, s.done, {'dask', 'distributed', 'zarr'} & set(sys.modules))"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(url)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8")
    done = "{'cluster': (1, 1), 'counts': (2, 2), 'embedding': (3, 3), 'words': (3, 3)}"
    assert out.stdout.strip() == f"True {done} set()"
