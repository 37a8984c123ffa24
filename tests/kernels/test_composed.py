"""What products, views and normalised kernels say of themselves, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.kernels import (
    DotProduct,
    Epanechnikov,
    Exponential,
    Gaussian,
    Kernel,
    KernelSpec,
    Nearest,
    Nearness,
    Normalized,
    Precomputed,
    Product,
)
from locpipe.kernels.masks import Causal, ExcludeSelf, Window
from locpipe.kernels.radial import InBandwidths
from locpipe.testing import assert_close

ONES = Precomputed(np.ones((5, 5)))
SYMMETRIC = {
    Gaussian(): True,
    Gaussian() * ExcludeSelf(): True,
    Gaussian() * Causal(): False,
    DotProduct(): True,
    ONES: False,
    Nearest(2): False,
    Nearness(): True,
    Gaussian(metric="cosine").on("values", "values"): True,
    Gaussian().on("values", "data"): False,
    Normalized(Gaussian()): True,
    Normalized(Nearest(1)): False,
    Window(2): False,
}
MISSING = {
    Gaussian(): False,
    Gaussian(metric="nan-euclidean"): True,
    Gaussian(metric="nan-euclidean") * ExcludeSelf(): True,
    Gaussian(metric="nan-euclidean") * Gaussian(): False,
    Gaussian().on("values", "values"): True,
    Gaussian().on("values", "data"): False,
    Gaussian(metric="nan-euclidean").on(): True,
    ONES: True,
    DotProduct(): False,
    Nearness("nan-euclidean"): True,
    Normalized(Gaussian()): False,
}


@pytest.mark.parametrize("kernel", SYMMETRIC)
def test_symmetry_is_derived(kernel):
    assert kernel.symmetric == SYMMETRIC[kernel]


@pytest.mark.parametrize("kernel", MISSING)
def test_missing_values_are_derived(kernel):
    assert kernel.allows_missing == MISSING[kernel]


@pytest.mark.parametrize("kernel", [k for k, yes in SYMMETRIC.items() if yes])
def test_symmetric_kernels_are_symmetric(kernel):
    rng = np.random.default_rng(0)
    x, v, h = rng.normal(size=(9, 3)), rng.normal(size=(9, 2)), rng.uniform(0.5, 2, 9)
    q, k = QueryBlock(x, values=v, bandwidth=h), KeyBlock(x, values=v, bandwidth=h)
    log_w = kernel.log_weights(q, k)
    np.testing.assert_allclose(log_w, log_w.T, rtol=1e-12, atol=1e-14)


NEARNESS = {
    Epanechnikov(): InBandwidths(Epanechnikov()),
    Epanechnikov() * Causal(): Product((InBandwidths(Epanechnikov()), Causal())),
    Epanechnikov().on("values", "values"): InBandwidths(Epanechnikov()).on("values", "values"),
    Nearest(1, "tricube") * ExcludeSelf(): Nearness() * ExcludeSelf(),
    DotProduct(): DotProduct(),
    ONES: None,
    ONES.on(): None,
    Causal() * Window(2): None,
    Causal() * ONES: None,
    Causal(): Causal(),
    Normalized(Gaussian()): InBandwidths(Gaussian()),
    Gaussian() * ONES: Product((InBandwidths(Gaussian()), ONES)),
}


@pytest.mark.parametrize("kernel", NEARNESS)
def test_nearness_is_derived(kernel):
    assert kernel.nearness() == NEARNESS[kernel]


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.booleans(), st.booleans())
def test_gaussians_multiply_with_bandwidths_of_rows(seed, d, queries, keys):
    rng = np.random.default_rng(seed)
    q = QueryBlock(rng.normal(size=(4, d)), bandwidth=rng.uniform(0.3, 3, 4) if queries else None)
    k = KeyBlock(rng.normal(size=(5, d)), bandwidth=rng.uniform(0.3, 3, 5) if keys else None)
    a, b = Gaussian(0.5), Gaussian(rng.uniform(0.5, 2, d))
    simplified, plain = a * b, Product((a, b))
    assert isinstance(simplified, Gaussian)
    assert_close(simplified.log_weights(q, k), plain.log_weights(q, k))


def test_only_euclidean_gaussians_are_simplified():
    q, k = QueryBlock(np.zeros((1, 2))), KeyBlock(np.array([[1.0, 2.0]]))
    for other in (Gaussian(2.0, metric="manhattan"), Exponential(2.0)):
        kernel = Gaussian(1.0, metric="manhattan") * other
        assert isinstance(kernel, Product)
        expected = Gaussian(1.0, metric="manhattan").log_weights(q, k) + other.log_weights(q, k)
        assert_close(kernel.log_weights(q, k), expected)


def test_products_know_their_metric():
    assert (Gaussian() * Causal()).lower(2).metric == "euclidean"
    assert (Gaussian() * Exponential(metric="manhattan")).lower(2).metric == "mixed"
    assert (Causal() * ONES).lower(2).metric == "none"
    with pytest.raises(InputError, match="as many features, got 3 and 2"):
        lp.log_mass(np.zeros((1, 3)), np.zeros((4, 2)), Gaussian() * Causal())


@pytest.mark.parametrize("other", [2.0, np.ones(3), None, "gaussian"])
def test_kernels_multiply_kernels_only(other):
    with pytest.raises(InputError, match="a kernel can be multiplied by another kernel only, got"):
        Gaussian() * other


def test_gaussians_of_other_numbers_of_features():
    with pytest.raises(InputError, match="bandwidths of as many features, got 2 and 3"):
        Gaussian([1.0, 2.0]) * Gaussian([1.0, 2.0, 3.0])


def first_two(x):
    return x[:, :2]


def test_views_have_columns_of_their_own():
    x = np.random.default_rng(0).normal(size=(5, 3))
    kernel = Gaussian([0.5, 2.0]).on(first_two, first_two)
    expected = lp.log_mass(x[:, :2], x[:, :2], Gaussian([0.5, 2.0]))
    assert_close(lp.log_mass(x, x, kernel), expected)
    with pytest.raises(InputError, match=r"views .* must have as many columns, got 2 and 3"):
        lp.log_mass(x, x, Gaussian().on(query=first_two))


def test_a_view_of_the_time_is_the_row_index_by_default():
    x = np.zeros((3, 1))
    log_w = Exponential(2.0).on("time", "ids").log_weights(QueryBlock(x, start=4), KeyBlock(x))
    assert_close(log_w[0], [-2.0, -1.5, -1.0])


@pytest.mark.parametrize("view", ["weight", "start", "best_score", 3, None])
def test_views_are_checked(view):
    with pytest.raises(InputError, match="must be a function of the data or name what the rows"):
        Gaussian().on(query=view)
    with pytest.raises(InputError, match=r"key must be .*'data', 'ids', 'time', 'values'\], got"):
        Gaussian().on(key=view)


def test_views_need_what_they_look_at():
    with pytest.raises(
        InputError, match=r"looks at the values of the queries.*lp.Queries\(data, v"
    ):
        lp.log_mass([0.0], lp.Keys([0.0], values=[1.0]), Gaussian().on("values", "values"))


class Plain(Kernel):
    def log_weights(self, q, k):
        return np.zeros((q.n_rows, k.n_rows))

    def lower(self, n_features):
        return KernelSpec()


def test_a_plain_kernel_is_asked_nothing_more():
    kernel = Plain()
    assert not kernel.symmetric
    assert not kernel.allows_missing
    assert kernel.ranking() is None
    assert kernel.nearness() is None
    assert kernel.pair_sources() == ()
    assert kernel.log_row_normalizer(None, None) is None
