"""Engines: how blocks are computed on one worker."""

from locpipe.engines import dense
from locpipe.engines.base import Engine, Need, PairEngine, Spread, SummaryEngine
from locpipe.engines.choice import NAMES, choices, pairwise
from locpipe.engines.threads import single_threaded_libraries

__all__ = [
    "NAMES",
    "Engine",
    "Need",
    "PairEngine",
    "Spread",
    "SummaryEngine",
    "choices",
    "dense",
    "pairwise",
    "single_threaded_libraries",
]
