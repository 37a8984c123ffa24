"""For tests, ours and users': laws to inherit, plain oracles, accuracy asserts, strategies.

`KernelLaws`, `ReductionLaws` and the module `strategies` need hypothesis; the rest does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from locpipe.testing.asserts import assert_close, assert_log_close, assert_mean_close, no_compute
from locpipe.testing.kinds import as_kind
from locpipe.testing.reference import (
    local_mean_reference,
    log_density_reference,
    log_mass_reference,
    majorization_reference,
    nearest_reference,
)
from locpipe.testing.reference_kernels import distances_reference, kernel_reference
from locpipe.testing.reference_reductions import reduction_reference

if TYPE_CHECKING:
    from locpipe.testing import strategies
    from locpipe.testing.kernel_laws import KernelLaws
    from locpipe.testing.reduction_laws import ReductionLaws

__all__ = [
    "KernelLaws",
    "ReductionLaws",
    "as_kind",
    "assert_close",
    "assert_log_close",
    "assert_mean_close",
    "distances_reference",
    "kernel_reference",
    "local_mean_reference",
    "log_density_reference",
    "log_mass_reference",
    "majorization_reference",
    "nearest_reference",
    "no_compute",
    "reduction_reference",
    "strategies",
]

_HOMES = {"KernelLaws": "kernel_laws", "ReductionLaws": "reduction_laws"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"locpipe.testing.{_HOMES[name]}"), name)
    if name == "strategies":
        return import_module("locpipe.testing.strategies")
    raise AttributeError(f"module 'locpipe.testing' has no attribute {name!r}")
