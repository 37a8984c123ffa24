"""The way of spectral sums to a device and back, with stand-ins for CuPy and cuFINUFFT."""

import sys
import types
from dataclasses import replace

import numpy as np
import pytest

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines.base import Need, Spread
from locpipe.engines.cuda import SpectralCuda
from locpipe.engines.spectral import Spectral
from locpipe.kernels import Cauchy, Gaussian
from locpipe.reductions import LogMass, WeightedMean


class OnDevice(np.ndarray):
    """An array that only the stand-ins make."""


class DevicePlan:
    """Takes and gives arrays of the device alone, as cuFINUFFT does."""

    def __init__(self, kind, modes, *, eps, isign, dtype, upsampfac, gpu_stream):
        import finufft

        assert gpu_stream == 0
        assert upsampfac == 2.0
        options = {"isign": isign, "dtype": dtype, "upsampfac": upsampfac, "nthreads": 1}
        self.plan = finufft.Plan(kind, modes, eps=eps, **options)

    def setpts(self, *points):
        assert all(type(x) is OnDevice for x in points)
        self.plan.setpts(*map(np.asarray, points))

    def execute(self, data):
        assert type(data) is OnDevice
        return to_device(self.plan.execute(np.asarray(data)))


def to_device(array):
    return np.asarray(array).view(OnDevice)


@pytest.fixture(autouse=True)
def device(monkeypatch):
    stream = types.SimpleNamespace(ptr=0)
    cupy = types.ModuleType("cupy")
    cupy.ndarray, cupy.asarray, cupy.asnumpy = OnDevice, to_device, np.asarray
    cupy.ascontiguousarray = lambda array: to_device(np.ascontiguousarray(array))
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
    cufinufft = types.ModuleType("cufinufft")
    cufinufft.Plan = DevicePlan
    cufinufft.__spec__ = types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cufinufft", cufinufft)


def blocks(rng):
    x = rng.normal(size=(400, 2))
    q = QueryBlock(rng.normal(size=(300, 2)) * 2)
    return q, KeyBlock(x, values=x, log_sample_weight=rng.normal(size=400))


def need(reduction, kernel=None, library="cupy"):
    spread = Spread((-5.0, -5.0), (5.0, 5.0), (0.0, 0.0), (1.0, 1.0))
    kernel = kernel or Gaussian(0.5)
    return Need(kernel, reduction, 300, 400, 2, 2, 1e-6, library=library, spread=spread)


@pytest.mark.parametrize("reduction", [LogMass(), WeightedMean(2)], ids=repr)
def test_states_are_those_of_the_cpu(reduction):
    q, k = blocks(np.random.default_rng(2))
    parts = [k.rows(part) for part in (slice(0, 150), slice(150, 400))]
    on_cpu = Spectral.build(need(reduction, library="numpy"))
    engine = SpectralCuda.build(need(reduction))
    (state, doubtful), (got, unsure) = (
        e.evaluate(e.merge(*map(e.summarise, parts)), q) for e in (on_cpu, engine)
    )
    np.testing.assert_array_equal(unsure, doubtful)
    for a, b in zip(got, state, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12)


def test_rows_come_from_the_device():
    q, k = blocks(np.random.default_rng(3))
    engine = SpectralCuda.build(need(LogMass()))
    moved = replace(k, data=to_device(k.data), log_sample_weight=to_device(k.log_sample_weight))
    a, b = engine.summarise(k), engine.summarise(moved)
    assert type(b.modes) is np.ndarray
    np.testing.assert_array_equal(a.modes, b.modes)
    np.testing.assert_array_equal(engine.evaluate(a, q)[1], engine.evaluate(b, q)[1])


def test_what_is_not_served_says_why(monkeypatch):
    assert SpectralCuda.refusal(need(LogMass())) is None
    assert SpectralCuda.seconds(need(LogMass())) > 0
    assert SpectralCuda.build(need(LogMass())).tile_bytes(need(LogMass())) > 0
    assert "CuPy" in SpectralCuda.refusal(need(LogMass(), library="numpy"))
    assert "Gaussian" in SpectralCuda.refusal(need(LogMass(), Cauchy()))
    monkeypatch.delitem(sys.modules, "cufinufft")
    assert "cufinufft" in SpectralCuda.refusal(need(LogMass()))
