"""Pictures of results."""

from locpipe.plots.word_map import word_map

__all__ = ["word_map"]
