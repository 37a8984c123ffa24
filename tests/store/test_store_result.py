"""Finished runs are read one way, which names what is torn."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from locpipe import store
from locpipe.errors import InputError, StoreError
from locpipe.store import ArraySpec, PartsSpec

Start = Callable[..., store.Run]

POINTS = ArraySpec("points", ("word", "component"), (7, 2), (3, 2), "f4", "bits")
WORDS = ArraySpec("words", ("word",), (7,), (3,), str)
DATA = np.random.default_rng(0).normal(size=(7, 2)).astype("f4")


def finish(start: Start) -> None:
    with start() as run:
        run.put(POINTS, DATA)
        run.put(WORDS, list("abcdefg"))
        run.ensure(PartsSpec("counts", 1))
        run.writer("counts")(0, {"row": np.arange(3)})
        run.record("counts", 0)
        run.set_attrs(stress=0.25)
        run.finish()


def test_a_finished_run_is_read(start: Start, url: Path) -> None:
    finish(start)
    result = store.open_result(url)
    assert result.path == url
    assert list(result.arrays) == ["points", "words"]
    for spec in (POINTS, WORDS):
        assert spec.differences(result.arrays[spec.name]) == ""
    assert result.status.attrs == {"stress": 0.25}
    np.testing.assert_array_equal(result.read("points"), DATA)
    assert "".join(store.read_result(f"file://{url}", "words")) == "abcdefg"
    with pytest.raises(StoreError, match="has no result 'counts'; it has points, words"):
        result.read("counts")


@pytest.mark.parametrize(
    ("content", "message"), [(None, "was written but is missing"), (b"x", "is torn")]
)
def test_what_is_torn_is_named(
    start: Start, url: Path, content: bytes | None, message: str
) -> None:
    finish(start)
    chunk = url / "points" / "c" / "1" / "0"
    chunk.unlink()
    if content is not None:
        chunk.write_bytes(content)
    with pytest.raises(StoreError, match=message) as caught:
        store.read_result(url, "points")
    assert str(caught.value).startswith(str(chunk))
    assert "if_exists=replace" in str(caught.value)
    assert len(store.read_result(url, "words")) == 7


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_text("")])
def test_torn_metadata_are_named(start: Start, url: Path, damage: Callable[[Path], None]) -> None:
    finish(start)
    damage(url / "points" / "zarr.json")
    with pytest.raises(StoreError, match="points") as caught:
        store.open_result(url)
    assert str(url) in str(caught.value)


def test_what_is_no_finished_run(start: Start, url: Path) -> None:
    with pytest.raises(StoreError, match="must hold a finished run, but there is none; run it"):
        store.open_result(url)
    start().close()
    with pytest.raises(StoreError, match="must hold a finished run, but it is not finished"):
        store.read_result(url, "points")
    (url / "zarr.json").write_text("")
    with pytest.raises(StoreError, match=r"but .*zarr\.json must be JSON .* it is torn"):
        store.open_result(url)
    with pytest.raises(InputError, match="needs a path"):
        store.open_result("")
