"""The flows on real Prefect servers: embedded, running, and through deployments and workers."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import xarray as xr
import yaml
from flow_server import Server, wait_for

from locpipe.errors import LocpipeError
from locpipe.flows.doctor import examine
from locpipe.flows.models import FLOWS
from locpipe.flows.server import check_server, configured_server, server_for_run

LOCPIPE = (sys.executable, "-m", "locpipe.cli")
PREFECT = (sys.executable, "-m", "prefect")

pytestmark = pytest.mark.usefixtures("starting_server")  # it comes up beside the first tests


def flow_of(name: str) -> Any:
    from locpipe.flows.amds import amds
    from locpipe.flows.embed_corpus import embed_corpus

    return {"embed-corpus": embed_corpus, "amds": amds}[name]


@pytest.mark.parametrize("name", FLOWS)
def test_parameters_of_the_flow_are_the_keys_of_the_model(name: str) -> None:
    flow, fields = flow_of(name), FLOWS[name].model_fields
    described = flow.parameters.properties
    assert list(described) == list(fields)
    for key, field in fields.items():
        assert described[key]["default"] == field.default
        assert described[key]["description"] == f"{field.description}."
    assert described["n_init"]["minimum"] == 1
    assert flow.name == name


@pytest.mark.parametrize("name", FLOWS)
def test_flow_files_are_thin(repo: Path, name: str) -> None:
    file = repo / "flows" / f"{name.replace('-', '_')}.py"
    assert len(file.read_text().splitlines()) < 60


@pytest.mark.parametrize("name", FLOWS)
def test_prefect_yaml_deploys_every_flow(repo: Path, name: str) -> None:
    file = yaml.safe_load((repo / "prefect.yaml").read_text())
    (deployment,) = (d for d in file["deployments"] if d["name"] == name)
    assert deployment["entrypoint"] == (
        f"locpipe.flows.{name.replace('-', '_')}:{name.replace('-', '_')}"
    )
    assert file["pull"] == []
    assert deployment["concurrency_limit"] == {"limit": 1, "collision_strategy": "ENQUEUE"}
    assert not any(schedule["active"] for schedule in deployment["schedules"])
    assert set(deployment["parameters"]) <= set(FLOWS[name].model_fields)
    assert deployment["description"]
    assert deployment["tags"]


def test_configured_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.delenv("PREFECT_PROFILE", raising=False)
    monkeypatch.setenv("PREFECT_PROFILES_PATH", str(tmp_path / "p.toml"))
    assert configured_server() is None
    (tmp_path / "p.toml").write_text(
        'active = "work"\n[profiles.work]\nPREFECT_API_URL = "http://10.0.0.1/api"\n'
    )
    assert configured_server() == "http://10.0.0.1/api"
    monkeypatch.setenv("PREFECT_API_URL", "http://10.0.0.2/api")
    assert configured_server() == "http://10.0.0.2/api"


def test_bandwidth_of_the_example_suits_a_map(repo: Path) -> None:
    (example,) = re.findall(r"--param bandwidth=([\d.]+)", (repo / "prefect.yaml").read_text())
    assert 0.01 <= float(example) <= 0.05  # a map's radius is about 0.4


class Replies(BaseHTTPRequestHandler):
    """Answers the status that the path names: /503/health."""

    def do_GET(self) -> None:
        self.send_response(int(self.path.split("/")[1]))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def replies() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Replies) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_a_server_is_asked_for_its_health(replies: str) -> None:
    for well in ("200", "200/", "401"):
        check_server(f"{replies}/{well}")
    with pytest.raises(LocpipeError, match="and it answers 503 Service Unavailable; start it"):
        check_server(f"{replies}/503")
    with pytest.raises(LocpipeError, match=r"not/a/url, and none does \(unknown url type"):
        check_server("not/a/url")


DEAD = "http://127.0.0.1:9/api"
REFUSED = (
    f"A Prefect server must answer at PREFECT_API_URL, {DEAD}, and none does (Connection refused);"
    " start it, unset PREFECT_API_URL, or use --direct."
)


def test_a_dead_server_stops_a_run_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", DEAD)
    with pytest.raises(LocpipeError) as caught, server_for_run():
        raise AssertionError("started")
    assert str(caught.value) == REFUSED


def test_doctor_finds_a_dead_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", DEAD)
    assert not examine()
    (line,) = (x for x in capsys.readouterr().out.splitlines() if x.startswith("FAIL"))
    assert line == f"FAIL {'Prefect':<16} {REFUSED}"


@pytest.mark.slow
def test_run_on_the_embedded_server(
    quiet_environment: dict[str, str], as_settings: list[str], tmp_path: Path, prefect_cache: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    places = {"TMPDIR": str(scratch), "XDG_CACHE_HOME": str(prefect_cache)}
    done = subprocess.run(
        [*LOCPIPE, "run", "embed-corpus", *as_settings],
        capture_output=True,
        text=True,
        env=quiet_environment | places,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[1] == "Prefect: its own server for this run, some seconds to start"
    assert all(line[0] == "[" for line in lines[2:] if not line.startswith("Warning"))
    assert "Largest clusters" in done.stdout
    assert list(scratch.glob("locpipe-prefect-*")) == []
    assert len(list(prefect_cache.glob("locpipe/prefect-*.db"))) == 1
    assert not any("locpipe.flows.server_process" in c and str(scratch) in c for c in commands())


def commands() -> list[str]:
    return [" ".join(p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]


def latest_runs(server: Server, n: int) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = server.post(
        "flow_runs/filter", {"sort": "START_TIME_DESC", "limit": n}
    )
    return runs


CALLS = """
import numpy as np
from locpipe.flows.amds import amds
from locpipe.flows.embed_corpus import embed_corpus
for wrong in (dict(input=np.ones((3, 3))), dict(bandwith=1), dict(bandwidth=np.float64(-0.5))):
    try:
        embed_corpus(**wrong)
    except Exception as error:
        print("REFUSED", type(error).__name__, " ".join(str(error).split()))
