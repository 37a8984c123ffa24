"""Outputs that cannot be, and those that are only unusual: paths, permissions, space."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from locpipe import store
from locpipe.errors import InputError, StoreError
from locpipe.store import ArraySpec

Start = Callable[..., store.Run]


def test_paths_that_cannot_be(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "map.zarr"
    file.write_text("a file")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    cases = {
        file: "is a folder, but .* is a file",
        file / "x.zarr": "must be in a folder, but .* is a file",
        "s3://bucket/map.zarr": "must be a local path, .* s3:// stores are not supported yet",
        "": "needs a path, got ''",
        "a\0b": "needs a path",
        "/": "must be a folder with a name, got /",
        tmp_path / ("x" * 300): "must have at most 160 bytes, .* shorten it",
        tmp_path / ("x" * 161): "must have at most 160 bytes",
        tmp_path / ("x" * 300) / "x.zarr": "a folder's above it 255",
        "/a" * 2000: "the whole path 3072",
        loop: "is a symbolic link that leads back to itself",
        loop / "below" / "x.zarr": "loop is a symbolic link that leads back to itself",
    }
    for path, message in cases.items():
        with pytest.raises(InputError, match=message):
            store.check_output(path)
    for path in (file, "s3://bucket/map.zarr", "", loop, tmp_path / ("x" * 300), "/"):
        with pytest.raises(InputError):
            start(at=path)
        with pytest.raises(InputError):
            store.read_status(path)
    with pytest.raises(StoreError, match="cannot create"):
        start(at=file / "x.zarr")
    assert file.read_text() == "a file"


def test_file_urls_and_home(start: Start, url: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(at=f"file://{url}").close()
    monkeypatch.setenv("HOME", str(url.parent))
    assert store.read_status(f"~/{url.name}") is not None


def test_the_longest_name_works(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locpipe.store.lock._FILL_SECONDS", 0.0)
    path = tmp_path / ("x" * 160)
    store.check_output(path)
    start(at=path).close()
    path.with_name(path.name + ".lock").write_text("garbage of a crash")
    store.unlock(path)
    start(at=path).close()
    assert list(tmp_path.iterdir()) == [path]


def test_the_current_folder_is_a_store_as_any(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    store.check_output(".")
    start(at=".").close()
    assert store.resolve(".") == tmp_path / "here"
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(InputError, match=r"must lead somewhere, got '\.'"):
        store.check_output(".")


def test_check_output_leaves_nothing_behind(tmp_path: Path) -> None:
    store.check_output(tmp_path / "not" / "there yet" / "x.zarr")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_read_only_folder(public_folder: Path) -> None:
    closed = public_folder / "results"
    closed.mkdir(mode=0o555)
    code = (
        "import os, sys; from locpipe.store import *\n"
        "def opened(path):\n"
        "    return open_run(path, flow='f', parameters={}, fingerprint='0', plan={})\n"
        "opened(sys.argv[1]).close()\n"  # whatever is imported late is imported now
        # Root may write anywhere, so the check runs as a user who may not.
        "if os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
        "for call in (check_output, opened):\n"
        "    try: call(sys.argv[2])\n"
        "    except Exception as error: print(type(error).__name__, error)"
    )
    paths = [str(public_folder / "open.zarr"), str(closed / "x.zarr")]
    command = [sys.executable, "-c", code, *paths]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    checked, opened = out.stdout.splitlines()
    assert checked.startswith(f"InputError {closed}/x.zarr must be writable, but {closed} is not")
    assert opened.startswith(f"StoreError cannot create {closed}/x.zarr.lock: Permission denied")


def test_a_full_disk_is_one_sentence(start: Start) -> None:
    """The limit on file size stands for a full disk: the system refuses the write midway."""
    import resource

    data = np.random.default_rng(0).normal(size=100_000)
    with start() as run:
        run.ensure(ArraySpec("noise", ("i",), data.shape, data.shape, "f8"))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
        try:
            with pytest.raises(StoreError, match=r"cannot write .*noise.*: File too large; check"):
                run.writer("noise")(0, data)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert run.pending("noise") == [0]
        run.writer("noise")(0, data)
        run.record("noise", 0)
        np.testing.assert_array_equal(run.read("noise"), data)
