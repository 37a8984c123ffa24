"""What Python calls: compiled once per machine, anew when a file of this folder changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import types

from locpipe.engines.fused.compiled import compiled

__all__ = ["entry"]


def entry(name: str, kinds: tuple[Any, ...], function: Callable[..., None]) -> Any:
    """`function` compiled for arguments of these kinds; the name says what its closure holds."""
    return compiled(f"pruned_{_stamp()}_{name}", types.void(*kinds), function)


@lru_cache(maxsize=1)
def _stamp() -> str:
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:8]
