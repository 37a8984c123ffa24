"""Prefect's own server for one run: quiet, offline, on the loopback interface, gone afterwards.

Where a server is configured (`PREFECT_API_URL`, or the active Prefect profile), that one is used.
This module does not import Prefect: it prepares what Prefect's import reads.
"""

import os
import shutil
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.client import HTTPException
from importlib.metadata import version
from pathlib import Path
from typing import Final

from locpipe.errors import LocpipeError

__all__ = ["check_server", "configured_server", "server_for_run"]

ANSWER_SECONDS: Final = 5  # a server that is up answers /health in milliseconds

STARTUP_SECONDS: Final = (
    120  # importing the server takes 6 s on a quiet machine, far more on a busy one
)

QUIET: Final = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",  # the server's heartbeat to its makers
    "DO_NOT_TRACK": "1",  # the client's
    "PREFECT_LOGGING_LEVEL": "CRITICAL",  # locpipe reports progress and errors itself
    "PREFECT_LOGGING_TO_API_ENABLED": "false",  # the database goes with the run
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",  # a cancelled write at the end is no news
    "PREFECT_CLI_PROMPT": "false",
}
# What the server need not do for one run that is there already: schedules, automations, blocks.
LEAN: Final = {
    "PREFECT_UI_ENABLED": "false",
    "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_LATE_RUNS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
}


def configured_server() -> str | None:
    """Return the API address that the user configured, in the environment or a profile, or None."""
    if url := os.environ.get("PREFECT_API_URL"):
        return url
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    file = Path(os.environ.get("PREFECT_PROFILES_PATH", home / "profiles.toml"))
    with suppress(OSError, tomllib.TOMLDecodeError):
        profiles = tomllib.loads(file.read_text(encoding="utf-8"))
        active = os.environ.get("PREFECT_PROFILE", profiles.get("active"))
        url = profiles.get("profiles", {}).get(active, {}).get("PREFECT_API_URL")
    return url


def check_server(url: str) -> None:
    """Ask a server's /health.

    Parameters
    ----------
    url
        Its API address.

    Raises
    ------
    LocpipeError
        If none answers there.
    """
    try:
        urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=ANSWER_SECONDS).close()
        return
    except urllib.error.HTTPError as error:
        if error.code < 500:  # it is up; who may use it is Prefect's business
            return
        received = f"it answers {error.code} {error.reason}"
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLError):  # as is which certificates are trusted
            return
        received = f"none does ({getattr(error.reason, 'strerror', None) or error.reason})"
    except (OSError, ValueError, HTTPException) as error:
        received = f"none does ({error or type(error).__name__})"
    raise LocpipeError(
        f"A Prefect server must answer at PREFECT_API_URL, {url}, and {received}; start it, unset"
        " PREFECT_API_URL, or use --direct."
    )


@contextmanager
def server_for_run() -> Iterator[Callable[[], None]]:
    """Give a `with` block a Prefect server; import Prefect inside it, not before.

    Yields
    ------
    callable
        Waits until the server is up, and raises LocpipeError if it does not come up. Whatever
        takes time, such as importing Prefect, goes before this call.

    Raises
    ------
    LocpipeError
        If the configured server does not answer.
    """
    # Errors are told in one sentence here; the server gets the whole log.
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    if url := configured_server():
        check_server(url)
        yield lambda: None
        return
    home = Path(tempfile.mkdtemp(prefix="locpipe-prefect-"))
    template = _template()
    try:
        with suppress(OSError):
            shutil.copyfile(template, home / "prefect.db")
        port = _free_port()
        os.environ.update(
            QUIET, PREFECT_HOME=str(home), PREFECT_API_URL=f"http://127.0.0.1:{port}/api"
        )
        with _serving(home, port) as wait:

            def ready() -> None:
                wait()
                if not template.exists():
                    _save_template(home / "prefect.db", template)

            yield ready
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _serving(home: Path, port: int) -> Iterator[Callable[[], None]]:
    """Run the server as a child that also ends when this process is killed."""
    migrate = "false" if (home / "prefect.db").exists() else "true"
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "locpipe.flows.server_process", str(port)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, **LEAN, "PREFECT_API_DATABASE_MIGRATE_ON_START": migrate},
        )
        try:
            yield partial(_wait_until_healthy, server, port, home / "server.log")
        finally:
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(timeout=10)
            server.kill()
            server.communicate()


def _wait_until_healthy(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(urllib.error.URLError, OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=5).close()
            return
        time.sleep(0.1)
    lines = log.read_text(errors="replace").splitlines() or ["it said nothing"]
    raise LocpipeError(
        f"Prefect's embedded server did not come up within {STARTUP_SECONDS} s ({lines[-1]}); try"
        " again, set PREFECT_API_URL to a running server, or use --direct."
    )


def _template() -> Path:
    """Return where an empty, migrated database of this Prefect version is kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(cache, "locpipe", f"prefect-{version('prefect')}.db")


def _save_template(database: Path, template: Path) -> None:
    """Keep the database that a first start has migrated; that takes longer than all else."""
    with suppress(OSError, sqlite3.Error):
        template.parent.mkdir(parents=True, exist_ok=True)
        partial = template.with_name(f"{template.name}.{os.getpid()}")
        with closing(sqlite3.connect(database)) as live, closing(sqlite3.connect(partial)) as copy:
            live.backup(copy)
        partial.replace(template)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
