"""For tests, ours and users': plain oracles, accuracy asserts, hypothesis strategies."""

from locpipe.testing.asserts import assert_close, assert_log_close, assert_mean_close, no_compute
from locpipe.testing.reference import (
    local_mean_reference,
    log_density_reference,
    log_mass_reference,
    majorization_reference,
    nearest_reference,
)

__all__ = [
    "assert_close",
    "assert_log_close",
    "assert_mean_close",
    "local_mean_reference",
    "log_density_reference",
    "log_mass_reference",
    "majorization_reference",
    "nearest_reference",
    "no_compute",
]
