"""Moments by their definition; `test_oracles_local_polynomials` has what they are for."""

import numpy as np
import pytest

import locpipe as lp
from locpipe.errors import InputError
from locpipe.graph import fold
from locpipe.reductions import ArgBest, LocalMoments
from locpipe.reductions.local_moments import exponents
from locpipe.testing import assert_close


def test_moments_equal_their_definition():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(4, 3)), rng.normal(size=(300, 3)), rng.normal(size=(300, 2))
    h = np.array([0.7, 1.0, 2.0])
    found = fold(LocalMoments(2, tuple(h), 2), q, lp.Keys(k, values=v), lp.kernels.Gaussian(h))
    u = (k[None] - q[:, None]) / h
    w = np.exp(-0.5 * (u**2).sum(2) - found.shift[:, None])
    for i, alpha in enumerate(exponents(3, 4)):
        np.testing.assert_allclose(
            found.moments[:, i], (w * (u**alpha).prod(2)).sum(1), rtol=1e-10, atol=1e-12
        )
    for i, alpha in enumerate(exponents(3, 2)):
        np.testing.assert_allclose(
            found.value_moments[:, i], (w * (u**alpha).prod(2)) @ v, rtol=1e-10, atol=1e-12
        )


def test_local_covariance():
    k = np.random.default_rng(1).normal(size=(50, 2))
    found = fold(LocalMoments(1, (1.0, 1.0)), np.zeros((1, 2)), k, lp.kernels.Uniform(1e3))
    s0, first = found.moments[0, 0], found.moments[0, 1:3] / found.moments[0, 0]
    xx, xy, yy = found.moments[0, 3:] / s0
    covariance = np.array([[xx, xy], [xy, yy]]) - np.outer(first, first)
    assert_close(covariance, np.cov(k.T, bias=True), 1e-12)


def test_best_key_and_ties():
    score, index = fold(ArgBest(), [[0.0], [9.0]], [[1.0], [-1.0], [8.0]], lp.kernels.Gaussian(1.0))
    np.testing.assert_array_equal(index, [0, 2])
    np.testing.assert_array_equal(score, [-0.5, -0.5])
    _, index = fold(ArgBest(), [[5.0]], [[0.0]], lp.kernels.Uniform(1.0))
    np.testing.assert_array_equal(index, [-1])


def test_sizes_are_bounded():
    with pytest.raises(
        InputError,
        match=r"more than 512; use Gather\(k, \.\.\.\) with gathered_moments or local_design",
    ):
        LocalMoments(2, (1.0,) * 10)
    with pytest.raises(InputError, match="order must be a whole number of at least 0, got -1"):
        LocalMoments(-1, (1.0,))
