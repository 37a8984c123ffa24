"""Dask clients: one function, `connect`, for threads, processes and a running cluster.

Everything that keeps a cluster honest (time-outs, quiet logs, BLAS threads) stands in `settings`.
"""

from locpipe.cluster.connect import KINDS, connect, dashboard_link
from locpipe.cluster.settings import DASK_DEFAULTS, apply_defaults

__all__ = ["DASK_DEFAULTS", "KINDS", "apply_defaults", "connect", "dashboard_link"]
