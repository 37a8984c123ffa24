"""Every radial kernel: libraries, edges, what is refused.  Constants: test_oracles_profiles.py."""

import numpy as np
import pytest
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


def profile(kernel, u, d=1):
    q = QueryBlock(np.zeros((1, d)))
    k = KeyBlock(np.c_[np.atleast_1d(u), np.zeros((np.size(u), d - 1))])
    return np.exp(kernel.log_weights(q, k))[0]


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


@every
@pytest.mark.parametrize(
    "bandwidth",
    [
        -1.0,
        0,
        np.nan,
        np.inf,
        1e-151,
        [1.0, 0.0],
        [],
        [[1.0]],
        "1",
        None,
        True,
        1j,
        [1, [2]],
        [1, "a"],
    ],
)
def test_bandwidths_are_checked(kernel, bandwidth):
    with pytest.raises(InputError, match="positive finite number"):
        type(kernel)(**{"nu": 3.0} if isinstance(kernel, StudentT) else {}, bandwidth=bandwidth)


def test_a_bandwidth_per_row_has_its_place():
    with pytest.raises(
        InputError, match=r"one per feature \(1\), got 3 numbers; per-row .* lp.Keys"
    ):
        lp.log_mass([0.0], [0.0, 1.0, 2.0], Gaussian([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("number", [np.float32(2), np.int64(2), np.array(2), 2])
def test_numbers_of_any_type(number):
    assert Gaussian(number) == Gaussian(2.0)
    assert lp.masks.Window(2) == lp.masks.Window(2.0)
    if np.ndim(number) == 0 and not isinstance(number, np.ndarray):
        assert StudentT(number) == StudentT(2.0)
        assert lp.kernels.DotProduct(number) == lp.kernels.DotProduct(2.0)
