"""Data that looks harmless: values that only far keys have, and numbers of extreme size."""

import numpy as np
import pytest

import locpipe as lp

G = lp.kernels


def mean_and_size(q, x, v, kernel):
    """The reference, and the local mean of the values' sizes."""
    q, x, v = (rows.astype(np.float64) for rows in (q, x, v))
    right, size = (lp.local_mean(q, x, w, kernel, engine="dense") for w in (v, np.abs(v)))
    return right, size


@pytest.mark.parametrize("engine", ["fused", "spectral"])
@pytest.mark.parametrize("d", [1, 2])
def test_the_values_near_a_query_are_zeros(engine, d):
    """A few zeros among values of like size: where they are, the mean is that of far keys."""
    rng = np.random.default_rng(d)
    far = np.arange(400) >= 80
    x = (rng.normal(size=(400, d)) + np.where(far, 4, -4)[:, None] / d**0.5).astype(np.float32)
    v = np.where(far, 1 + rng.random(400), 0.0).astype(np.float32)
    kernels = [G.Gaussian(1.0)]
    if engine == "fused":
        kernels += [G.Epanechnikov(6.0), G.Triangular(6.0), G.Tricube(6.0)]
    for kernel in kernels:
        right, size = mean_and_size(x, x, v, kernel)
        reduction = lp.reductions.WeightedMean(1)
        run = {"engine": engine, "rtol": 1e-6}
        (found,) = lp.fold(reduction, x, lp.prepare(lp.Keys(x, v)), kernel, **run)
        assert (np.abs(found[:, 0] - right) <= 1e-6 * size).all()


@pytest.mark.parametrize("kernel", [G.Exponential(0.3), G.Logistic(0.3), G.Gaussian(1.0)], ids=repr)
def test_tiny_values_far_off(kernel):
    """Weights and values whose products float64 does not hold."""
    rng = np.random.default_rng(0)
    x, scale = rng.normal(size=(300, 1)), np.array([1e-300, 1.0, 1e-200])
    v = scale * rng.normal(size=(300, 3))
    q = np.array([[0.0], [28.0], [-45.0]])
    right, size = mean_and_size(q, x, v / scale, kernel)
    found = lp.local_mean(q, x, v, kernel, engine="fused") / scale
    assert (np.abs(found - right) <= 1e-10 * size).all()


def test_local_moments_of_tiny_values():
    rng = np.random.default_rng(1)
    x, v = rng.normal(size=(200, 2)), rng.normal(size=(200, 1))
    q = np.concatenate([x[:10], [[30.0, 0.0]]])
    moments, kernel = lp.reductions.LocalMoments(1, (0.3, 0.3), 1), G.Exponential(0.3)
    right = lp.fold(moments, q, lp.Keys(x, v), kernel, engine="dense")
    found = lp.fold(moments, q, lp.Keys(x, 1e-300 * v), kernel, engine="fused")
    unit = found.moments[:, :1] / right.moments[:, :1]
    np.testing.assert_allclose(found.moments, unit * right.moments, rtol=1e-8)
    ratio = found.value_moments / 1e-300 / unit[:, :, None]
    np.testing.assert_allclose(ratio, right.value_moments, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("h", [1e-150, 1e-100, 1e-30, 1e30, 1e100, 1e150])
def test_bandwidths_that_float32_does_not_hold(dtype, h):
    rng = np.random.default_rng(2)
    x, v = rng.normal(size=(50, 2)).astype(dtype), rng.normal(size=50).astype(dtype)
    for kernel in (G.Gaussian(h), G.Epanechnikov(h), G.Uniform(h)):
        for rows in (x, np.repeat(x[:1], 50, axis=0)):
            right, size = mean_and_size(rows, rows, v, kernel)
            found = lp.local_mean(rows, rows, v, kernel, engine="fused")
            assert (np.abs(found - right) <= 1e-6 * size).all()


def test_a_column_of_zeros_among_others():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 2)).astype(np.float32)
    v = np.stack([np.zeros(300), np.full(300, 3.5), rng.normal(size=300)], axis=1)
    found = lp.local_mean(x, x, v.astype(np.float32), G.Gaussian(0.5), engine="fused")
    assert (found[:, 0] == 0).all()
    np.testing.assert_allclose(found[:, 1], 3.5, rtol=1e-6)


def test_a_summary_belongs_to_its_kernel_and_reduction():
    """Prepared keys that are asked by turns answer as if asked for the first time."""
    rng = np.random.default_rng(4)
    x, v, q = rng.normal(size=(400, 2)), rng.normal(size=400), rng.normal(size=(20, 2))
    keys = lp.prepare(x, v, np.exp(rng.normal(size=400)))
    for _ in range(2):
        for engine in ("spectral", "pruned"):
            for kernel in (G.Gaussian(0.3), G.Gaussian(0.6), G.Normalized(G.Gaussian(0.3))):
                for rtol in (1e-4, 1e-10):
                    run = {"engine": engine, "rtol": rtol}
                    for f in (lp.local_mean, lp.log_mass):
                        right = f(q, keys, kernel=kernel, engine="dense")
                        found = f(q, keys, kernel=kernel, **run)
                        np.testing.assert_allclose(found, right, rtol=0, atol=10 * rtol)


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_approximate_neighbours_of_any_size_are_found_in_silence(scale, capfd):
    """Also few keys, and queries far beyond what float32 holds."""
    x = np.random.default_rng(5).normal(size=(300, 3)) * scale
    q = np.concatenate([x[:20], x[:2] * 1e6])
    right = lp.nearest(q, x, 3, engine="dense")[1]
    found = lp.nearest(q, x, 3, engine="approximate")[1]
    assert (found == right).mean() > 0.9
    for n in (1, 2, 5):
        np.testing.assert_array_equal(lp.nearest(q, x[:n], 1, engine="approximate")[1] < n, True)
    lp.nearest(np.full((1, 3), 1e149), x, 1, engine="approximate")
    assert capfd.readouterr() == ("", "")
