"""User reports on sample weights and bandwidths of rows: K07, K08, K13 and their kind."""

import dask.array as da
import numpy as np
import pytest
from report_cuts import every_cut, results

import locpipe as lp
from locpipe.errors import InputError
from locpipe.testing import assert_close

X = np.array([0.0, 1.0, 4.0])
Y = np.array([1.0, 3.0, 10.0])
KERNELS = {
    "gaussian": lp.kernels.Gaussian(1.0),
    "epanechnikov": lp.kernels.Epanechnikov(5.0),
    "laplace": lp.kernels.Exponential(1.0),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@every_cut
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32", "float64", "bool"])
def test_k07_weights_repeat_rows_and_stay_untouched(cut, dtype):
    w = np.array([1, 2, 5]).astype(dtype)
    before = w.copy()
    kernel = lp.kernels.Gaussian(1.0)
    weighted = results(lp.log_density([0.5], cut(X), kernel, sample_weight=cut(w)))
    repeated = lp.log_density([0.5], np.repeat(X, w.astype(int)), kernel)
    if dtype != "bool":
        assert_close(weighted, [-2.02064504], rtol=1e-8)
    assert_close(weighted, repeated, rtol=1e-14)
    np.testing.assert_array_equal(w, before)
    assert w.dtype == np.dtype(dtype)


@every_cut
@every_kernel
def test_k07_repeated_rows_in_every_result(cut, kernel):
    w, q = np.array([1, 2, 5]), np.array([0.5, 2.0])
    x, y = np.repeat(X, w), np.repeat(Y, w)
    mean = results(lp.local_mean(q, cut(X), cut(Y), kernel, sample_weight=cut(w)))
    assert_close(mean, lp.local_mean(q, x, y, kernel), rtol=1e-13)
    log_mass = results(lp.log_mass(q, cut(X), kernel, sample_weight=cut(w)))
    np.testing.assert_allclose(log_mass, lp.log_mass(q, x, kernel), rtol=1e-13, atol=1e-13)


@every_cut
@every_kernel
def test_k08_a_weight_of_zero_is_a_dropped_row(cut, kernel):
    q, w = np.array([0.3, 2.0]), np.array([1, 0, 1])
    kept = w > 0
    for function, given, right in (
        (lp.log_density, (cut(X),), (X[kept],)),
        (lp.log_mass, (cut(X),), (X[kept],)),
        (lp.local_mean, (cut(X), cut(Y)), (X[kept], Y[kept])),
    ):
        found = results(function(q, *given, kernel=kernel, sample_weight=cut(w)))
        np.testing.assert_allclose(found, function(q, *right, kernel=kernel), rtol=1e-14)


@every_cut
def test_k08_a_weight_of_zero_takes_a_row_out_of_the_nearest(cut):
    keys = lp.Keys(cut(X), values=cut(Y), sample_weight=cut(np.array([0.0, 1.0, 2.0])))
    mean = results(lp.local_mean([0.0], keys, kernel=lp.kernels.Nearest(1)))
    assert_close(mean, [3.0])


BAD = {
    "negative": ([1, -1, 1], r"non-negative, got -1.0 in row 1; 0 takes a row out$"),
    "missing": ([1, np.nan, 1], "finite, got nan in row 1; drop or impute that row$"),
    "infinite": ([1, 1, np.inf], "finite, got inf in row 2; drop or impute that row$"),
}


@every_cut
@pytest.mark.parametrize(("w", "message"), BAD.values(), ids=BAD)
def test_k08_other_weights_are_refused_with_their_row(cut, w, message):
    for function in (lp.log_density, lp.log_mass):
        with pytest.raises(InputError, match=f"^sample_weight of the keys must be {message}"):
            results(function([0.3], cut(X), lp.kernels.Gaussian(1.0), sample_weight=cut(w)))


@every_cut
def test_k08_weights_that_are_all_zero_are_refused(cut):
    with pytest.raises(InputError, match="at least one positive entry, got all zeros"):
        results(
            lp.log_density([0.3], cut(X), lp.kernels.Gaussian(1.0), sample_weight=cut(np.zeros(3)))
        )


@pytest.mark.parametrize(
    ("w", "message"),
    [
        (2.0, "must be 1-d, got 0 dimensions"),
        ([[1.0], [1.0], [1.0]], "must be 1-d, got 2 dimensions"),
        ([1.0, 1.0], r"one row per row of the keys \(3\), got 2"),
        (["1", "1", "1"], "sample_weight of the keys must be numbers, got dtype <U1"),
        ([[1.0], [1.0, 2.0]], "rows of equal length"),
    ],
)
def test_k08_weights_of_another_form_are_refused(w, message):
    with pytest.raises(InputError, match=message):
        lp.log_mass([0.3], X, lp.kernels.Gaussian(1.0), sample_weight=w)


@every_cut
def test_k13_bandwidths_per_key_are_taken_as_they_are(cut):
    keys = lp.Keys(cut(np.array([0.0, 4.0])), bandwidth=cut(np.array([0.5, 2.0])))
    density = np.exp(results(lp.log_density([0.0], keys, lp.kernels.Gaussian())))
    assert_close(density, [0.41244002202972974], rtol=1e-14)


@every_cut
@every_kernel
def test_k13_bandwidths_per_query_are_taken_as_they_are(cut, kernel):
    h, q = np.array([0.5, 2.0]), np.array([0.2, 3.0])
    found = results(lp.log_density(lp.Queries(cut(q), bandwidth=cut(h)), X, kernel))
    for i in range(2):
        alone = type(kernel)(kernel.bandwidth * h[i])
        assert_close(found[i], lp.log_density(q[i : i + 1], X, alone)[0], rtol=1e-13)


@every_cut
@pytest.mark.parametrize("h", [[0.0, 1.0, 1.0], [-1.0, 1.0, 1.0]])
def test_k13_bandwidths_that_are_not_positive_are_refused_with_their_row(cut, h):
    keys = lp.Keys(cut(X), bandwidth=cut(h))
    with pytest.raises(InputError, match=f"bandwidth of the keys must be positive, got {h[0]} in "):
        results(lp.log_mass([0.0], keys, lp.kernels.Gaussian()))


def test_weights_in_memory_beside_lazy_keys_and_the_other_way_round():
    w, kernel = np.array([1.0, 0.0, 3.0]), lp.kernels.Gaussian(1.0)
    expected = lp.log_density([0.3], X, kernel, sample_weight=w)
    lazy_x, lazy_w = da.from_array(X, chunks=2), da.from_array(w, chunks=1)
    for x, weight in ((lazy_x, w), (X, lazy_w), (lazy_x, lazy_w)):
        found = results(lp.log_density([0.3], x, kernel, sample_weight=weight))
        assert_close(found, expected, rtol=1e-14)
