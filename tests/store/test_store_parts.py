"""Results in parts of any length: written whole or not at all."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from locpipe import store
from locpipe.errors import StoreError
from locpipe.store import PartsSpec

Start = Callable[..., store.Run]


def test_parts_of_any_length_and_type(start: Start) -> None:
    part = {
        "row": np.arange(5),
        "count": np.array([], dtype="i4"),
        "word": np.array(["ä", "b"]),
        "weight": np.array([np.nan, -0.0]),
    }
    with start() as run:
        run.ensure(PartsSpec("counts", 2))
        run.writer("counts")(0, part)
        run.writer("counts")(1, {})
        run.record("counts", 0, 1)
        found = run.read_part("counts", 0)
        assert run.read_part("counts", 1) == {}
        assert list(found) == list(part)
        assert found["word"].tolist() == ["ä", "b"]
        for name in ("row", "count", "weight"):
            assert found[name].dtype == part[name].dtype
            assert found[name].tobytes() == part[name].tobytes()


def test_a_half_written_part_is_not_read_and_is_written_anew(start: Start, url: Path) -> None:
    with start() as run:
        run.ensure(PartsSpec("counts", 1))
        run.writer("counts")(0, {"row": np.arange(5), "old": np.arange(2)})
        (url / "_run" / "counts" / "0" / "zarr.json").unlink()  # as if killed before the last step
        with pytest.raises(StoreError, match=r"part 0 of 'counts' in .* is not done"):
            run.read_part("counts", 0)
    with start() as run:
        assert run.pending("counts") == [0]
        run.writer("counts")(0, {"row": np.arange(3.0)})
        run.record("counts", 0)
        found = run.read_part("counts", 0)
    assert list(found) == ["row"]
    assert found["row"].tolist() == [0.0, 1.0, 2.0]


def test_one_part_written_twice_at_once(start: Start) -> None:
    with start() as run:
        run.ensure(PartsSpec("counts", 1))
        data = {name: np.arange(1000) for name in "abc"}
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: run.writer("counts")(0, data), range(8)))
        run.record("counts", 0)
        assert all(
            (array == np.arange(1000)).all() for array in run.read_part("counts", 0).values()
        )
