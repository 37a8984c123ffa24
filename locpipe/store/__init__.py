"""Results on disk: one Zarr v3 group per run, written block by block, resumed after any stop.

A run's folder holds its results as plain Zarr arrays, and in ``_run`` what a later run needs to
go on: which blocks are done, and the ragged parts.  `open_run` is the way in for writing,
`read_status` for a quick look, `open_result` for reading a finished run, `ZarrKeys` and
`ZarrPairs` for computing from stored arrays.
"""

from locpipe.store.fingerprint import InputDigest, digest_inputs, fingerprint
from locpipe.store.folder import resolve
from locpipe.store.lock import unlock
from locpipe.store.opening import check_output, open_run
from locpipe.store.result import Result, open_result, read_result
from locpipe.store.run import Run
from locpipe.store.schema import ArraySpec, PartsSpec
from locpipe.store.sources import ZarrKeys, ZarrPairs
from locpipe.store.status import RunStatus, read_status
from locpipe.store.writer import BlockWriter

__all__ = [
    "ArraySpec",
    "BlockWriter",
    "InputDigest",
    "PartsSpec",
    "Result",
    "Run",
    "RunStatus",
    "ZarrKeys",
    "ZarrPairs",
    "check_output",
    "digest_inputs",
    "fingerprint",
    "open_result",
    "open_run",
    "read_result",
    "read_status",
    "resolve",
    "unlock",
]
