"""Fingerprints cover what changes numbers; content digests are cached, and never wrongly."""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locpipe.errors import InputError
from locpipe.store import InputDigest, digest_inputs, fingerprint

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PARAMETERS = st.dictionaries(st.text(), VALUES, max_size=4)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "locpipe"


@dataclass(frozen=True)
class Options:
    window: int


@given(PARAMETERS)
def test_the_order_of_parameters_does_not_matter(parameters: dict[str, object]) -> None:
    turned = dict(reversed(parameters.items()))
    digest = fingerprint(parameters, [])
    assert fingerprint(turned, []) == digest
    assert len(digest) == 16
    assert set(digest) <= set("0123456789abcdef")


def test_equal_values_have_one_fingerprint() -> None:
    plain = fingerprint({"a": 1, "b": [1, 2.5], "c": {"window": 2}, "d": "x/y"}, [])
    other = {
        "a": np.float64(1),
        "b": (np.int32(1), np.array(2.5)),
        "c": Options(window=2),
        "d": Path("x/y"),
    }
    assert fingerprint(other, []) == plain


def test_whatever_changes_numbers_changes_it() -> None:
    inputs = digest_inputs([("a", b"1"), ("b", b"2")])
    found = [
        fingerprint({"a": 1}, inputs),
        fingerprint({"a": 2}, inputs),
        fingerprint({"a": "1"}, inputs),
        fingerprint({"a": True}, inputs),
        fingerprint({"a": 1, "b": None}, inputs),
        fingerprint({"a": 1}, inputs[::-1]),
        fingerprint({"a": 1}, inputs[:1]),
        fingerprint({"a": 1}, digest_inputs([("a", b"1"), ("b", b"3")])),
    ]
    assert len(set(found)) == len(found)


def test_names_do_not_change_it() -> None:
    assert fingerprint({}, digest_inputs([("a", b"1")])) == fingerprint(
        {}, digest_inputs([("moved", b"1")])
    )


def test_it_is_the_same_in_every_process() -> None:
    code = "from locpipe.store import fingerprint as f; print(f({'a': 0.1, 'ä': [1, None]}, []))"
    text = r'{"inputs":[],"parameters":{"a":0.1,"\u00e4":[1,null]},"schema_version":1}'
    expected = hashlib.sha256(text.encode()).hexdigest()[:16]
    for seed in ("1", "2"):
        out = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert out.stdout.strip() == expected


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), len])
def test_values_that_have_no_fingerprint(value: object) -> None:
    with pytest.raises(InputError, match="must be a number, text, list or mapping"):
        fingerprint({"a": value}, [])


def settled(path: Path, content: bytes, seconds_ago: float = 60.0) -> Path:
    path.write_bytes(content)
    past = time.time() - seconds_ago
    os.utime(path, (past, past))
    return path


def test_files_are_digested_by_content(tmp_path: Path) -> None:
    file = settled(tmp_path / "naïve text.txt", b"hello" * 100_000)
    expected = InputDigest(str(file), 500_000, hashlib.sha256(b"hello" * 100_000).hexdigest())
    assert digest_inputs([file, str(file)]) == (expected, expected)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests are cached at once: a test cannot set the time of change (ctime) back."""
    # The room's function of the same name hides the module.
    module = sys.modules["locpipe.store.fingerprint"]
    monkeypatch.setattr(module, "_SETTLED_NS", -(10**18))


@pytest.mark.usefixtures("at_once")
def test_a_known_file_is_not_read_again(tmp_path: Path, cache: Path) -> None:
    file = settled(tmp_path / "a.txt", b"one")
    digest_inputs([file])
    (entry,) = (cache / "digests").iterdir()
    entry.write_text("0" * 64)  # what is recalled shows that the file was not read
    assert digest_inputs([file])[0].sha256 == "0" * 64


@pytest.mark.usefixtures("at_once")
def test_a_time_that_was_set_back_is_seen(tmp_path: Path) -> None:
    file = settled(tmp_path / "a.txt", b"one")
    before = file.stat()
    digest_inputs([file])
    time.sleep(0.02)  # a tick of the file system's clock
    file.write_bytes(b"two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert digest_inputs([file])[0].sha256 == hashlib.sha256(b"two").hexdigest()


def replace_file(file: Path) -> None:
    new = settled(file.with_name("new"), b"two")
    os.utime(new, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    new.replace(file)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "change",
    [
        lambda file: settled(file, b"two", seconds_ago=30),
        lambda file: settled(file, b"longer"),
        replace_file,
    ],
)
def test_a_changed_file_is_read_again(tmp_path: Path, change: Callable[[Path], object]) -> None:
    file = settled(tmp_path / "a.txt", b"one")
    digest_inputs([file])
    change(file)
    assert digest_inputs([file])[0].sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("seconds_ago", [0, 60])
def test_a_file_that_changed_just_now_is_not_cached(
    tmp_path: Path, cache: Path, seconds_ago: float
) -> None:
    digest_inputs([settled(tmp_path / "a.txt", b"one", seconds_ago)])  # ctime is now
    assert not cache.exists()


@pytest.mark.usefixtures("at_once")
def test_a_torn_cache_entry_is_not_believed(tmp_path: Path, cache: Path) -> None:
    file = settled(tmp_path / "a.txt", b"one")
    first = digest_inputs([file])
    (entry,) = (cache / "digests").iterdir()
    for content in (b"", b"\xff" * 64, b"abc"):
        entry.write_bytes(content)
        assert digest_inputs([file]) == first


@pytest.mark.usefixtures("at_once")
def test_a_cache_that_cannot_be_written_costs_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = settled(tmp_path / "a.txt", b"one")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert digest_inputs([file])[0].sha256 == hashlib.sha256(b"one").hexdigest()


def test_folders_are_digested_by_their_listing(tmp_path: Path) -> None:
    (tmp_path / "x.zarr" / "c").mkdir(parents=True)
    file = settled(tmp_path / "x.zarr" / "c" / "0", b"one")
    first = digest_inputs([tmp_path / "x.zarr"])
    assert first[0].n_bytes == 3
    assert digest_inputs([tmp_path / "x.zarr"]) == first
    settled(file, b"two", seconds_ago=5)
    second = digest_inputs([tmp_path / "x.zarr"])
    file.rename(file.with_name("1"))
    assert len({d[0].sha256 for d in (first, second, digest_inputs([tmp_path / "x.zarr"]))}) == 3


def test_a_missing_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.txt must be a readable file: No such file"):
        digest_inputs([tmp_path / "a.txt"])
