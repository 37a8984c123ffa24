"""Keys on the edge of a support: all engines see the same neighbours as the reference."""

import numpy as np
import pytest

import locpipe as lp

KERNELS = (lp.kernels.Uniform, lp.kernels.Epanechnikov, lp.kernels.Triangular)


@pytest.mark.parametrize("engine", ["dense", "fused", "pruned"])
def test_a_key_on_the_edge_is_a_neighbour_under_uniform_alone(engine):
    q, x = np.zeros((1, 2)), np.array([[3.0, 4.0], [0.3, 0.4], [-5.0, 0.0]])
    for scale in (1.0, 0.5, 1024.0):
        for kernel, mass in ((lp.kernels.Uniform, 3.0), (lp.kernels.Epanechnikov, 0.99)):
            found = lp.log_mass(scale * q, scale * x, kernel(scale * 5.0), engine=engine)
            np.testing.assert_allclose(np.exp(found), mass, rtol=1e-12)


@pytest.mark.parametrize("engine", ["fused", "pruned"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_grids_have_the_neighbours_of_the_reference(engine, kernel, dtype, d):
    rng = np.random.default_rng(d)
    x, q = (rng.integers(-6, 7, size=(n, d)).astype(dtype) for n in (400, 200))
    for h in (5.0, 3.0, 2**0.5):
        right = lp.log_mass(q.astype(np.float64), x, kernel(h), engine="dense")
        found = lp.log_mass(q, x, kernel(h), engine=engine).astype(np.float64)
        np.testing.assert_array_equal(np.isneginf(found), np.isneginf(right))
        np.testing.assert_allclose(np.exp(found), np.exp(right), rtol=2e-6)


def test_a_mass_of_tiny_weights_is_a_mass():
    """Weights of all sizes: what is nothing beside the largest is all that some queries have."""
    x, w = np.array([[0.0], [10.0], [20.0]]), np.array([1e-299, 1e140, 0.0])
    q = np.array([[0.1], [10.0], [20.0]])
    for kernel in KERNELS:
        right = lp.fold(
            lp.reductions.LogMass(), q, lp.Keys(x, sample_weight=w), kernel(1.0), engine="dense"
        )
        found = lp.fold(
            lp.reductions.LogMass(), q, lp.Keys(x, sample_weight=w), kernel(1.0), engine="fused"
        )
        for a, b in zip(found, right, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize(
    "kernel",
    [lp.kernels.StudentT(2.0, 1e-150), lp.kernels.StudentT(1e9), lp.kernels.Gaussian(1e120)],
)
def test_extremes_are_for_the_reference_or_right(kernel, d):
    x = np.random.default_rng(0).normal(size=(300, d))
    right = lp.log_mass(x, x, kernel, engine="dense")
    for engine in ("fused", "pruned", "auto"):
        try:
            found = lp.log_mass(x, x, kernel, engine=engine, rtol=1e-6)
        except lp.errors.InputError as refused:
            assert "these can: 'dense'" in str(refused)  # noqa: PT017
        else:
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-6)
