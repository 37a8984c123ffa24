"""Arrays that change under a source are an error, never zeros."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import zarr

from locpipe.errors import StoreError
from locpipe.store import ZarrKeys, ZarrPairs

DATA = np.arange(1.0, 21.0).reshape(10, 2)
FORMS = {
    "v3": {"chunks": (2, 1)},
    "v2": {"chunks": (2, 1), "zarr_format": 2},
    "shards": {"chunks": (2, 1), "shards": (4, 2)},
}


def written(folder: Path, form: str, **more: object) -> Path:
    """Write an array of several files and return the last of its first column."""
    zarr.create_array(str(folder), name="x", data=DATA, **{**FORMS[form], **more})  # type: ignore[arg-type, dict-item]
    return folder / "x" / {"v3": "c/4/0", "v2": "4.0", "shards": "c/2/0"}[form]


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_goes_is_missed_where_it_is_read(tmp_path: Path, form: str) -> None:
    file = written(tmp_path, form)
    keys = pickle.loads(pickle.dumps(ZarrKeys(tmp_path, "x")))
    pairs = ZarrPairs(tmp_path / "x", "")
    file.unlink()
    (block,) = keys.iter_blocks(4, 0, 4)
    np.testing.assert_array_equal(block.data, DATA[:4])
    np.testing.assert_array_equal(pairs.tile(slice(4), slice(1, 2))[0], DATA[:4, 1:])
    gone = rf"must stay as it was .* '.*{file.name}' was there and has gone; restore it, or open"
    with pytest.raises(StoreError, match=rf"'x' in {tmp_path} {gone}"):
        list(keys.iter_blocks(4))
    with pytest.raises(StoreError, match=gone):
        pairs.tile(slice(8, 10), slice(0, 1))


@pytest.mark.parametrize("form", FORMS)
def test_files_that_never_were_are_the_fill_value(tmp_path: Path, form: str) -> None:
    file = written(tmp_path, form)
    file.unlink()
    keys, pairs = ZarrKeys(tmp_path, "x"), ZarrPairs(tmp_path, "x")
    found = np.concatenate([block.data for block in keys.iter_blocks(3)])
    np.testing.assert_array_equal(found[:8], DATA[:8])
    assert found[9, 0] == 0
    assert pairs.tile(slice(9, 10), slice(1))[0] == 0
    (file.parent.parent / "1" / "0" if form != "v2" else file.with_name("1.0")).unlink()
    with pytest.raises(StoreError, match="was there and has gone"):
        list(keys.iter_blocks(3))


@pytest.mark.parametrize("other", [DATA[:6], DATA.astype("f4"), np.r_[DATA, DATA]])
def test_another_array_in_its_place_is_refused(tmp_path: Path, other: np.ndarray) -> None:
    written(tmp_path, "v3")
    keys, pairs = ZarrKeys(tmp_path, "x"), ZarrPairs(tmp_path, "x")
    zarr.create_array(str(tmp_path), name="x", data=other, chunks=(2, 1), overwrite=True)
    was = r"it was float64 of shape \(10, 2\) in chunks of \(2, 1\), and is"
    with pytest.raises(StoreError, match=rf"{was} {other.dtype} of shape \({len(other)}, 2\)"):
        list(keys.iter_blocks(4))
    with pytest.raises(StoreError, match=was):
        pairs.tile(slice(1), slice(1))
