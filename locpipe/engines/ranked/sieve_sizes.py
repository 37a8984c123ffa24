"""How large a tile of wide rows is; plans ask, so nothing is compiled for it."""

from __future__ import annotations

__all__ = ["SAMPLE", "TILE_BYTES", "TILE_KEYS", "TILE_QUERIES"]

TILE_KEYS, TILE_QUERIES = 2048, 512
SAMPLE = 2048
"""Keys that are looked at to find leading directions, about."""
TILE_BYTES = 4 * TILE_KEYS * TILE_QUERIES + 24 * TILE_KEYS
