"""Oracles of theory sheet 1, sections 2.4 and 2.5, from moments alone; each names its line.

Streamed moments (`LocalMoments`) and moments of gathered keys (`Gather`) must both give them.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

import locpipe as lp
from locpipe.graph import fold
from locpipe.kernels import Epanechnikov, Gaussian, StudentT, Tricube
from locpipe.reductions import Gather, LocalMoments, gathered_moments
from locpipe.reductions.local_moments import exponents
from locpipe.testing import assert_close

X, Y, Q = np.array([[0.0], [1], [2], [4]]), np.array([1.0, 3, 2, 5]), np.array([[1.5]])


def streamed(q, x, y, kernel, order, scale):
    return fold(LocalMoments(order, scale, 1), q, lp.Keys(x, values=y), kernel)


def gathered(q, x, y, kernel, order, scale):
    found = fold(Gather(len(x), x.shape[1], 1), q, lp.Keys(x, values=y), kernel)
    return gathered_moments(found, q, order, scale)


ways = pytest.mark.parametrize("moments_of", [streamed, gathered])


def gram(moments, d, order):
    """Sums of products of monomials (n_queries, n_monomials, n_monomials), and with values."""
    alphas, place = exponents(d, order), {a: i for i, a in enumerate(exponents(d, 2 * order))}
    columns = [[moments.moments[:, place[tuple(np.add(a, b))]] for b in alphas] for a in alphas]
    return np.moveaxis(np.array(columns), 2, 0), moments.value_moments[..., 0]


def fit(moments_of, q, x, y, kernel, order, h=1.0, ridge=0.0):
    """Coefficients of the local polynomial in plain units (n_queries, n_monomials)."""
    d = x.shape[1]
    matrix, right = gram(moments_of(q, x, y, kernel, order, (h,) * d), d, order)
    powers = np.array([sum(a) for a in exponents(d, order)])
    penalty = np.diag((powers > 0) * ridge / h**2)
    return np.linalg.solve(matrix + penalty, right[..., None])[..., 0] / h**powers


# 2.4 Chk (a): local linear and quadratic values and the slope, T.
@ways
@pytest.mark.parametrize(
    ("kernel", "order", "h", "value"),
    [
        (Gaussian(1.0), 1, 1.0, 2.3869344579231),
        (Gaussian(1.0), 2, 1.0, 2.4130771656601),
        (Epanechnikov(3.0), 1, 3.0, 2.4710320239384),
        (Tricube(3.0), 1, 3.0, 2.3663627283907),
        (StudentT(3.0, 1.0), 1, 1.0, 2.4495607407386),
    ],
)
def test_2_4_a_values(moments_of, kernel, order, h, value):
    assert_close(fit(moments_of, Q, X, Y, kernel, order, h)[0, 0], value, 1e-11)


@ways
def test_2_4_a_slope(moments_of):
    assert_close(fit(moments_of, Q, X, Y, Gaussian(1.0), 1)[0, 1], 0.360351419562, 1e-11)


# 2.4 Chk (b): reproduces any polynomial of its degree exactly.
@ways
@given(st.integers(0, 2**32 - 1), st.integers(0, 2), st.sampled_from([1, 2, 3]))
def test_2_4_b_polynomials_come_out_exactly(moments_of, seed, order, d):
    rng = np.random.default_rng(seed)
    q, x = rng.normal(size=(4, d)), rng.normal(size=(80, d))
    terms = [(rng.normal(), a) for a in exponents(d, order)]
    value = [sum(c * (r ** np.array(a)).prod(1) for c, a in terms) for r in (q, x)]
    found = fit(moments_of, q, x, value[1], Gaussian(1.5), order, 1.5)[:, 0]
    np.testing.assert_allclose(found, value[0], rtol=1e-8, atol=1e-8)


# 2.4 Chk (c): weighted least squares, and Ridge on x - q with sample weights, intercept_.
@ways
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_2_4_c_equals_ridge_and_least_squares(moments_of, ridge):
    rng = np.random.default_rng(4)
    x, y, q = rng.normal(size=(50, 2)), rng.normal(size=50), rng.normal(size=(3, 2))
    ours = fit(moments_of, q, x, y, Gaussian(0.8), 1, 0.8, ridge)
    # Moments carry a shift (the largest weight is 1) and theirs do not; the ridge is absolute.
    for i, query in enumerate(q):
        w = np.exp(-0.5 * ((x - query) ** 2).sum(1) / 0.8**2)
        theirs = Ridge(alpha=ridge * w.max(), tol=1e-15, solver="cholesky")
        theirs.fit(x - query, y, sample_weight=w)
        assert_close(ours[i], np.r_[theirs.intercept_, theirs.coef_], 1e-9)
    root = np.sqrt(w)
    design = np.c_[np.ones(50), x - q[-1]]
    plain = np.linalg.lstsq(root[:, None] * design, root * y)[0]
    assert_close(fit(moments_of, q, x, y, Gaussian(0.8), 1, 0.8)[-1], plain, 1e-10)


# 2.4 Chk (d): a design symmetric around q (S1 = 0): local linear = local mean.
@ways
def test_2_4_d_symmetric_design(moments_of):
    x, y = np.array([[-2.0], [-1], [1], [2]]), np.array([3.0, 1, 4, 1])
    linear = fit(moments_of, np.zeros((1, 1)), x, y, Gaussian(1.0), 1)
    assert_close(linear[:, 0], lp.local_mean([0.0], x, y, Gaussian(1.0)), 1e-14)


def equivalent_kernel(moments, q, x, w, h=1.0):
    """2.5: l_i = w_i e_1^T M^-1 (1, u_i), from S0, S1, S2 of the first pass."""
    matrix, _ = gram(moments, 1, 1)
    u = (x[:, 0] - q[0, 0]) / h
    a, b = np.linalg.solve(matrix[0], [1.0, 0.0])
    return w * (a + b * u)


# 2.5 Chk (a): T Gaussian.
@ways
def test_2_5_a_equivalent_kernel(moments_of):
    moments = moments_of(Q, X, Y, Gaussian(1.0), 1, (1.0,))
    w = np.exp(-0.5 * (X[:, 0] - 1.5) ** 2 - moments.shift[0])
    weights = equivalent_kernel(moments, Q, X, w)
    expected = [0.0971236125339, 0.3770748931421, 0.490140435219, 0.035661059105]
    assert_close(weights, expected, 1e-11)
    # 2.5 Chk (c): L 1 = 1 and L x = x; and L y is the local linear value.
    assert_close(weights.sum(), 1.0, 1e-14)
    assert_close(weights @ X[:, 0], 1.5, 1e-13)
    assert_close(weights @ Y, 2.3869344579231, 1e-12)


# 2.5 Chk (b): boundary, Epanechnikov, design on [0, inf).
def boundary():
    """Gauss-Legendre nodes on [0, 1] as keys: their weighted sums are the integrals."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    u, mass = (nodes + 1) / 2, weights / 2
    keys = lp.Keys(u, values=u, sample_weight=mass)
    return u, mass, fold(LocalMoments(1, (1.0,), 1), [0.0], keys, Epanechnikov(1.0))


