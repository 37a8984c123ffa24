"""Compiled loops over pairs that never store a tile of log weights in NumPy."""

from locpipe.engines.fused.engine import Fused

__all__ = ["Fused"]
