"""Reductions: what is kept of the weighted keys.  Each is a monoid over keys."""

from locpipe.reductions.arg_best import ArgBest
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.local_moments import LocalMoments
from locpipe.reductions.log_mass import LogMass
from locpipe.reductions.majorization import MajorizationStep, MajorizationSums
from locpipe.reductions.top_k import TopK
from locpipe.reductions.weighted_mean import WeightedMean
from locpipe.reductions.weighted_sum import WeightedSum

__all__ = [
    "ArgBest",
    "LocalMoments",
    "LogMass",
    "MajorizationStep",
    "MajorizationSums",
    "Reduction",
    "State",
    "TopK",
    "WeightedMean",
    "WeightedSum",
]
