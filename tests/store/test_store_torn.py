"""Torn and missing files are errors that name the file, never numbers."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from locpipe import store
from locpipe.errors import StoreError
from locpipe.store import ArraySpec, PartsSpec, ZarrKeys, ZarrPairs

Start = Callable[..., store.Run]

POINTS = ArraySpec("points", ("word", "component"), (7, 2), (3, 2), "f4")
DATA = np.random.default_rng(0).normal(size=(7, 2)).astype("f4")


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip, empty])
@pytest.mark.parametrize("spec", [POINTS, ArraySpec("words", ("word",), (7,), (3,), str)])
def test_a_torn_chunk_is_named(
    start: Start, url: Path, damage: Callable[[Path], None], spec: ArraySpec
) -> None:
    with start() as run:
        run.put(spec, DATA if spec is POINTS else [f"word {i}" for i in range(7)])
        chunk = url / spec.name / "c" / ("1/0" if spec is POINTS else "1")
        damage(chunk)
        with pytest.raises(StoreError, match=f"a chunk of '{spec.name}', .* is torn") as caught:
            run.read(spec.name)
    assert str(caught.value).startswith(str(chunk))
    assert "\n" not in str(caught.value)


def test_every_single_flipped_bit_is_found_or_harmless(start: Start, url: Path) -> None:
    with start() as run:
        run.put(ArraySpec("points", ("word",), (4,), (4,), "f4"), DATA[:4, 0])
        run.finish()  # or the torn block would be forgotten
        chunk = url / "points" / "c" / "0"
        whole, found = chunk.read_bytes(), 0
        for bit in range(8 * len(whole)):
            torn = bytearray(whole)
            torn[bit // 8] ^= 1 << bit % 8
            chunk.write_bytes(torn)
            try:
                assert run.read("points").tobytes() == DATA[:4, 0].tobytes()
            except StoreError:
                found += 1
    # Two of the frame header's bits say nothing about the content.
    assert found >= 8 * len(whole) - 8


def test_a_missing_chunk_is_not_fill(start: Start, url: Path) -> None:
    with start() as run:
        run.put(POINTS, DATA)
        (url / "points" / "c" / "2" / "0").unlink()
        with pytest.raises(StoreError, match="was written but is missing; run again"):
            ZarrKeys(url, "points")
        with pytest.raises(
            StoreError, match="2/0, a chunk of 'points', was written but is missing; run again"
        ):
            run.read("points")


def test_sources_name_torn_chunks(start: Start, url: Path) -> None:
    with start() as run:
        run.put(POINTS, DATA)
    keys, pairs = ZarrKeys(url, "points"), ZarrPairs(url, "points")
    flip(url / "points" / "c" / "1" / "0")
    assert [block.start for block in keys.iter_blocks(3, stop=3)] == [0]
    with pytest.raises(StoreError, match="1/0, a chunk of 'points'"):
        list(keys.iter_blocks(3))
    with pytest.raises(StoreError, match="1/0, a chunk of 'points'"):
        pairs.tile(slice(2, 4), slice(0, 2))


def test_torn_metadata_are_named(start: Start, url: Path) -> None:
    with start() as run:
        run.put(POINTS, DATA)
        empty(url / "points" / "zarr.json")
        with pytest.raises(StoreError, match=r"points/zarr\.json must describe a Zarr array"):
            run.read("points")
    with start() as run:  # an unfinished array is begun again
        run.put(POINTS, DATA)
        np.testing.assert_array_equal(run.read("points"), DATA)
        run.finish()
    empty(url / "points" / "zarr.json")
    with pytest.raises(StoreError, match=r"points/zarr\.json must .* with if_exists=replace"):
        start()
    start(if_exists="replace").close()


def test_a_torn_part_is_named(start: Start, url: Path) -> None:
    with start() as run:
        run.ensure(PartsSpec("counts", 3, "word counts"))
        for part in range(3):
            run.writer("counts")(part, {"row": np.arange(99)})
            run.record("counts", part)
        flip(url / "_run" / "counts" / "0" / "row" / "c" / "0")
        with pytest.raises(StoreError, match="_run/counts/0/row/c/0, a chunk of"):
            run.read_part("counts", 0)
        empty(url / "_run" / "counts" / "1" / "zarr.json")
        with pytest.raises(StoreError, match="must list the arrays of part 1 of 'counts', but is"):
            run.read_part("counts", 1)
        (url / "_run" / "counts" / "2" / "zarr.json").unlink()
    with start() as run:
        assert run.pending("counts") == [0, 1, 2]
        run.ensure(PartsSpec("counts", 3, "word counts"))  # its description is stored


def compute_pending(run: store.Run) -> list[int]:
    run.ensure(POINTS)
    todo = run.pending("points")
    for block in todo:
        run.writer("points")(block, DATA[run.region("points", block)])
        run.record("points", block)
    return todo


@pytest.mark.parametrize("if_exists", ["default", "replace"])
@pytest.mark.parametrize("damage", [truncate, flip, empty, Path.unlink])
def test_of_an_unfinished_run_only_the_torn_block_is_computed_again(
    start: Start, url: Path, damage: Callable[[Path], None], if_exists: str
) -> None:
    with start() as run:
        compute_pending(run)
        damage(url / "points" / "c" / "1" / "0")
        with pytest.raises(StoreError, match="run again: only what is torn is computed again"):
            run.read("points")
        assert run.pending("points") == [1]
    with start(if_exists=if_exists) as run:
        assert compute_pending(run) == [1]
        np.testing.assert_array_equal(run.read("points"), DATA)
        run.finish()


def test_blocks_that_went_missing_between_runs_are_pending(
    start: Start, url: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with start() as run:
        compute_pending(run)
    (url / "points" / "c" / "2" / "0").unlink()
    with start() as run:
        assert run.pending("points") == [2]
    status = store.read_status(url)
    assert status is not None
    assert status.done == {"points": (2, 3)}
    assert "blocks [2] of 'points' in" in caplog.text


def test_a_torn_block_that_a_task_has_met_is_forgotten_as_the_run_ends(
    start: Start, url: Path
) -> None:
    with start() as run:
        compute_pending(run)
        pairs = ZarrPairs(url, "points")
        flip(url / "points" / "c" / "1" / "0")
    with pytest.raises(StoreError, match="run again: only") as caught:
        pairs.tile(slice(2, 4), slice(0, 2))
    copy = pickle.loads(pickle.dumps(caught.value))  # as it comes back from another process
    with pytest.raises(StoreError, match="run again: only"), start():
        raise copy
    with start() as run:
        assert compute_pending(run) == [1]


def test_verify_reads_all_that_is_recorded(start: Start, url: Path) -> None:
    with start() as run:
        compute_pending(run)
        run.ensure(PartsSpec("counts", 1))
        assert run.verify() == {}
        flip(url / "points" / "c" / "1" / "0")
        (url / "points" / "c" / "2" / "0").unlink()
        assert run.verify("counts") == {}
        assert run.verify() == {"points": [1, 2]}
        assert run.pending("points") == [1, 2]
        with pytest.raises(StoreError, match="has no result 'other'"):
            run.verify("other")
        compute_pending(run)
        run.record("counts", 0)  # never written
        assert run.verify("counts") == {"counts": [0]}


def test_a_complete_run_forgets_nothing(start: Start, url: Path) -> None:
    with start() as run:
        compute_pending(run)
        run.finish()
        flip(url / "points" / "c" / "1" / "0")
        assert run.verify() == {}
        with pytest.raises(StoreError, match="or compute the store again with if_exists=replace"):
            run.read("points")
        assert run.pending("points") == []


def test_a_record_of_another_size_counts_as_none(start: Start, url: Path) -> None:
    with start() as run:
        compute_pending(run)
    record = url / "_run" / "points" / "zarr.json"
    record.write_text(record.read_text().replace('"n_blocks": 3', '"n_blocks": 4'))
    with start() as run:
        assert compute_pending(run) == [0, 1, 2]


def test_a_torn_block_that_was_not_recorded_is_written_over(start: Start, url: Path) -> None:
    with start() as run:
        run.ensure(POINTS)
        for block in range(3):
            run.writer("points")(block, DATA[run.region("points", block)])
            truncate(url / "points" / "c" / str(block) / "0")
    with start() as run:
        for block in run.pending("points"):
            run.writer("points")(block, DATA[run.region("points", block)])
            run.record("points", block)
        np.testing.assert_array_equal(run.read("points"), DATA)
