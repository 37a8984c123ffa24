"""Calling the command line in a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Called = Callable[..., subprocess.CompletedProcess[str]]
LOCPIPE = (sys.executable, "-m", "locpipe.cli")


def locpipe(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LOCPIPE, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        check=False,
    )