np.save("d.npy", np.ones((4, 4)))
amds(input="d.npy", output="map.zarr", grid_size=np.int64(9), dashboard=np.bool_(False))
"""


@pytest.mark.slow
def test_numpy_scalars_are_accepted_arrays_and_unknown_names_are_not(
    server: Server, tmp_path: Path
) -> None:
    printed = server.run(sys.executable, "-c", CALLS, cwd=tmp_path)
    array, name, number = (line for line in printed.splitlines() if line.startswith("REFUSED"))
    assert "ConfigError" in array
    assert "give the path" in array
    assert "bandwith" in name
    assert "bandwidth" in name
    assert "ConfigError bandwidth must be greater than or equal to 0" in number
    assert xr.open_zarr(tmp_path / "map.zarr").density_grid.shape == (9, 9)


@pytest.mark.slow
def test_loss_of_all_workers_fails_the_run_in_bounded_time(server: Server, tmp_path: Path) -> None:
    # One start of a map this large takes seconds; the worker never gets so long.
    np.save(tmp_path / "d.npy", np.random.default_rng(0).uniform(1, 2, (1000, 1000)))
    large = ["init=random", "n_init=1", "max_iter=1000", "tol=0"]
    places = [f"input={tmp_path / 'd.npy'}", f"output={tmp_path / 'map.zarr'}"]
    work = [*large, *places, "cluster=processes", "n_workers=1", "dashboard=false"]
    environment = server.environment | {"DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT": "2s"}
    with subprocess.Popen(
        [*LOCPIPE, "run", "amds", *(f"--set={key}" for key in work)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "scaling" in line:
                break
        start = time.monotonic()
        while process.poll() is None and time.monotonic() - start < 90:
            kill_workers(process.pid)
            time.sleep(0.1)
        said = process.stderr.read()
    assert process.returncode == 1
    assert "Traceback" not in said
    assert "the workers were lost while scaling" in said.splitlines()[-1]
    (run,) = latest_runs(server, 1)
    assert run["state"]["type"] in ("FAILED", "CRASHED")


def kill_workers(pid: int) -> None:
    """Kill the worker processes of one Dask client, and no other process."""
    with suppress(psutil.Error):  # whatever has just ended by itself
        for child in psutil.Process(pid).children(recursive=True):
            if "spawn_main" in " ".join(child.cmdline()):
                child.kill()


PREFECT_CALLS = """
import json, os, sys
from prefect.cli import app
for folder, *arguments in json.loads(sys.argv[1]):
    os.chdir(folder)
    sys.argv = ["prefect", *arguments]
    print("CALLED")
    try:
        app()
    except SystemExit as end:
        print("STATUS", end.code or 0)
