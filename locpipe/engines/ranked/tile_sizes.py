"""How large a tile of pairs is; plans ask, so nothing is compiled for it."""

from __future__ import annotations

__all__ = ["tile_keys", "tile_queries"]

_TILE_PAIRS = 2**21
_MOST_KEYS, _MOST_QUERIES = 4096, 1024
_MOST_NUMBERS = 2**22


def tile_keys(n_features: int) -> int:
    """Keys of a tile, at most."""
    return min(_MOST_KEYS, max(256, _MOST_NUMBERS // max(1, n_features)))


def tile_queries(n_features: int, n_keys: int) -> int:
    """Queries of a tile of so many keys."""
    by_pairs, by_features = _TILE_PAIRS // max(1, n_keys), _MOST_NUMBERS // max(1, n_features)
    return max(64, min(_MOST_QUERIES, by_pairs, by_features))
