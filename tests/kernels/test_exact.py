"""Kernels that rank: duplicates tie to the bit, so the lowest index wins however rows are cut."""

import dask.array as da
import numpy as np
import pytest

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.graph.operation import Operation
from locpipe.kernels import Cauchy, DotProduct, Gaussian, Normalized, StudentT, Tricube
from locpipe.kernels.masks import ExcludeSelf
from locpipe.reductions import ArgBest, Gather, LogMass, TopK
from locpipe.testing import assert_close


def doubled(data):
    return 2.0 * data


KERNELS = [
    Gaussian(3.0),
    DotProduct(),
    Gaussian(9.0) * StudentT(3.0),
    Gaussian(6.0).on(doubled, doubled),
    Normalized(Gaussian(3.0)),
    Gaussian(3.0) * ExcludeSelf(),
]


def rows(d, n=700, copies=3):
    """Keys of which each stands three times, and the first index of each."""
    rng = np.random.default_rng(d)
    base = rng.normal(size=(n, d))
    order = rng.permutation(copies * n) % n
    first = np.argmax(order[None, :] == np.arange(n)[:, None], axis=1)
    return base[order], first[order]


def indices(reduction, q, x, kernel):
    return np.asarray(lp.fold(reduction, q, x, kernel)[1])


def name_of(kernel):
    return type(kernel).__name__


@pytest.mark.parametrize("d", [9, 64])
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_of_duplicates_the_lowest_index_wins(kernel, d):
    x, first = rows(d)
    q = x[:40] + 0.01
    lazy = da.from_array(x, chunks=(311, -1))
    ids = lp.Queries(q, ids=np.arange(10**6, 10**6 + 40))
    for reduction in (TopK(3), ArgBest(), Gather(3, d)):
        found = indices(reduction, ids, x, kernel)
        np.testing.assert_array_equal(found, indices(reduction, ids, lazy, kernel))
        lead = found if found.ndim == 1 else found[:, 0]
        np.testing.assert_array_equal(lead, first[lead])
        if found.ndim == 2:
            assert (np.diff(found) > 0).all()
            np.testing.assert_array_equal(first[found], np.repeat(lead[:, None], 3, 1))


@pytest.mark.parametrize("kernel", [Gaussian(3.0), DotProduct()], ids=str)
def test_rows_among_themselves(kernel):
    x, _ = rows(9, n=200)
    exact = indices(TopK(3), x, x.copy(), kernel)
    np.testing.assert_array_equal(indices(TopK(3), x, x, kernel), exact)
    lazy = da.from_array(x, chunks=(97, -1))
    np.testing.assert_array_equal(indices(TopK(3), lazy, lazy, kernel), exact)
    q, k = QueryBlock(x), KeyBlock(x)
    op = Operation(TopK(3), kernel)
    (one, two) = op.mutual(q.rows(slice(0, 300)), k.rows(slice(0, 300)), q, k)
    np.testing.assert_array_equal(op.finish(one)[1], exact[:300])
    np.testing.assert_array_equal(op.finish(two)[1], indices(TopK(3), x, x[:300].copy(), kernel))


@pytest.mark.parametrize(
    "kernel", [*KERNELS, Cauchy(), Gaussian(metric="nan-euclidean")], ids=name_of
)
def test_exact_kernels_say_and_weigh_the_same(kernel):
    x, h = np.random.default_rng(0).normal(size=(20, 12)), np.linspace(1, 2, 20)
    q, k, exact = QueryBlock(x, bandwidth=h), KeyBlock(x, bandwidth=h), kernel.exact()
    assert_close(exact.log_weights(q, k), kernel.log_weights(q, k), 1e-12)
    for name in ("allows_missing", "symmetric"):
        assert getattr(exact, name) == getattr(kernel, name)
    assert exact.lower(12) == kernel.lower(12)
    assert exact.nearness() == kernel.nearness()
    assert exact.exact() == exact
    ours, theirs = exact.log_row_normalizer(q, k), kernel.log_row_normalizer(q, k)
    np.testing.assert_array_equal(ours, theirs)
    assert exact.tile_arrays >= 1
    assert hash(exact) == hash(kernel.exact())


def test_what_is_exact_already_stays():
    assert Tricube().exact() == Tricube()


class Own(Gaussian):
    def log_weights(self, q, k):
        return super().log_weights(q, k) + 1


def test_log_weights_of_ones_own_stay():
    assert Own().exact() == Own()


@pytest.mark.parametrize("reduction", [LogMass(), ArgBest()], ids=str)
@pytest.mark.parametrize("scale", [1e20, 1e300])
def test_products_beyond_float64_are_refused(reduction, scale):
    message = r"scale times a dot product must be at most 1e\+305 in size, got more; take a smaller"
    with np.errstate(over="ignore"), pytest.raises(InputError, match=message):
        lp.fold(reduction, [1e149], [1e149, -1e149], DotProduct(scale))
    near = lp.local_mean([1e149], [1e149, -1e149], [1.0, 2.0], DotProduct(1e5))
    assert near.tolist() == [1.0]
