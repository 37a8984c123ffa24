"""One run at a time: the lock, who holds it, and when it is stale."""

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import psutil
import pytest

from locpipe import store
from locpipe.errors import StoreError
from locpipe.store.folder import Folder
from locpipe.store.lock import STALE_SECONDS, Holder, Lock, _create_exclusively

Start = Callable[..., store.Run]


def lock_of(url: Path) -> Path:
    return url.with_name(url.name + ".lock")


def leave_lock(path: Path, holder: Holder, seconds_ago: float = 0.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(holder)))
    beat = path.stat().st_mtime - seconds_ago
    os.utime(path, (beat, beat))


def gone_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_the_second_run_is_told_who_holds_the_store(start: Start, url: Path) -> None:
    with start():
        with pytest.raises(StoreError) as caught:
            start()
        assert f"one run at a time may write to {url}, and process {os.getpid()} on" in str(
            caught.value
        )
        assert "locpipe unlock" in str(caught.value)
    start().close()
    assert not list(url.parent.glob("*.lock*"))


def test_the_lock_is_given_back_after_an_error(start: Start, url: Path) -> None:
    with pytest.raises(ZeroDivisionError), start():
        raise ZeroDivisionError
    with pytest.raises(StoreError, match="must not exist"):
        start(if_exists="fail")
    assert not list(url.parent.glob("*.lock*"))


