"""Keys and pairs from a store: the same numbers as from memory, and small in a graph."""

import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from locpipe import store
from locpipe.blocks import PairSource
from locpipe.errors import InputError, StoreError
from locpipe.graph import KeySource
from locpipe.store import ArraySpec, ZarrKeys, ZarrPairs

Start = Callable[..., store.Run]

RNG = np.random.default_rng(0)
DATA = RNG.normal(size=(23, 3)).astype("f4")
VALUES = RNG.normal(size=(23, 2))
WEIGHT = np.arange(23.0)


def group(folder: Path | str, rows: int = 5) -> str:
    """Write a Zarr group that locpipe did not make."""
    root = zarr.create_group(str(folder))
    root.create_array("data", data=DATA, chunks=(rows, 2))
    root.create_array("values", data=VALUES, chunks=(rows + 1, 2))
    root.create_array("scalar", data=VALUES[:, 0], chunks=(rows,))
    root.create_array("weight", data=WEIGHT, chunks=(rows,))
    root.create_array("text", shape=(23,), chunks=(rows,), dtype=str)
    return str(folder)


@pytest.fixture(scope="module")
def cut_keys(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], ZarrKeys]:
    """The same keys, cut into chunks of so many rows."""

    @cache
    def keys(rows: int) -> ZarrKeys:
        url = group(tmp_path_factory.mktemp("cut") / "x", rows)
        return ZarrKeys(url, "data", "values", "weight", "weight")

    return keys


@given(
    st.sampled_from([1, 2, 5, 11, 23, 40]),
    st.integers(1, 30),
    st.integers(0, 23),
    st.integers(0, 23),
)
def test_blocks_cover_the_rows_in_order(
    cut_keys: Callable[[int], ZarrKeys], chunk: int, block: int, start: int, stop: int
) -> None:
    blocks = list(cut_keys(chunk).iter_blocks(block, start, stop))
    assert all(0 < b.n_rows <= block for b in blocks)
    assert [b.start for b in blocks] == list(range(start, stop, block))
    rows = slice(start, max(start, stop))
    if blocks:
        np.testing.assert_array_equal(np.concatenate([b.data for b in blocks]), DATA[rows])
        np.testing.assert_array_equal(np.concatenate([b.values for b in blocks]), VALUES[rows])
        np.testing.assert_array_equal(np.concatenate([b.bandwidth for b in blocks]), WEIGHT[rows])
        log_weight = np.concatenate([b.log_sample_weight for b in blocks])
        np.testing.assert_allclose(np.exp(log_weight), WEIGHT[rows], rtol=1e-14)


def test_keys_are_a_key_source(tmp_path: Path) -> None:
    keys = ZarrKeys(group(tmp_path / "x"), "data", "scalar")
    assert isinstance(keys, KeySource)
    assert (keys.n_keys, keys.n_features, keys.n_outputs) == (23, 3, 1)
    assert keys.dtype == np.float32
    assert ZarrKeys(tmp_path / "x", "data").n_outputs is None
    (block,) = keys.iter_blocks(100)
    assert block.values.shape == (23, 1)
    assert block.log_sample_weight is None


