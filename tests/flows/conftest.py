"""A corpus that is small and has structure, and settings that make a run quick."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from flow_server import Server, answers, wait_for

from locpipe.flows.server import LEAN

TOPICS = {
    "animal": ["dog", "cat", "horse", "cow", "sheep", "goat", "pig", "hen"],
    "speech": ["said", "cried", "asked", "replied", "shouted", "whispered"],
    "food": ["bread", "cheese", "apple", "butter", "honey", "milk", "soup"],
    "place": ["garden", "kitchen", "barn", "field", "river", "forest"],
}
PATTERN = ["the", "animal", "speech", "about", "the", "food", "in", "the", "place"]


def sentences(n: int, seed: int = 0) -> str:
    """Return n sentences of one pattern with random words."""
    rng = np.random.default_rng(seed)
    lines = (
        " ".join(str(rng.choice(TOPICS[word])) if word in TOPICS else word for word in PATTERN)
        for _ in range(n)
    )
    return ".\n".join(lines)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two texts, together three parts long."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text(sentences(2500, seed=1))
    (folder / "b.txt").write_text(sentences(600, seed=2))
    return folder


@pytest.fixture
def quick(corpus: Path, tmp_path: Path) -> dict[str, object]:
    """Return settings of a small run of `embed-corpus`."""
    return {
        "input": str(corpus),
        "output": str(tmp_path / "map.zarr"),
        "max_words": 27,
        "n_near": 5,
        "n_init": 1,
        "max_iter": 20,
        "grid_size": 16,
        "dashboard": False,
    }


@pytest.fixture
def as_settings(quick: dict[str, object]) -> list[str]:
    """Return the same as arguments of the command line."""
    return [f"--set={key}={value}" for key, value in quick.items()]


@pytest.fixture(scope="session")
def quiet_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment for subprocesses: no server, no profile, no settings of the user."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "DASK_"))}
    return kept | {"PREFECT_PROFILES_PATH": str(tmp_path_factory.mktemp("none") / "none.toml")}


@pytest.fixture(scope="session")
def starting_server(
    request: pytest.FixtureRequest,
    quiet_environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server | None]:
    """Start a real Prefect server as early as can be, where a test needs one: it takes a while."""
    if not any("server" in getattr(item, "fixturenames", ()) for item in request.session.items):
        yield None
        return
    home = tmp_path_factory.mktemp("prefect")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    environment = quiet_environment | {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": url,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_CLI_COLORS": "false",
        "COLUMNS": "200",
    }
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "locpipe.flows.server_process", str(port)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment | LEAN,
        )
    try:
        yield Server(url, environment)
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="session")
def server(starting_server: Server | None) -> Server:
    """Return the server, on the loopback interface, once it answers; it ends with the tests."""
    assert starting_server is not None
    wait_for(lambda: answers(f"{starting_server.url}/health"), 180)
    return starting_server
