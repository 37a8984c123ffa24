"""Every radial kernel: exact constants, moments, libraries, edges."""

import numpy as np
import pytest
from scipy import integrate
from sklearn.neighbors import KernelDensity

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
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
from locpipe.testing import assert_close, assert_log_close

PLAIN = [
    Gaussian,
    Epanechnikov,
    Biweight,
    Triweight,
    Tricube,
    Cosine,
    Triangular,
    Uniform,
    Exponential,
    Logistic,
    Cauchy,
]
EVERY = [*(kernel(1.0) for kernel in PLAIN), StudentT(3.0)]
every = pytest.mark.parametrize("kernel", EVERY, ids=lambda k: type(k).__name__)

# Theory sheet 1.2: c, second moment and roughness at h = 1 for d = 1; c, second moment and
# roughness for d = 2; c for d = 3 where the sheet has it.
TABLE = {
    Gaussian: (0.39894228040143, 1, 0.28209479177388, 0.1591549430919, 1, 0.079577471545948),
    Epanechnikov: (3 / 4, 1 / 5, 3 / 5, 2 / np.pi, 1 / 6, 0.42441318157839),
    Biweight: (15 / 16, 1 / 7, 5 / 7, 3 / np.pi, 1 / 8, 0.57295779513082),
    Triweight: (35 / 32, 1 / 9, 0.81585081585082, 4 / np.pi, 1 / 10, 0.72756545413438),
    Tricube: (
        70 / 81,
        35 / 243,
        0.7085020242915,
        0.8645453698819,
        0.12087912087912,
        0.58847205849104,
    ),
    Cosine: (
        np.pi / 4,
        0.1894305308613,
        0.61685027506808,
        0.68798459847103,
        0.160114993234,
        0.44216706966019,
    ),
    Triangular: (1, 1 / 6, 2 / 3, 3 / np.pi, 3 / 20, 0.47746482927569),
    Uniform: (1 / 2, 1 / 3, 1 / 2, 1 / np.pi, 1 / 4, 1 / np.pi),
    Exponential: (1 / 2, 2, 1 / 4, 1 / (2 * np.pi), 3, 0.039788735772974),
    Logistic: (
        1,
        np.pi**2 / 3,
        1 / 6,
        1 / (2 * np.pi * np.log(2)),
        3.9019534493731,
        0.024466167783391,
    ),
    StudentT: (0.36755259694786, 3, 0.22972037309241, 0.1591549430919, 3, 0.059683103659461),
}
D3 = {
    Gaussian: 0.063493635934241,
    Epanechnikov: 0.59683103659461,
    Tricube: 0.95492965855137,
    Cosine: 0.65987251068586,
    Logistic: 0.048377301649799,
    Exponential: 1 / (8 * np.pi),
    Cauchy: 1 / np.pi**2,
}


def profile(kernel, u, d=1):
    q = QueryBlock(np.zeros((1, d)))
    k = KeyBlock(np.c_[np.atleast_1d(u), np.zeros((np.size(u), d - 1))])
    return np.exp(kernel.log_weights(q, k))[0]


def moment(kernel, d, power, of=lambda w: w):
    """``S_d int of(kappa(r)) r^(d - 1 + power) dr``."""
    sphere = {1: 2.0, 2: 2 * np.pi, 3: 4 * np.pi, 5: 8 * np.pi**2 / 3}[d]
    end = 1.0 if kernel.support == 1 else np.inf
    f = lambda r: of(profile(kernel, r, d)[0]) * r ** (d - 1 + power)  # noqa: E731
    return sphere * integrate.quad(f, 0, end, limit=400, epsabs=0, epsrel=1e-11)[0]


@pytest.mark.parametrize(
    "kernel", [k for k in EVERY if type(k) in TABLE], ids=lambda k: type(k).__name__
)
@pytest.mark.parametrize("d", [1, 2])
def test_constants_of_the_theory_sheet(kernel, d):
    constant, second, roughness = TABLE[type(kernel)][3 * (d - 1) : 3 * d]
    c = np.exp(kernel.lower(d).log_normalizer)
    assert_close(c, constant, 1e-12)
    assert_close(c * moment(kernel, d, 2) / d, second, 1e-7)
    assert_close(c**2 * moment(kernel, d, 0, lambda w: w * w), roughness, 1e-8)


