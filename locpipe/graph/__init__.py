"""Graphs: how blocks become work, in memory or on Dask.  The only room that builds graphs."""

from locpipe.graph.fold import fold
from locpipe.graph.inputs import Keys, Queries
from locpipe.graph.plan import Plan
from locpipe.graph.prepare import PreparedKeys, prepare
from locpipe.graph.sources import ArrayKeys, KeySource
from locpipe.graph.waves import run_blocks

__all__ = [
    "ArrayKeys",
    "KeySource",
    "Keys",
    "Plan",
    "PreparedKeys",
    "Queries",
    "fold",
    "prepare",
    "run_blocks",
]
