"""Engines of rankings: who the k best keys are."""

from locpipe.engines.ranked.engine import Ranked

__all__ = ["Ranked"]