@pytest.mark.parametrize(
    "kernel", [k for k in EVERY if type(k) in D3], ids=lambda k: type(k).__name__
)
def test_constants_in_three_dimensions(kernel):
    assert_close(np.exp(kernel.lower(3).log_normalizer), D3[type(kernel)], 1e-12)


@every
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_densities_integrate_to_one(kernel, d):
    assert_close(np.exp(kernel.lower(d).log_normalizer) * moment(kernel, d, 0), 1.0, 1e-8)


@every
def test_no_overflow_in_784_dimensions(kernel):
    assert np.isfinite(kernel.lower(784).log_normalizer)


SKLEARN = {
    Gaussian: "gaussian",
    Uniform: "tophat",
    Epanechnikov: "epanechnikov",
    Exponential: "exponential",
    Triangular: "linear",
    Cosine: "cosine",
}
# scikit-learn's cosine kernel is wrong in even dimensions (theory sheet 1.2 b).
PAIRS = [
    (kernel, name, d)
    for kernel, name in SKLEARN.items()
    for d in (1, 2, 3, 5)
    if kernel is not Cosine or d % 2
]


@pytest.mark.parametrize(("kernel", "name", "d"), PAIRS)
def test_densities_equal_scikit_learn(kernel, name, d):
    rng = np.random.default_rng(d)
    X, Q = rng.normal(size=(60, d)), rng.normal(size=(20, d))
    theirs = KernelDensity(kernel=name, bandwidth=1.5).fit(X).score_samples(Q)
    ours = lp.log_density(Q, X, kernel(1.5))
    assert_log_close(
        np.where(ours < -1e3, -np.inf, ours), np.where(theirs < -1e3, -np.inf, theirs), 1e-10
    )


@every
def test_profiles_start_at_their_peak_and_fall(kernel):
    u = np.linspace(0, 3, 50)
    values = profile(kernel, u)
    assert_close(values[0], np.exp(kernel.log_peak))
    assert (np.diff(values) <= 0).all()
    assert kernel.lower(1).log_bound == kernel.log_peak
    assert ((values == 0) == ((u > kernel.support) | ((u == 1) & (kernel.support == 1)))).all()


def test_the_edge_of_the_ball_belongs_to_it():
    np.testing.assert_array_equal(profile(Uniform(2.0), [2.0, np.nextafter(2.0, 3)]), [1, 0])


def test_student_with_one_degree_is_cauchy():
    u = np.linspace(0, 9, 20)
    assert_close(profile(StudentT(1.0), u, 3), profile(Cauchy(), u, 3))
    assert_close(StudentT(1.0).lower(3).log_normalizer, Cauchy().lower(3).log_normalizer)
    assert StudentT(3, 2) == StudentT(3.0, bandwidth=2.0)
    assert repr(StudentT(3, 2)) == "StudentT(bandwidth=2.0, metric='euclidean', nu=3.0)"


@pytest.mark.parametrize("nu", [0, -1, np.inf, np.nan, "3"])
def test_degrees_of_freedom_are_positive(nu):
    with pytest.raises(InputError, match="nu must be a positive finite number"):
        StudentT(nu)


def test_local_means_of_the_theory_sheet():
    x, y = [0.0, 1.0, 2.0, 4.0], [1.0, 3.0, 2.0, 5.0]
    expected = {Epanechnikov(3.0): 2.3796296296296, Tricube(3.0): 2.1989591911938}
    for kernel, value in expected.items():
        assert_close(lp.local_mean([1.5], x, y, kernel), [value], 1e-13)


@every
@pytest.mark.parametrize("bandwidth", [-1.0, [1.0, 0.0]])
def test_bandwidths_are_checked(kernel, bandwidth):
    with pytest.raises(InputError, match="positive finite number"):
        type(kernel)(**{"nu": 3.0} if isinstance(kernel, StudentT) else {}, bandwidth=bandwidth)
