"""A real Prefect server for the tests of the flows: asking it, running its clients, waiting."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Server:
    """A Prefect server on this machine, and the environment of its clients."""

    url: str
    environment: dict[str, str]

    def post(self, path: str, body: object) -> Any:
        """Ask the API, and return what it answers."""
        request = urllib.request.Request(
            f"{self.url}/{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def run(self, *command: object, cwd: Path, check: bool = True) -> str:
        """Run a command as a client of this server; return what it prints."""
        done = subprocess.run(
            [*map(str, command)],
            capture_output=True,
            text=True,
            cwd=cwd,
            env=self.environment,
            timeout=240,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == 0 or not check, printed
        return printed


def answers(url: str) -> bool:
    """Return whether a URL answers."""
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds; fail if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)
