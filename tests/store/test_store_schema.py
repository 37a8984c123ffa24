"""Specs: what may be stored, and how it is cut into blocks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locpipe.errors import InputError
from locpipe.store import ArraySpec, PartsSpec

SIZES = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5)), max_size=3)


@given(SIZES)
def test_regions_cover_every_cell_once(sizes: list[tuple[int, int]]) -> None:
    shape, chunks = tuple(n for n, _ in sizes), tuple(c for _, c in sizes)
    spec = ArraySpec("a", tuple("ijk"[: len(shape)]), shape, chunks, "f8")
    seen = np.zeros(shape, dtype=int)
    for block in range(spec.n_blocks):
        seen[spec.region(block)] += 1
    np.testing.assert_array_equal(seen, 1)


def test_blocks_count_in_c_order() -> None:
    spec = ArraySpec("a", ("row", "column"), (5, 4), (3, 2), "f8")
    assert spec.region(1) == (slice(0, 3), slice(2, 4))
    assert spec.region(2) == (slice(3, 5), slice(0, 2))


@pytest.mark.parametrize(
    ("dtype", "fill"), [("i8", -1), ("u2", 0), ("bool", False), (str, ""), ("U7", "")]
)
def test_default_fill_values(dtype: object, fill: object) -> None:
    assert ArraySpec("a", ("i",), (1,), (1,), dtype).fill_value == fill  # type: ignore[arg-type]


def test_floats_are_filled_with_nan() -> None:
    assert np.isnan(ArraySpec("a", ("i",), (1,), (1,), "f4").fill_value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "_run"}, "must be letters, digits"),
        ({"name": "a/b"}, "must be letters, digits"),
        ({"name": "zarr.json"}, "rename it"),
        ({"name": "a\n"}, "must be letters, digits"),
        ({"dims": ("i",)}, "as many dims as sizes and chunks"),
        ({"dims": ("i", "i")}, "must differ from one another"),
        ({"shape": (-1, 2)}, "sizes >= 0 and chunks >= 1"),
        ({"chunks": (0, 2)}, "sizes >= 0 and chunks >= 1"),
        ({"dtype": object}, "numbers, booleans or str, got object"),
        ({"dtype": "M8[s]"}, "numbers, booleans or str"),
        ({"units": "seconds"}, "use a symbol such as 's'"),
        ({"units": "days since 1970-01-01"}, "decodes as time"),
    ],
)
def test_specs_that_cannot_be(changes: dict[str, object], message: str) -> None:
    good: dict[str, object] = {
        "name": "a",
        "dims": ("i", "j"),
        "shape": (4, 2),
        "chunks": (2, 2),
        "dtype": "f8",
    }
    ArraySpec(**good)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        ArraySpec(**{**good, **changes})  # type: ignore[arg-type]


def test_parts_cannot_be_fewer_than_none() -> None:
    with pytest.raises(InputError, match="n_parts of 'counts' must be >= 0, got -1"):
        PartsSpec("counts", -1)


def test_a_block_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"must be in 0\.\.2, got 3"):
        ArraySpec("a", ("i",), (9,), (3,), "f8").region(3)