def test_2_5_b_boundary_moments():
    _, _, moments = boundary()
    constant = 3 / 4  # K integrates to 1 over [-1, 1]
    s0, s1, s2 = moments.moments[0] * np.exp(moments.shift[0]) * constant
    assert_close([s0, s1, s2], [1 / 2, 3 / 16, 1 / 10], 1e-13)
    assert_close(s0 * s2 - s1**2, 0.01484375, 1e-12)


def test_2_5_b_boundary_kernel():
    u, mass, moments = boundary()
    s0, s1, s2 = moments.moments[0] * np.exp(moments.shift[0]) * 3 / 4
    a, b = np.linalg.solve([[s0, s1], [s1, s2]], [1.0, 0.0])
    weights = (a + b * u) * 0.75 * (1 - u**2)
    assert_close(a * 0.75, 96 / 19, 1e-12)
    assert_close(-a / b, 8 / 15, 1e-12)
    assert_close(mass @ weights, 1.0, 1e-13)
    assert abs(mass @ (weights * u)) < 1e-13
    assert_close(mass @ weights**2, 4.49798179659676, 1e-12)
    assert_close(mass @ (weights * u**2), -0.11578947368421, 1e-11)


# 2.5 Chk (c): L x = x and L 1 = 1 in several dimensions.
@ways
@given(st.integers(0, 2**32 - 1))
def test_2_5_c_reproduction(moments_of, seed):
    rng = np.random.default_rng(seed)
    q, x = rng.normal(size=(3, 2)), rng.normal(size=(40, 2))
    one = fit(moments_of, q, x, np.ones(40), Gaussian(1.0), 1)
    np.testing.assert_allclose(one, np.tile([1.0, 0, 0], (3, 1)), atol=1e-9)
    first = fit(moments_of, q, x, x[:, 0], Gaussian(1.0), 1)
    np.testing.assert_allclose(first, np.c_[q[:, 0], np.tile([1.0, 0], (3, 1))], atol=1e-9)
