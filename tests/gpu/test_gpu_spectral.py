"""The engine `spectral` with cuFINUFFT, against pairs on the CPU."""

import numpy as np
import pytest

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.engines.base import Need, Spread
from locpipe.engines.cuda import SpectralCuda
from locpipe.kernels import Gaussian
from locpipe.reductions import LogMass, WeightedMean
from tests.engines.cuda_cases import Case, compare, sizes

pytestmark = pytest.mark.gpu


def blocks(d, n_keys):
    rng = np.random.default_rng(d)
    x = rng.normal(size=(n_keys, d))
    far = rng.normal(size=(100, d)) * 4
    return QueryBlock(np.concatenate([x[:900], far])), KeyBlock(x, values=x[:, :1])


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("reduction", [LogMass(), WeightedMean(1)], ids=repr)
def test_certain_rows_are_right(d, reduction, cupy, to_device):
    pytest.importorskip("cufinufft")
    q, k = blocks(d, 50_000)
    low, high = (tuple(map(float, f(k.data, axis=0))) for f in (np.min, np.max))
    spread = Spread(low, high, (0.0,) * d, (1.0,) * d)
    kernel, rtol = Gaussian(0.3), 1e-6
    need = Need(kernel, reduction, q.n_rows, k.n_rows, d, 1, rtol, library="cupy", spread=spread)
    engine = SpectralCuda.build(need)
    parts = [engine.summarise(to_device(k.rows(s))) for s in (slice(0, 9_000), slice(9_000, None))]
    state, doubtful = engine.evaluate(engine.merge(*parts), to_device(q))
    assert isinstance(doubtful, cupy.ndarray)
    certain = ~doubtful.get()
    assert certain.mean() > 0.5
    some = QueryBlock(q.data[certain])
    want = dense.fold(reduction, reduction.init(some), some, k, kernel)
    got = type(want)(*(a.get()[certain] for a in state))
    compare(got, want, rtol, lambda: sizes(Case(kernel, d), some, k))
