"""Arrays that begin where a cache line does: no vector is then loaded from two lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from locpipe.blocks import Array

__all__ = ["LINE", "aligned"]

LINE = 64
"""Bytes of a cache line, and of a vector."""


def aligned(shape: tuple[int, ...], real: Any) -> Array:
    """Zeros."""
    n_bytes = int(np.prod(shape)) * np.dtype(real).itemsize
    room = np.zeros(n_bytes + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + n_bytes].view(real).reshape(shape)
