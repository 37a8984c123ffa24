"""Messages of kernels are one short line, whatever came."""

import numpy as np
import pytest

import locpipe as lp
from locpipe.errors import InputError
from locpipe.kernels import DotProduct, Gaussian, Nearest, Nearness, Precomputed, StudentT
from locpipe.kernels.masks import Causal, Window
from locpipe.kernels.names import radial_by_name

LARGE = np.arange(5000.0).reshape(50, 100)


@pytest.mark.parametrize("what", [LARGE, LARGE.tolist(), "long " * 99, "two\nlines"], ids=range(4))
@pytest.mark.parametrize(
    "call",
    [
        Gaussian,
        Causal,
        Window,
        DotProduct,
        StudentT,
        Nearest,
        lambda what: Nearest(3, what),
        Nearness,
        lambda what: Gaussian(metric=what),
        radial_by_name,
        lambda what: Gaussian().on(what),
        lambda what: Gaussian() * what,
        lambda what: lp.abramson_bandwidths([1.0], Gaussian(), clip=what),
        lambda what: lp.neighbour_bandwidths([1.0, 2.0], 1, floor=what),
    ],
)
def test_messages_are_short(call, what):
    with pytest.raises(InputError) as caught:
        call(what)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 350


def test_kernels_over_matrices_print_their_shape():
    kernel = Precomputed(LARGE)
    assert repr(kernel) == "Precomputed(pairs of shape (50, 100))"
    with pytest.raises(InputError, match=r"normaliser, got Product\(.*shape \(50, 100\)\), Causal"):
        lp.log_density([1.0], [1.0], kernel * Causal())


@pytest.mark.parametrize("bandwidth", [1e-160, 1e160, 0.0, -1.0, np.inf, [1.0, 1e-151]])
def test_bandwidths_have_a_range(bandwidth):
    message = "must be a positive finite number between 1e-150 and 1e150, or one per feature, got"
    with pytest.raises(InputError, match=message):
        Gaussian(bandwidth)


@pytest.mark.parametrize("other", [2.0, 2, np.float64(2.0), None, "gaussian", np.ones(3)])
def test_numbers_from_the_left_are_refused_too(other):
    message = "multiplied by another kernel only, got .*; constants cancel in a mean, and weights"
    with pytest.raises(InputError, match=message):
        other * Gaussian()


class Sharper(Gaussian):
    def log_profile(self, u2, n_features):
        return -u2 * u2


def test_a_subclass_keeps_its_profile_in_a_product():
    for product in (Sharper() * Gaussian(), Gaussian() * Sharper()):
        assert not isinstance(product, Gaussian)
        assert lp.log_mass([2.0], [0.0], product).tolist() == [-16.0 - 2.0]
