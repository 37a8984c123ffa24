"""Engines: how blocks are computed on one worker."""

from locpipe.engines import dense
from locpipe.engines.threads import single_threaded_libraries

__all__ = ["dense", "single_threaded_libraries"]
