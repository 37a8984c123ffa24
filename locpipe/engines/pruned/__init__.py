"""Pairs that cannot matter are never computed: keys in boxes, and a bound."""

from locpipe.engines.pruned.engine import Pruned

__all__ = ["Pruned"]
