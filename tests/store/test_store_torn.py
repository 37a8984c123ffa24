"""Torn and missing files are errors that name the file, never numbers."""

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
        with pytest.raises(
            StoreError, match="2/0, a chunk of 'points', was written but is missing"
        ):
            run.read("points")
    with pytest.raises(StoreError, match="was written but is missing"):
        ZarrKeys(url, "points")


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
    with pytest.raises(StoreError, match=r"points/zarr\.json must describe a Zarr array"):
        start()


def test_a_torn_part_is_named(start: Start, url: Path) -> None:
    with start() as run:
        run.ensure(PartsSpec("counts", 2))
        for part in range(2):
            run.writer("counts")(part, {"row": np.arange(99)})
            run.record("counts", part)
        flip(url / "_run" / "counts" / "0" / "row" / "c" / "0")
        with pytest.raises(StoreError, match="_run/counts/0/row/c/0, a chunk of"):
            run.read_part("counts", 0)
        empty(url / "_run" / "counts" / "1" / "zarr.json")
        with pytest.raises(StoreError, match="must list the arrays of part 1 of 'counts', but is"):
            run.read_part("counts", 1)


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