def test_a_chunk_is_decoded_once_however_small_the_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[object] = []
    plain = store.opened.read_region

    def counted(*args: object) -> object:
        reads.append(args)
        return plain(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("locpipe.store.opened.read_region", counted)
    keys = ZarrKeys(group(tmp_path / "x", 8), "data")
    assert len(list(keys.iter_blocks(2))) == 12
    assert len(reads) == 3


def test_values_that_are_flat_stay_so(tmp_path: Path) -> None:
    url = group(tmp_path / "x")
    assert ZarrKeys(url, "data", "scalar").values_are_flat
    assert not ZarrKeys(url, "data", "values").values_are_flat
    assert not ZarrKeys(url, "data").values_are_flat


def test_sources_print_what_they_read(tmp_path: Path) -> None:
    url = group(tmp_path / "x")
    assert repr(ZarrKeys(url, "data", "scalar")) == (
        f"ZarrKeys({url!r}, data='data', values='scalar': 23 x 3)"
    )
    assert repr(ZarrPairs(url, "data")) == f"ZarrPairs({url!r}, delta='data': 23 x 3)"


def test_pairs_are_a_pair_source(tmp_path: Path) -> None:
    root = zarr.create_group(str(tmp_path / "x"))
    delta = RNG.normal(size=(6, 9)) ** 2
    delta[1, 2] = np.nan
    root.create_array("delta", data=delta, chunks=(4, 4))
    root.create_array("weight", data=delta + 1, chunks=(2, 9))
    pairs = ZarrPairs(tmp_path / "x", "delta", "weight")
    assert isinstance(pairs, PairSource)
    assert pairs.shape == (6, 9)
    for rows, columns in ((slice(1, 5), slice(2, 9)), (slice(0, 6), slice(0, 1))):
        found, weight = pairs.tile(rows, columns)
        np.testing.assert_array_equal(found, delta[rows, columns])
        np.testing.assert_array_equal(weight, delta[rows, columns] + 1)
    (alone,) = ZarrPairs(tmp_path / "x" / "delta", "").tile(slice(0, 6), slice(0, 9))
    np.testing.assert_array_equal(alone, delta)


def test_sources_are_small_in_a_graph(tmp_path: Path) -> None:
    url = group(tmp_path / ("long " * 20))
    keys = pickle.dumps(ZarrKeys(url, "data", "values", "weight", "weight"))
    pairs = pickle.dumps(ZarrPairs(url, "data", "data"))
    assert len(keys) < 1000
    assert len(pairs) < 1000
    (block,) = pickle.loads(keys).iter_blocks(100)
    np.testing.assert_array_equal(block.data, DATA)
    np.testing.assert_array_equal(pickle.loads(pairs).tile(slice(2), slice(3))[0], DATA[:2])


def test_a_result_that_is_not_done_is_refused(start: Start, url: Path) -> None:
    with start() as run:
        run.ensure(ArraySpec("points", ("word", "component"), (4, 2), (2, 2), "f8"))
        run.writer("points")(0, np.zeros((2, 2)))
        run.record("points", 0)
        for source in (ZarrKeys, ZarrPairs):
            with pytest.raises(StoreError, match=r"must be done .* but 1 of 2 blocks are"):
                source(url, "points")


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (("missing",), StoreError, "there must be an array 'missing' in"),
        (("weight",), InputError, r"data 'weight' must have 2 dimension\(s\) and 23 rows"),
        (("text",), InputError, "data 'text' must hold numbers"),
        (("data", None, "data"), InputError, r"sample_weight 'data' must have 1 dimension\(s\)"),
        (("data", None, None, "short"), InputError, r"and 23 rows as the keys, got shape \(4,\)"),
    ],
)
def test_keys_that_cannot_be(
    tmp_path: Path, names: tuple[str | None, ...], error: type[Exception], message: str
) -> None:
    url = group(tmp_path / "x")
    zarr.create_array(url, name="short", data=np.ones(4))
    with pytest.raises(error, match=message):
        ZarrKeys(url, *names)  # type: ignore[arg-type]


def test_negative_weights_are_refused(tmp_path: Path) -> None:
    url = group(tmp_path / "x")
    zarr.create_array(url, name="bad", data=np.linspace(-1, 1, 23))
    with pytest.raises(InputError, match=r"sample_weight 'bad' in .* must be >= 0, got -1\.0"):
        list(ZarrKeys(url, "data", sample_weight="bad").iter_blocks(9))


def test_pairs_that_cannot_be(tmp_path: Path) -> None:
    url = group(tmp_path / "x")
    for names in (("weight",), ("data", "values")):
        with pytest.raises(InputError, match="must be matrices of one shape"):
            ZarrPairs(url, *names)
