"""Each kind of cluster computes, closes, and says what is wrong in one sentence."""

import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import dask.config
import psutil
import pytest
import threadpoolctl
from distributed import Client, LocalCluster

from locpipe.cluster import DASK_DEFAULTS, apply_defaults, connect, dashboard_link
from locpipe.errors import ConfigError


def blas_threads() -> set[int]:
    import scipy.linalg  # noqa: F401  (it brings a BLAS of its own)

    pools = threadpoolctl.threadpool_info()
    # An OpenBLAS upon OpenMP (faiss brings one) has a limit for each thread, not for the process.
    own = [pool for pool in pools if pool.get("threading_layer") != "openmp"]
    return {pool["num_threads"] for pool in own if pool["user_api"] == "blas"}


def test_threads_compute_in_this_process_with_one_blas_thread() -> None:
    with connect("threads", threads_per_worker=2) as client:
        assert client.submit(os.getpid).result() == os.getpid()
        assert client.submit(blas_threads).result() == {1}
        assert sum(client.nthreads().values()) == 2
    assert client.status == "closed"


def test_processes_compute_elsewhere_with_one_blas_thread() -> None:
    with connect("processes", n_workers=2, memory_limit="400 MiB") as client:
        pids = set(client.run(os.getpid).values())
        assert len(pids) == 2
        assert os.getpid() not in pids
        assert client.submit(blas_threads).result() == {1}
        limits = {w["memory_limit"] for w in client.scheduler_info()["workers"].values()}
        assert limits == {400 * 2**20}


def test_address_uses_a_running_scheduler_and_leaves_it_running() -> None:
    with LocalCluster(processes=False, protocol="tcp", dashboard_address="127.0.0.1:0") as cluster:
        with connect("address", address=cluster.scheduler_address) as client:
            assert client.submit(sum, [1, 2]).result() == 3
        with Client(cluster) as client:
            assert client.submit(sum, [1, 2]).result() == 3


def test_address_that_does_not_answer() -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(ConfigError, match=r"must answer at 'tcp://127\.0\.0\.1:9'.*cluster=threads"),
        connect("address", address="tcp://127.0.0.1:9"),
    ):
        pass


@pytest.mark.parametrize(
    ("kind", "address", "message"),
    [
        ("thread", None, "must be one of threads, processes, address; got 'thread'"),
        ("address", None, "needs the address of a scheduler; got cluster 'address'"),
        ("threads", "tcp://127.0.0.1:9", "set both or neither"),
    ],
)
def test_wrong_arguments(kind: str, address: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message), connect(kind, address=address):
        pass


def listening_addresses() -> set[str]:
    return {c.laddr.ip for c in psutil.Process().net_connections() if c.status == "LISTEN"}


def test_dashboard_is_served_on_loopback_only() -> None:
    with connect("threads", dashboard=True) as client:
        link = dashboard_link(client)
        assert link is not None
        with urllib.request.urlopen(link, timeout=10) as page:
            assert page.status == 200
        assert listening_addresses() == {"127.0.0.1"}
    with connect("threads") as client:
        assert dashboard_link(client) is None
        assert listening_addresses() <= {"127.0.0.1"}


def test_defaults_are_in_force_and_a_users_setting_outranks_them() -> None:
    apply_defaults()
    for key, value in DASK_DEFAULTS.items():
        assert dask.config.get(key) == value
    with dask.config.set({"distributed.scheduler.no-workers-timeout": "5s"}):
        apply_defaults()
        assert dask.config.get("distributed.scheduler.no-workers-timeout") == "5s"


SCRIPT = """
from locpipe.cluster import connect
{guard}
{indent}with connect("processes", n_workers=1) as client:
{indent}    print("answer", client.submit(sum, [20, 22]).result())
"""


def run_script(folder: Path, guard: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(guard=guard, indent="    " if guard else ""))
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=False
    )


def test_guarded_script_works(tmp_path: Path) -> None:
    done = run_script(tmp_path, "if __name__ == '__main__':")
    assert (done.returncode, done.stdout) == (0, "answer 42\n"), done.stderr


def test_script_without_guard_gets_one_message(tmp_path: Path) -> None:
    done = run_script(tmp_path, "")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("ConfigError: Worker processes import script.py") == 1
    assert "must stand under `if __name__ == '__main__':`" in done.stderr


def test_program_from_standard_input_gets_one_message() -> None:
    done = subprocess.run(
        [sys.executable, "-"],
        input=SCRIPT.format(guard="", indent=""),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("ConfigError: Worker processes import the main program") == 1
