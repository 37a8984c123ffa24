"""Reductions: what is kept of the weighted keys.  Each is a monoid over keys."""

from locpipe.reductions.base import Reduction, State
from locpipe.reductions.log_mass import LogMass
from locpipe.reductions.majorization import MajorizationStep, MajorizationSums
from locpipe.reductions.top_k import TopK
from locpipe.reductions.weighted_mean import WeightedMean
from locpipe.reductions.weighted_sum import WeightedSum

__all__ = [
    "LogMass",
    "MajorizationStep",
    "MajorizationSums",
    "Reduction",
    "State",
    "TopK",
    "WeightedMean",
    "WeightedSum",
]
