"""User reports on numbers that naive sums lose: K01, K03, K10, R01b, A01, A04 and their kind."""

import numpy as np
import pytest
from report_cuts import every_cut, results

import locpipe as lp
from locpipe.testing import assert_close

RADIAL_TAILS = {
    "gaussian": lp.kernels.Gaussian(0.1),
    "laplace": lp.kernels.Exponential(0.01),
    "student t": lp.kernels.StudentT(3.0, 0.1),
}


@every_cut
@pytest.mark.parametrize(
    ("x", "h", "q", "expected"),
    [
        ([0.0, 1.0], 1.0, 100.0, -4902.112085713765),
        ([0.0, 0.001, 1.0], 1e-4, 0.0, 7.1927895501034005),
        ([0.0], 0.01, 0.0, 3.6862316527834182),
    ],
    ids=["K01 far", "K03 small bandwidth", "K10 above zero"],
)
def test_k01_k03_k10_log_densities_where_naive_sums_fail(cut, x, h, q, expected):
    found = results(lp.log_density(cut([q]), cut(x), lp.kernels.Gaussian(h)))
    assert_close(found, [expected], rtol=1e-14)


@every_cut
def test_k01_log_densities_fall_without_end(cut):
    q = np.array([1e2, 1e4, 1e6, 1e8])
    found = results(lp.log_density(cut(q), cut([0.0, 1.0]), lp.kernels.Gaussian(1.0)))
    # The nearer of two keys is all that counts this far out.
    right = -0.5 * (q - 1) ** 2 - 0.5 * np.log(2 * np.pi) - np.log(2)
    assert_close(found, right, rtol=1e-14)


def test_k03_small_bandwidths_of_other_kernels():
    x = [0.0, 0.001, 1.0]
    for kernel, at_0 in ((lp.kernels.Epanechnikov, 0.75), (lp.kernels.Uniform, 0.5)):
        found = lp.log_density([0.0], x, kernel(1e-4))
        assert_close(found, [np.log(at_0 / 3 / 1e-4)], rtol=1e-14)


def test_k10_densities_above_one_are_not_clipped():
    for h in (1e-2, 1e-8, 1e-100):
        found = lp.log_density([0.0], [0.0], lp.kernels.Gaussian(h))
        assert_close(found, [-0.5 * np.log(2 * np.pi) - np.log(h)], rtol=1e-14)


@every_cut
def test_r01b_weights_that_all_underflow_leave_the_nearest_key(cut):
    kernel = lp.kernels.Gaussian(0.1)
    mean = results(lp.local_mean(cut([30.0]), cut([0.0, 1.0]), cut([10.0, 20.0]), kernel))
    assert_close(mean, [20.0], rtol=1e-15)


@every_cut
@pytest.mark.parametrize("kernel", RADIAL_TAILS.values(), ids=RADIAL_TAILS)
@pytest.mark.parametrize("q", [30.0, -3e4, 1e7])
def test_r01b_every_unbounded_kernel_answers_off_the_data(cut, kernel, q):
    mean = results(lp.local_mean(cut([q]), cut([0.0, 1.0]), cut([10.0, 20.0]), kernel))
    assert 10.0 <= mean[0] <= 20.0
    distance = np.array([abs(q), abs(q - 1)])
    if isinstance(kernel, lp.kernels.StudentT):  # it forgets which is nearer
        assert_close(mean, [15.0], rtol=0.05)
    else:
        assert_close(mean, [[10.0, 20.0][np.argmin(distance)]], rtol=1e-12)


@every_cut
def test_a01_a_fully_masked_row_is_what_empty_says_and_is_alone(cut):
    mask = np.array([[1.0, 1.0], [0.0, 0.0]])
    kernel = lp.kernels.DotProduct(1 / np.sqrt(2)) * lp.kernels.Precomputed(mask)
    rows = np.eye(2)
    for empty, second in (("zero", 0.0), ("nan", np.nan)):
        mean = results(
            lp.local_mean(cut(rows), cut(rows), cut([[10.0], [20.0]]), kernel, empty=empty)
        )
        np.testing.assert_allclose(mean, [[13.30238451], [second]], rtol=1e-9)


@every_cut
def test_a01_a_mask_of_ids_and_of_time(cut):
    x = np.array([[0.0], [1.0]])
    for mask in (lp.masks.ExcludeSelf(), lp.masks.Causal(offset=-1)):
        kernel = lp.kernels.DotProduct() * mask
        mean = results(lp.local_mean(cut(x[:1]), cut(x[:1]), cut([7.0]), kernel))
        assert np.isnan(mean).all()


@every_cut
@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_a04_large_logits_do_not_overflow(cut, size):
    # The gap between the logits is 1 whatever their size.
    k = cut([[1.0], [1.0 - 1.0 / size]])
    mean = results(lp.local_mean(cut([[size]]), k, cut([10.0, 20.0]), lp.kernels.DotProduct(1.0)))
    assert_close(mean, [12.689414213699951], rtol=1e-13 if size == 1e3 else 1e-3)