"""


def prefect(server: Server, *calls: tuple[object, ...]) -> list[str]:
    """Run Prefect's own commands, each in its folder, in one process; return what each printed."""
    texts = json.dumps([[str(word) for word in call] for call in calls])
    printed = server.run(sys.executable, "-c", PREFECT_CALLS, texts, cwd=Path.cwd())
    return printed.split("CALLED\n")[1:]


@pytest.mark.slow
def test_deployment_runs_from_an_unrelated_folder(
    server: Server, repo: Path, quick: dict[str, Any], tmp_path: Path
) -> None:
    project = tmp_path / "My Data" / "run 1"  # blanks, as on many machines
    project.mkdir(parents=True)
    shutil.copy(repo / "prefect.yaml", project)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "flows").mkdir()  # a user's own folder of that name is not ours
    server.post("work_pools/", {"name": "local", "type": "process"})
    worker = subprocess.Popen(
        [*PREFECT, "worker", "start", "--pool", "local", "--type", "process"],
        cwd=elsewhere,
        env=server.environment | {"PREFECT_WORKER_QUERY_SECONDS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        output = tmp_path / "out dir" / "res.zarr"
        parameters = {**quick, "output": str(output), "bandwidth": 0.02}
        named = [f"--param={k}={v if isinstance(v, str) else yaml_scalar(v)}" for k, v in
                 parameters.items()]  # fmt: skip
        run = (elsewhere, "deployment", "run", "embed-corpus/embed-corpus")
        deployed, started, refused, wrong = prefect(
            server,
            (project, "--no-prompt", "deploy", "--all"),
            (*run, *named),
            (*run, "--param=foo=1"),
            (*run, '--param=window="wide"'),
        )
        assert deployed.endswith("STATUS 0\n"), deployed
        assert started.endswith("STATUS 0\n"), started
        assert refused.endswith("STATUS 1\n"), refused
        assert "foo" in refused
        assert "bandwidth" in refused
        assert wrong.endswith("STATUS 1\n"), wrong
        assert "wide" in wrong
        wait_for(lambda: latest_runs(server, 1)[0]["state"]["type"] in
                 ("COMPLETED", "FAILED", "CRASHED"), 240)  # fmt: skip
        (found,) = latest_runs(server, 1)
        assert found["state"]["type"] == "COMPLETED", found["state"]
        assert found["parameters"]["bandwidth"] == 0.02
        assert xr.open_zarr(output).attrs["bandwidth"] == 0.02
        check_artifacts(server, found["id"])
    finally:
        end(worker)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a Prefect worker; one that hangs on its way out needs to be told twice."""
    for signal_ in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        process.send_signal(signal_)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
            return


def check_artifacts(server: Server, run_id: str) -> None:
    artifacts = server.post("artifacts/filter", {"artifacts": {"flow_run_id": {"any_": [run_id]}}})
    found = {a["key"]: a["data"] for a in artifacts}
    assert "densest members" in str(found["embed-corpus-clusters"])
    assert found["embed-corpus-map"].startswith("data:image/png;base64,")
    assert len(found["embed-corpus-map"]) < 100_000
    assert found["embed-corpus-progress"] == 100.0
    assert "stress" in found["embed-corpus-summary"]
    assert "**Warning**: there are too few dots" in found["embed-corpus-summary"]
    described = {a["key"]: a["description"] for a in artifacts}
    assert described["embed-corpus-map"].startswith("27 dots, ")


def yaml_scalar(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