def test_two_spellings_of_a_path_meet_at_one_lock(
    start: Start, url: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(url.parent)
    with start():
        monkeypatch.chdir(url.parent)
        for spelling in (tmp_path / "link" / url.name, f"./{url.name}/", f"file://{url}"):
            with pytest.raises(StoreError, match="one run at a time"):
                start(at=spelling)


def test_a_lock_names_its_holder(start: Start, url: Path) -> None:
    with start():
        holder = Holder(**json.loads(lock_of(url).read_text()))
    assert holder.pid == os.getpid()
    assert holder.is_here()
    assert holder.runs_here()
    assert abs(holder.started - psutil.Process().create_time()) < 2


@pytest.mark.parametrize(
    ("changes", "seconds_ago"),
    [
        ({"pid": -1}, 0.0),  # stands for a process that has ended
        ({"started": 1.0}, 0.0),
        ({"host": "elsewhere"}, STALE_SECONDS + 60),
        ({"namespace": "another boot"}, STALE_SECONDS + 60),
    ],
)
def test_stale_locks_are_taken_over(
    start: Start, url: Path, changes: dict[str, object], seconds_ago: float
) -> None:
    if changes.get("pid") == -1:
        changes = {"pid": gone_process()}
    leave_lock(lock_of(url), replace(Holder.me(), **changes), seconds_ago)  # type: ignore[arg-type]
    with start() as run:
        run.set_attrs(stress=1)
    assert not list(url.parent.glob("*.lock*"))


@pytest.mark.parametrize("changes", [{"host": "elsewhere"}, {"namespace": "another boot"}])
def test_a_lock_that_beats_elsewhere_is_respected(
    start: Start, url: Path, changes: dict[str, str]
) -> None:
    leave_lock(lock_of(url), replace(Holder.me(), **changes), STALE_SECONDS - 60)
    with pytest.raises(StoreError, match="one run at a time"):
        start()


def test_a_killed_process_that_nobody_has_waited_for_is_gone(start: Start, url: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = psutil.Process(child.pid).create_time()
    leave_lock(lock_of(url), replace(Holder.me(), pid=child.pid, started=started))
    with pytest.raises(StoreError, match=f"process {child.pid} on"):
        start()
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and a zombie until we wait
    start().close()
    child.communicate()


def test_a_lock_that_was_never_filled_is_judged_by_its_age(
    start: Start, url: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locpipe.store.lock._FILL_SECONDS", 0.05)
    path = lock_of(url)
    path.parent.mkdir(parents=True)
    path.write_text("")
    with pytest.raises(StoreError, match="an unknown host"):
        start()
    os.utime(path, (1.0, 1.0))
    start().close()


@pytest.mark.parametrize(
    "changes",
    [
        {"token": "../../evil"},
        {"token": "/evil"},
        {"token": ""},
        {"token": 7},
        {"pid": "7"},
        {"pid": -1},
        {"pid": 2**70},
        {"started": None},
        {"host": []},
    ],
)
def test_a_lock_of_garbage_is_judged_by_its_age(
    start: Start, url: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    monkeypatch.setattr("locpipe.store.lock._FILL_SECONDS", 0.0)
    leave_lock(lock_of(url), replace(Holder.me(), **changes))
    with pytest.raises(StoreError, match="an unknown host"):
        start()
    store.unlock(url)
    leave_lock(lock_of(url), replace(Holder.me(), **changes), STALE_SECONDS + 60)
    start().close()
    assert [path.name for path in url.parent.iterdir()] == [url.name]


@contextmanager
def full_disk() -> Iterator[None]:
    """A limit on file size stands for a full disk: files are made, and no byte gets in."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def refused_link(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_on_a_full_disk_nothing_stays_behind(start: Start, url: Path) -> None:
    url.parent.mkdir()
    with full_disk(), pytest.raises(StoreError, match=r"cannot create .*\.lock.*too large"):
        start()
    assert list(url.parent.iterdir()) == []
    run = start()
    with full_disk():
        with pytest.raises(StoreError, match=r"cannot write .*too large"):
            run.set_attrs(stress=1)
        run.close()
    assert [path.name for path in url.parent.iterdir()] == [url.name]
    assert not list(url.rglob("*.partial"))


def test_a_full_disk_without_links(url: Path) -> None:
    url.parent.mkdir()
    with full_disk(), pytest.raises(OSError, match="too large"):
        _create_exclusively(lock_of(url), "content")
    assert list(url.parent.iterdir()) == []


def test_a_file_system_without_links(
    start: Start, url: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", refused_link)
    with start(), pytest.raises(StoreError, match=f"process {os.getpid()} on"):
        start()
    assert not list(url.parent.glob("*.lock*"))


def test_what_killed_processes_left_beside_a_lock_is_swept(start: Start, url: Path) -> None:
    dead = replace(Holder.me(), pid=gone_process())
    claim, fresh = (lock_of(url).with_name(f"{url.name}.lock.{end}") for end in ("abc", "abc.new"))
    alive = lock_of(url).with_name(f"{url.name}.lock.def.new")
    kept = lock_of(url).with_name(f"{url.name}.locksmith")
    for path, holder in ((claim, dead), (fresh, dead), (alive, Holder.me()), (kept, dead)):
        leave_lock(path, holder)
    start().close()
    assert {path.name for path in url.parent.iterdir()} == {url.name, alive.name, kept.name}


def test_a_takeover_that_was_killed_is_taken_over(start: Start, url: Path) -> None:
    dead = replace(Holder.me(), pid=gone_process())
    leave_lock(lock_of(url), dead)
    taker = replace(Holder.me(), pid=gone_process())
    leave_lock(lock_of(url).with_name(f"{url.name}.lock.{dead.token}"), taker)
    start().close()
    assert not list(url.parent.glob("*.lock*"))


def test_the_heartbeat(url: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locpipe.store.lock.BEAT_SECONDS", 0.01)
    lock = Lock(Folder.at(url))
    os.utime(lock_of(url), (1.0, 1.0))
    deadline = time.monotonic() + 60
    while lock_of(url).stat().st_mtime == 1.0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    lock.check()
    lock.release()


def test_a_run_that_lost_its_lock_stops_writing(
    start: Start, url: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locpipe.store.lock.BEAT_SECONDS", 0.01)
    run = start()
    run.ensure(store.PartsSpec("counts", 1))
    run.record("counts", 0)  # or `finish` would name the missing part first
    thief = replace(Holder.me(), host="elsewhere")
    leave_lock(lock_of(url), thief)

    def record_until_told() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            run.record("counts", 0)
            time.sleep(0.01)  # the heartbeat needs its turn

    with pytest.raises(StoreError, match=r"no longer holds .* start it again"):
        record_until_told()
    for call in (run.finish, lambda: run.set_attrs(stress=1)):
        with pytest.raises(StoreError, match="no longer holds"):
            call()
    run.close()
    assert Holder(**json.loads(lock_of(url).read_text())) == thief


def test_unlock(start: Start, url: Path) -> None:
    store.unlock(url)
    with start():
        with pytest.raises(StoreError, match="is running; stop that process first"):
            store.unlock(url)
        assert lock_of(url).exists()
    leave_lock(lock_of(url), replace(Holder.me(), host="elsewhere"))
    with pytest.raises(StoreError, match="one run at a time"):
        start()
    store.unlock(url)
    assert not list(url.parent.glob("*.lock*"))
    start().close()


def race(folder: str, rounds: int, barrier: Barrier, wins: "multiprocessing.Queue[int]") -> None:
    for turn in range(rounds):
        barrier.wait()
        lock = None
        try:
            lock = Lock(Folder(Path(folder, str(turn))))
        except StoreError:
            pass
        else:
            wins.put(turn)
        barrier.wait()  # all have tried while the winner holds it
        if lock is not None:
            lock.release()


@pytest.mark.parametrize("stale", [False, True])
def test_of_racing_processes_exactly_one_wins(tmp_path: Path, stale: bool) -> None:
    rounds, racers = 40, 4
    dead = gone_process()
    for turn in range(rounds if stale else 0):
        holder = replace(Holder.me(), pid=dead)
        leave_lock(tmp_path / f"{turn}.lock", holder)
        if turn % 2:  # with a claim of a dead taker on it
            claim = tmp_path / f"{turn}.lock.{holder.token}"
            leave_lock(claim, replace(Holder.me(), pid=dead))
    context = multiprocessing.get_context("forkserver")
    # One server serves all tests of a session, so it is given what the fault tests need too.
    context.set_forkserver_preload(["locpipe.store", "locpipe.graph", "distributed", "zarr"])
    barrier, wins = context.Barrier(racers, timeout=60), context.Queue()
    args = (str(tmp_path), rounds, barrier, wins)
    processes = [context.Process(target=race, args=args) for _ in range(racers)]
    for process in processes:
        process.start()
    winners = [wins.get(timeout=60) for _ in range(rounds)]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert wins.empty()
    assert sorted(winners) == list(range(rounds))
    assert not list(tmp_path.iterdir())
