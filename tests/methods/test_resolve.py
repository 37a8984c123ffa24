"""Bandwidths that smooth alike, against the theory sheet."""

import numpy as np
import pytest

import locpipe as lp
from locpipe.errors import InputError
from locpipe.kernels import (
    Biweight,
    Cauchy,
    Cosine,
    Epanechnikov,
    Exponential,
    Gaussian,
    Logistic,
    StudentT,
    Triangular,
    Tricube,
    Triweight,
    Uniform,
)
from locpipe.methods.resolve import canonical_bandwidth
from locpipe.testing import assert_close

# Theory sheet 1.2: delta0 for d = 1 and 2.
DELTA0 = {
    Gaussian(): (0.77638835640902, 0.65584068714441),
    Epanechnikov(): (1.7187719275875, 1.5752466357995),
    Biweight(): (2.0361680046404, 1.8227080055954),
    Triweight(): (2.3121667641824, 2.0432053244316),
    Tricube(): (2.0262055975111, 1.8514154212766),
    Cosine(): (1.7662654022051, 1.6073868046181),
    Triangular(): (1.8881750225898, 1.6638971506831),
    Uniform(): (1.3509600385206, 1.3116813742888),
    Exponential(): (0.57434917749852, 0.4051224139777),
    Logistic(): (0.43400861838112, 0.34224225622161),
    StudentT(3.0): (0.48016599533871, 0.43344581587299),
}


@pytest.mark.parametrize("kernel", DELTA0, ids=lambda k: type(k).__name__)
def test_canonical_bandwidths_of_the_theory_sheet(kernel):
    for d, expected in zip((1, 2), DELTA0[kernel], strict=True):
        assert_close(canonical_bandwidth(kernel, d), expected, 1e-6)


def test_rules_scale_with_the_kernel():
    # Theory sheet 3.2: Epanechnikov over Gaussian, normal reference.
    X = np.random.default_rng(0).normal(size=(200, 1))
    gaussian = lp.KernelDensity(bandwidth="silverman").fit(X).bandwidth_[0]
    compact = lp.KernelDensity(kernel="epanechnikov", bandwidth="silverman").fit(X).bandwidth_[0]
    assert_close(compact / gaussian, 2.344914356323 / 1.0592238410488, 1e-6)


def test_a_kernel_without_a_second_moment_has_no_rule():
    with pytest.raises(InputError, match="Cauchy has none; give bandwidth a number"):
        canonical_bandwidth(Cauchy(), 1)
    with pytest.raises(InputError, match="give bandwidth a number"):
        lp.KernelDensity(kernel="cauchy").fit(np.random.default_rng(0).normal(size=(20, 1)))
