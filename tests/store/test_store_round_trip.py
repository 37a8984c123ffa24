"""What is written is read, for any data, any cut into blocks and any order of them."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays as array_strategy

from locpipe import store
from locpipe.store import ArraySpec
from locpipe.store.folder import Folder
from locpipe.store.metadata import read_done


@st.composite
def cut_arrays(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], tuple[int, ...]]:
    shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
    dtype = draw(st.sampled_from(["f4", "f8", "i4", "i8", "u1", "bool"]))
    chunks = tuple(draw(st.integers(2, 4)) for _ in shape)
    return draw(array_strategy(dtype, shape)), chunks


@pytest.fixture(scope="module")
def shared_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[store.Run]:
    """One run for many examples: opening a store for each would be most of the time."""
    url = tmp_path_factory.mktemp("shared") / "x.zarr"
    with store.open_run(url, flow="f", parameters={}, fingerprint="0", plan={}) as run:
        yield run


COUNT = itertools.count()


def new_spec(shape: tuple[int, ...], chunks: tuple[int, ...], dtype: Any) -> ArraySpec:
    name = f"a{next(COUNT)}"
    return ArraySpec(
        name, tuple(f"{name}-{axis}" for axis in "ijk"[: len(shape)]), shape, chunks, dtype
    )


@given(cut_arrays(), st.randoms(use_true_random=False))
def test_written_is_read_block_by_block_in_any_order(
    shared_run: store.Run, case: tuple[np.ndarray[Any, Any], tuple[int, ...]], random: Any
) -> None:
    data, chunks = case
    spec = new_spec(data.shape, chunks, data.dtype)
    shared_run.ensure(spec)
    blocks = shared_run.pending(spec.name)
    random.shuffle(blocks)
    seen = np.zeros(data.shape, dtype=int)
    for block in blocks:
        region = shared_run.region(spec.name, block)
        shared_run.writer(spec.name)(block, data[region])
        shared_run.record(spec.name, block)
        seen[region] += 1
    np.testing.assert_array_equal(seen, 1)
    assert shared_run.pending(spec.name) == []
    found = shared_run.read(spec.name)
    assert found.dtype == data.dtype
    assert found.tobytes() == data.tobytes()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=9))
def test_text_is_read_as_written(shared_run: store.Run, words: list[str]) -> None:
    spec = new_spec((len(words),), (4,), str)
    shared_run.put(spec, words)
    assert shared_run.read(spec.name).tolist() == words


@given(st.sets(st.integers(0, 30)))
def test_the_done_record_holds_any_set_of_blocks(shared_run: store.Run, blocks: set[int]) -> None:
    spec = new_spec((31,), (1,), "f8")
    shared_run.ensure(spec)
    shared_run.record(spec.name, *blocks)
    found = read_done(Folder.at(shared_run.url), spec.name)
    assert found is not None
    assert set(np.flatnonzero(found.mask)) == blocks
