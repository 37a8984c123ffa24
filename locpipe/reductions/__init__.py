"""Reductions: what is kept of the weighted keys.  Each is a monoid over keys."""

from locpipe.reductions.arg_best import ArgBest
from locpipe.reductions.base import (
    Reduction,
    State,
    fill_empty,
    full,
    merge_shifts,
    weights_and_shift,
)
from locpipe.reductions.gather import Gather, Gathered
from locpipe.reductions.gathered import LocalDesign, gathered_moments, local_design
from locpipe.reductions.local_moments import LocalMoments
from locpipe.reductions.log_mass import LogMass
from locpipe.reductions.majorization import MajorizationStep, MajorizationSums
from locpipe.reductions.top_k import TopK
from locpipe.reductions.weighted_mean import WeightedMean
from locpipe.reductions.weighted_sum import WeightedSum
from locpipe.reductions.weighted_variance import WeightedVariance

__all__ = [
    "ArgBest",
    "Gather",
    "Gathered",
    "LocalDesign",
    "LocalMoments",
    "LogMass",
    "MajorizationStep",
    "MajorizationSums",
    "Reduction",
    "State",
    "TopK",
    "WeightedMean",
    "WeightedSum",
    "WeightedVariance",
    "fill_empty",
    "full",
    "gathered_moments",
    "local_design",
    "merge_shifts",
    "weights_and_shift",
]
