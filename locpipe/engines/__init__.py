"""Engines: how blocks are computed on one worker."""

from locpipe.engines import dense
from locpipe.engines.base import Engine, Need, PairEngine, Spread, SummaryEngine
from locpipe.engines.choice import NAMES, choices, engine_name, pairwise
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
    "engine_name",
    "pairwise",
    "single_threaded_libraries",
]
