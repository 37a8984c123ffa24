"""The public functions with CuPy arrays: CuPy in, CuPy out, the numbers of NumPy."""

import numpy as np
import pytest

import locpipe as lp

pytestmark = pytest.mark.gpu


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3_000, 2)), rng.normal(size=(20_000, 2)), rng.normal(size=(20_000, 2))


@pytest.mark.parametrize("engine", ["auto", "dense", "fused"])
@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 2e-6), ("float64", 1e-9)])
def test_local_mean(cupy, data, engine, dtype, rtol):
    q, k, v = (array.astype(dtype) for array in data)
    kernel = lp.kernels.Gaussian(0.3)
    got = lp.local_mean(*map(cupy.asarray, (q, k, v)), kernel, engine=engine)
    assert isinstance(got, cupy.ndarray)
    assert got.dtype == q.dtype
    want, size = (lp.local_mean(*(a.astype(float) for a in (q, k, x)), kernel, engine="dense")
                  for x in (v, np.abs(v)))  # fmt: skip
    assert (np.abs(got.get() - want) <= rtol * size).all()


@pytest.mark.parametrize("engine", ["auto", "fused"])
def test_log_density_with_weights(cupy, data, engine):
    q, k, _ = data
    weight = np.random.default_rng(1).uniform(0, 2, len(k))
    kernel = lp.kernels.Epanechnikov(0.4)
    got = lp.log_density(
        cupy.asarray(q), cupy.asarray(k), kernel, sample_weight=cupy.asarray(weight), engine=engine
    )
    want = lp.log_density(q, k, kernel, sample_weight=weight, engine="dense")
    np.testing.assert_allclose(got.get(), want, rtol=1e-9)


def test_causal_attention(cupy):
    x = np.random.default_rng(2).normal(size=(2_000, 32))
    kernel = lp.kernels.DotProduct() * lp.masks.Causal()
    got = lp.local_mean(cupy.asarray(x), cupy.asarray(x), cupy.asarray(x), kernel, engine="fused")
    np.testing.assert_allclose(got.get(), lp.local_mean(x, x, x, kernel, engine="dense"), atol=1e-9)
