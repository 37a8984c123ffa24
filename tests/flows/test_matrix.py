"""Matrices come in from .npy, Parquet and Zarr; what is no matrix is refused in one sentence."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr

from locpipe.errors import InputError
from locpipe.flows.configuration import configure
from locpipe.flows.running import prepare
from locpipe.flows.steps.matrix import open_matrix

VALUES = np.arange(6.0).reshape(2, 3)


def test_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", VALUES)
    matrix = open_matrix(str(tmp_path / "d.npy"))
    np.testing.assert_array_equal(matrix.values, VALUES)
    assert matrix.shape == (2, 3)
    assert (matrix.rows.dtype, matrix.columns.dtype) == (np.int64, np.int64)
    assert matrix.rows.tolist() == [0, 1]
    assert matrix.columns.tolist() == [0, 1, 2]


def test_parquet_names_rows_and_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(VALUES, index=["paris", "rome"], columns=["x", "y", "z"])
    frame.to_parquet(tmp_path / "d.parquet")
    matrix = open_matrix(str(tmp_path / "d.parquet"))
    np.testing.assert_array_equal(matrix.values, VALUES)
    assert matrix.rows.tolist() == ["paris", "rome"]
    assert matrix.columns.tolist() == ["x", "y", "z"]


def test_zarr_array_alone_and_in_a_group(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("delta", data=VALUES)
    group.create_array("names", data=np.arange(3))
    matrix = open_matrix(str(tmp_path / "g.zarr" / "delta"))
    np.testing.assert_array_equal(matrix.values[0:1], VALUES[0:1])
    with pytest.raises(InputError, match=r"name one of its matrices: .*/g.zarr/delta\."):
        open_matrix(str(tmp_path / "g.zarr"))


def save(path: Path, data: object) -> str:
    if path.suffix == ".npy":
        np.save(path, np.asarray(data))
    elif isinstance(data, pd.DataFrame):
        data.to_parquet(path)
    else:
        path.write_bytes(bytes(str(data), "ascii"))
    return str(path)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("v.npy", np.arange(3.0), r"must hold a matrix, and its shape is \(3,\)"),
        ("e.npy", np.ones((0, 3)), r"must hold a matrix, and its shape is \(0, 3\)"),
        ("c.npy", np.ones((2, 2), complex), "must hold real numbers, and holds complex128"),
        ("d.csv", "1,2", r"must be a \.npy file, a \.parquet table or a Zarr array"),
        ("d.parquet", "no", "must be a Parquet table, and cannot be read as one"),
        (
            "when.parquet",
            pd.DataFrame({"a": [1.0], "b": pd.to_datetime(["2026-01-02"])}),
            r"when\.parquet' must hold real numbers, and column 'b' holds timestamp",
        ),
        (
            "t.parquet",
            pd.DataFrame({"a": ["x"], "b": ["y"], "c": [1.0]}),
            "at most one of text, which names the rows; it has 2 of text and 1 others",
        ),
    ],
)
def test_what_is_no_matrix(tmp_path: Path, name: str, data: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_matrix(save(tmp_path / name, data))


def test_torn_npy_missing_path_and_folder(tmp_path: Path) -> None:
    (tmp_path / "torn.npy").write_bytes(b"\x93NUMPY\x01")
    with pytest.raises(InputError, match=r"must be an array saved by numpy\.save"):
        open_matrix(str(tmp_path / "torn.npy"))
    with pytest.raises(InputError, match="must exist, and nothing is there"):
        open_matrix(str(tmp_path / "no.npy"))
    with pytest.raises(InputError, match="must be a Zarr array, and holds none"):
        open_matrix(str(tmp_path))


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([[None]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"must hold numbers, and holds Python objects; save it"):
        open_matrix(str(tmp_path / "o.npy"))


def test_torn_chunk_of_zarr_is_named(tmp_path: Path) -> None:
    path = tmp_path / "d.zarr"
    zarr.create_array(path, data=np.arange(600.0).reshape(20, 30), chunks=(10, 30))
    chunk = path / "c" / "1" / "0"
    chunk.write_bytes(chunk.read_bytes()[:20])
    matrix = open_matrix(str(path))
    assert matrix.read(0, 10).shape == (10, 30)
    with pytest.raises(InputError, match=r"d\.zarr' must be whole, and rows 10 to 19 cannot be"):
        matrix.read(10, 20)
    values = {"input": str(path), "output": str(tmp_path / "m.zarr")}
    with pytest.raises(InputError, match=r"d\.zarr' must be whole, and rows 0 to 19 cannot be"):
        prepare(configure("amds", values))
