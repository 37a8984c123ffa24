"""Opening: resume, refuse, replace; and outputs that cannot be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from locpipe import store
from locpipe.errors import InputError, StoreError
from locpipe.store import ArraySpec, PartsSpec

Start = Callable[..., store.Run]
Stamp = dict[str, tuple[int, int]]

DENSITY = ArraySpec("density", ("word",), (8,), (1,), "f8")


def stamps(url: Path, below: str = ".") -> Stamp:
    """Inode and time of change of every file: what a rewrite cannot keep."""
    files = [path for path in (url / below).rglob("*") if path.is_file()]
    return {str(p.relative_to(url)): (p.stat().st_ino, p.stat().st_mtime_ns) for p in files}


def write(run: store.Run, blocks: list[int]) -> None:
    run.ensure(DENSITY)
    for block in blocks:
        run.writer("density")(block, np.full(1, block * float(run.parameters["bandwidth"])))
        run.record("density", block)


# Z05: the same command again computes only what is missing; another bandwidth is refused.
def test_a_rerun_computes_what_is_missing_and_another_run_is_refused(
    start: Start, url: Path
) -> None:
    with start() as run:
        write(run, [0, 1, 2, 3])
    before = stamps(url, "density/c")
    with start(bandwidth=0.7, if_exists="replace", at=url.with_name("other.zarr")) as other:
        write(other, [0])
    expected = (
        f"holds another run of embed-corpus (fingerprint {store.read_status(url).fingerprint}, "  # type: ignore[union-attr]
        f"this run's is {other.fingerprint}): bandwidth is 0.5 there and 0.7 here; choose another "
        "output, or replace it with if_exists=replace"
    )
    for if_exists in ("default", "resume"):
        with pytest.raises(StoreError) as caught:
            start(bandwidth=0.7, if_exists=if_exists)
        assert expected in str(caught.value)
    with start() as run:
        assert run.pending("density") == [4, 5, 6, 7]
        write(run, run.pending("density"))
        run.finish()
        np.testing.assert_array_equal(run.read("density"), np.arange(8) * 0.5)
    assert before.items() <= stamps(url, "density/c").items()


def test_the_stored_plan_wins(start: Start) -> None:
    with start(plan={"block_rows": 4}) as run:
        write(run, [0])
    with start(plan={"block_rows": 9}) as run:
        assert dict(run.plan) == {"block_rows": 4}


def test_other_input_is_named_where_the_parameters_agree(start: Start) -> None:
    start().close()
    with pytest.raises(StoreError, match="parameters agree, so the content of the input differs"):
        start(fingerprint="0123456789abcdef")


def test_many_differences_are_cut_short(start: Start) -> None:
    start(parameters={f"p{i}": i for i in range(9)}).close()
    with pytest.raises(
        StoreError, match=r"p0 is 0 there and 'not set' here, .*, and 4 more; choose"
    ):
        start(parameters={})


def test_another_flow_is_refused(start: Start) -> None:
    start().close()
    with pytest.raises(StoreError, match="holds a run of embed-corpus, not of amds"):
        start(flow="amds")


def edit_root(url: Path, **changes: object) -> None:
    root = json.loads((url / "zarr.json").read_text())
    root["attributes"].update(changes)
    (url / "zarr.json").write_text(json.dumps(root))


def test_an_unfinished_run_of_another_version_is_refused(start: Start, url: Path) -> None:
    start().close()
    edit_root(url, versions={"locpipe": "0.0.1"})
    with pytest.raises(StoreError, match=r"unfinished run of locpipe 0\.0\.1, and this is"):
        start()
    edit_root(url, complete=True)
    with start() as run:
        assert run.complete


def test_another_schema_version_is_refused(start: Start, url: Path) -> None:
    start().close()
    edit_root(url, schema_version=99)
    for look in (start, lambda: store.read_status(url), lambda: store.check_output(url)):
        with pytest.raises(StoreError, match="has schema version 99, and this locpipe reads"):
            look()


def test_fail_refuses_any_store(start: Start) -> None:
    start().close()
    with pytest.raises(StoreError, match=r"must not exist .* use if_exists=resume or"):
        start(if_exists="fail")


def test_unknown_if_exists(start: Start) -> None:
    with pytest.raises(InputError, match="one of default, fail, resume, replace, got 'overwrite'"):
        start(if_exists="overwrite")


def test_replace_starts_anew_and_keeps_foreign_files(start: Start, url: Path) -> None:
    with start() as run:
        write(run, list(range(8)))
        run.ensure(PartsSpec("counts", 1))
        run.writer("counts")(0, {"row": np.arange(3)})
        run.record("counts", 0)
        run.set_attrs(stress=1)
        run.finish()
    (url / "notes.txt").write_text("mine")
    with start(bandwidth=0.7, if_exists="replace") as run:
        assert not run.complete
        assert dict(run.attrs) == {}
        assert not (url / "density").exists()
        write(run, [0])
        assert run.pending("density") == [1, 2, 3, 4, 5, 6, 7]
    assert (url / "notes.txt").read_text() == "mine"


def test_replace_goes_on_with_the_same_unfinished_run(start: Start, url: Path) -> None:
    with start() as run:
        write(run, [0, 1, 2])
    with start(if_exists="replace") as run:
        assert run.pending("density") == [3, 4, 5, 6, 7]
        write(run, run.pending("density"))
        run.finish()
    with start(if_exists="replace") as run:
        assert not run.complete
        assert not (url / "density").exists()


def test_a_replacement_that_was_killed_is_carried_through(start: Start, url: Path) -> None:
    with start() as run:
        write(run, [0, 1])
    edit_root(url, replacing=True)  # killed between this mark and the new root
    assert store.read_status(url) is None
    with start() as run:
        write(run, [])
        assert len(run.pending("density")) == 8


def foreign(kind: str, path: Path) -> None:
    path.mkdir(parents=True)
    if kind == "files":
        (path / "thesis.txt").write_text("years of work")
    elif kind == "zarr":
        zarr.create_group(str(path)).create_array("a", data=np.zeros(3))
    else:
        zarr.create_array(str(path), data=np.zeros(3))


@pytest.mark.parametrize("kind", ["files", "zarr", "array"])
def test_what_is_not_a_store_is_never_touched(start: Start, url: Path, kind: str) -> None:
    foreign(kind, url)
    before = stamps(url)
    calls: list[Callable[[], object]] = [
        lambda: start(if_exists="replace"),
        start,
        lambda: store.check_output(url),
        lambda: store.read_status(url),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="must be a locpipe store or an empty folder"):
            call()
    assert stamps(url) == before
    assert [path.name for path in url.parent.iterdir()] == [url.name]


def test_replace_follows_no_link_out_of_the_store(start: Start, url: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "a.txt").write_text("a")
    with start() as run:
        write(run, [0])
    (url / "density" / "c" / "0").unlink()
    (url / "density" / "c" / "0").symlink_to(tmp_path / "precious")
    (url / "_run" / "linked").symlink_to(tmp_path / "precious")
    start(if_exists="replace").close()
    assert (tmp_path / "precious" / "a.txt").read_text() == "a"


def test_an_empty_folder_is_as_good_as_none(start: Start, url: Path) -> None:
    url.mkdir(parents=True)
    (url / f"zarr.{'0' * 32}.partial").write_bytes(b"{")  # killed in its very first write
    assert store.read_status(url) is None
    store.check_output(url)
    start().close()
    assert store.read_status(url) is not None


@pytest.mark.parametrize("content", [b"", b'{"zarr_format": 3, "attri', b"\xff\xfe", b"[]"])
def test_a_torn_root_is_named(start: Start, url: Path, content: bytes) -> None:
    start().close()
    (url / "zarr.json").write_bytes(content)
    status = store.read_status(url)
    assert status is not None
    assert not status.complete
    for if_exists in ("default", "resume", "fail"):
        with pytest.raises(
            StoreError, match=r"zarr\.json must be JSON .* is torn; .*=replace$"
        ) as e:
            start(if_exists=if_exists)
        assert status.damage == str(e.value)
    store.check_output(url)  # it can be written, by replacing it
    with start(if_exists="replace") as run:
        assert not (url / "density").exists()
        write(run, [0])
    with start() as run:
        assert len(run.pending("density")) == 7


ROOT = '{"zarr_format": 3, "node_type": "group", "attributes": %s}'


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ('{"schema": "locpipe-run", "schema_version": 1}', r"lacks \['flow', 'parameters'"),
        ('{"schema": "locpipe-run"}', "schema_version is None"),
        ("[1, 2]", "it is torn"),
        ("{}", "it is torn"),
    ],
)
def test_torn_root_attributes_are_replaced(
    start: Start, url: Path, attributes: str, reason: str
) -> None:
    with start() as run:
        write(run, [0])
    (url / "zarr.json").write_text(ROOT % attributes)
    with pytest.raises(StoreError, match=reason):
        start()
    with start(if_exists="replace") as run:
        assert not (url / "density").exists()
        assert run.flow == "embed-corpus"


def test_a_torn_root_without_a_sign_of_locpipe_is_never_touched(start: Start, url: Path) -> None:
    url.mkdir(parents=True)
    (url / "zarr.json").write_text('{"zarr_format": 3, "attri')
    with pytest.raises(StoreError, match="must be a locpipe store or an empty folder"):
        start(if_exists="replace")


def test_an_array_without_its_record_is_begun_again(start: Start, url: Path) -> None:
    with start() as run:
        write(run, [0])
    (url / "_run" / "density" / "zarr.json").unlink()
    other = ArraySpec("density", ("word",), (6,), (4,), "i4")
    with start() as run:
        run.put(other, np.arange(6))
        np.testing.assert_array_equal(run.read("density"), np.arange(6))


def test_a_torn_done_record_costs_time_only(
    start: Start, url: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with start() as run:
        write(run, [0, 1])
    (url / "_run" / "density" / "zarr.json").write_bytes(b"")
    with start() as run:
        run.ensure(DENSITY)
        assert len(run.pending("density")) == 8
    (url / "_run" / "density" / "zarr.json").write_text("[]")
    start().close()
    assert "done record of 'density' in" in caplog.text
    assert "is torn: its blocks count as not done" in caplog.text


def test_discarded_results_are_not_gone_on_with(tmp_path: Path) -> None:
    url = str(tmp_path / "run.zarr")
    wanted: dict[str, Any] = {"flow": "f", "parameters": {}, "fingerprint": "0" * 16, "plan": {}}
    with store.open_run(url, **wanted) as run:
        run.put(ArraySpec("x", ("i",), (2,), (2,), "f8"), [1.0, 2.0])
        run.discard()
    assert store.read_status(url) is None
    with store.open_run(url, **wanted) as run:
        run.ensure(ArraySpec("x", ("i",), (2,), (2,), "f8"))
        assert run.pending("x") == [0]
