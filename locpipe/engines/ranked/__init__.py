"""Engines of rankings: who the k best keys are."""

from locpipe.engines.ranked.approximate import Approximate
from locpipe.engines.ranked.engine import Ranked
from locpipe.engines.ranked.lists import recall
from locpipe.engines.ranked.projected import RankedProjected
from locpipe.engines.ranked.trees import RankedTrees

__all__ = ["Approximate", "Ranked", "RankedProjected", "RankedTrees", "recall"]
