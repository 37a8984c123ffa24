"""Student's t kernel at any number of degrees of freedom."""

from math import fsum, lgamma, log, log1p, pi

import numpy as np
import pytest
from scipy.stats import multivariate_t

import locpipe as lp
from locpipe.errors import InputError
from locpipe.kernels import Gaussian, StudentT
from locpipe.testing import assert_close


def constant(nu, d):
    """``Gamma(nu/2 + d/2) / Gamma(nu/2) / (nu pi)^(d/2)`` in even dimensions."""
    return fsum(log1p(2 * i / nu) for i in range(d // 2)) - 0.5 * d * log(2 * pi)


@pytest.mark.parametrize("nu", [0.3, 1.0, 5.5, 19.9, 20.0, 20.1, 333.0])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_scipy_gives_the_same_density(nu, d):
    x = np.random.default_rng(0).normal(size=(5, d)) * 3
    found = lp.log_density(x, np.zeros((1, d)), StudentT(nu, 2.0))
    expected = multivariate_t(np.zeros(d), 4 * np.eye(d), df=nu).logpdf(x)
    assert_close(found, np.atleast_1d(expected), 1e-12)


@pytest.mark.parametrize("nu", [1e-3, 1.0, 20.0, 1e3, 1e6, 1e8, 1e12, 1e15, 1e300])
@pytest.mark.parametrize("d", [2, 6, 40])
def test_the_normaliser_is_a_product_in_even_dimensions(nu, d):
    assert abs(StudentT(nu).log_constant(d) - constant(nu, d)) < 1e-13 * max(1, d)


@pytest.mark.parametrize("d", [1, 3, 7])
def test_the_normaliser_in_odd_dimensions(d):
    for nu in (2e3, 1e5, 1e8, 1e15):
        ours = StudentT(nu).log_constant(d)
        # Gamma(h + 1/2) / Gamma(h) by its series in 1 / h (DLMF 5.11.13), then whole steps up.
        h = nu / 2
        half = 0.5 * log(h) + log1p(-1 / (8 * h) + 1 / (128 * h**2) + 5 / (1024 * h**3))
        whole = fsum(log(h + 0.5 + i) for i in range((d - 1) // 2))
        assert abs(ours - (half + whole - 0.5 * d * log(nu * pi))) < 1e-12
    small = lgamma(0.5 * (3.0 + d)) - lgamma(1.5) - 0.5 * d * log(3 * pi)
    assert abs(StudentT(3.0).log_constant(d) - small) < 1e-13


def test_with_many_degrees_of_freedom_it_is_gaussian():
    x = np.random.default_rng(0).normal(size=(20, 3))
    expected = lp.log_density(x[:5], x, Gaussian(0.7))
    for nu in (1e12, 1e15, 1e300):
        assert_close(lp.log_density(x[:5], x, StudentT(nu, 0.7)), expected, 1e-10)


@pytest.mark.parametrize("nu", [1e-300, 1e-20, 9e-4, 1.1e-3])
def test_few_degrees_of_freedom_overflow_nowhere(nu):
    u2 = np.array([0.0, 1e-305, nu * 1e-3, nu, nu * 1e19, 1e-8, 1.0, 1e8, 1e305])
    found = StudentT(nu).log_profile(u2, 2)
    u2 = list(map(float, u2))
    exact = [-0.5 * (nu + 2) * (log1p(a / nu) if a < 1e30 * nu else log(a) - log(nu)) for a in u2]
    assert_close(found, np.array(exact), 1e-13)
    assert np.isfinite(StudentT(nu).log_constant(2))


@pytest.mark.parametrize("nu", [None, 0, -1, np.nan, np.inf, 1e-301, 1e301, "3", True])
def test_degrees_of_freedom_are_checked(nu):
    message = (
        r"nu must be a positive finite number .* between 1e-300 and 1e300, such as StudentT\(3"
    )
    with pytest.raises(InputError, match=message):
        StudentT(nu)
    with pytest.raises(InputError, match=message):
        StudentT()
