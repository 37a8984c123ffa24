"""Oracles are themselves checked against libraries where there is one."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_distances, haversine_distances, nan_euclidean_distances

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.kernels import Gaussian, Kernel, KernelSpec
from locpipe.reductions import LogMass, WeightedMean, WeightedVariance
from locpipe.testing.reference_kernels import PROFILES, distances_reference, kernel_reference
from locpipe.testing.reference_reductions import reduction_reference

RNG = np.random.default_rng(0)
Q, K = RNG.normal(size=(5, 2)), RNG.normal(size=(7, 2))
MISSING = np.where(RNG.random((7, 2)) < 0.3, np.nan, K)


@pytest.mark.parametrize(
    ("metric", "theirs", "keys"),
    [
        ("euclidean", cdist, K),
        ("manhattan", lambda q, k: cdist(q, k, "cityblock"), K),
        ("cosine", cosine_distances, K),
        ("haversine", haversine_distances, K),
        ("nan-euclidean", nan_euclidean_distances, MISSING),
    ],
)
def test_distances_equal_libraries(metric, theirs, keys):
    ours = distances_reference(metric, Q, keys)
    np.testing.assert_allclose(ours, np.nan_to_num(theirs(Q, keys), nan=np.inf), atol=1e-14)


def test_every_profile_has_its_oracle():
    plain = {type(k).__name__ for k in (getattr(lp.kernels, name)(1.0) for name in PROFILES)}
    assert plain == set(PROFILES)
    with np.errstate(divide="ignore"):
        zero = [float(np.exp(f(np.zeros(1), 1))[0]) for f in PROFILES.values()]
    assert sorted(zero) == [0.25] + [1.0] * 10


def test_reductions_equal_numpy():
    v = RNG.normal(size=(7, 2))
    q, k = QueryBlock(Q), KeyBlock(K, values=v)
    log_w = kernel_reference(Gaussian(0.7), q, k)
    mean, variance = reduction_reference(WeightedVariance(2), log_w, q, k)
    for i, w in enumerate(np.exp(log_w)):
        np.testing.assert_allclose(mean[i], np.average(v, axis=0, weights=w))
        cov = np.cov(v.T, aweights=w, ddof=0)
        np.testing.assert_allclose(variance[i], np.diag(cov))
    np.testing.assert_allclose(reduction_reference(WeightedMean(2), log_w, q, k)[0], mean)
    np.testing.assert_allclose(
        reduction_reference(LogMass(), log_w, q, k)[0], np.log(np.exp(log_w).sum(1))
    )


class Unknown(Kernel):
    def log_weights(self, q, k):
        raise NotImplementedError

    def lower(self, n_features):
        return KernelSpec()


def test_a_kernel_without_an_oracle_says_so():
    with pytest.raises(NotImplementedError, match="no reference for"):
        kernel_reference(Unknown(), QueryBlock(Q), KeyBlock(K))
