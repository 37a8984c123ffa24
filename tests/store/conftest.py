"""A store to write to, in a folder whose name has blanks and letters beyond ASCII."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locpipe import store

START: dict[str, Any] = {
    "flow": "embed-corpus",
    "parameters": {"bandwidth": 0.5, "input": "novel.txt"},
    "plan": {"block_rows": 4},
}


@pytest.fixture
def url(tmp_path: Path) -> Path:
    return tmp_path / "a folder" / "Wörter und Bilder ①.zarr"


@pytest.fixture
def start(url: Path) -> Callable[..., store.Run]:
    """Open a run with defaults; `bandwidth` makes it another run."""

    def start(
        *,
        at: object = url,
        bandwidth: float | None = None,
        if_exists: str = "default",
        **other: Any,
    ) -> store.Run:
        options = {**START, **other}
        if bandwidth is not None:
            options["parameters"] = {**options["parameters"], "bandwidth": bandwidth}
        digest = other.get("fingerprint") or store.fingerprint(options["parameters"], [])
        return store.open_run(at, **{**options, "fingerprint": digest}, if_exists=if_exists)

    return start
