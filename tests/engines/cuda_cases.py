"""What the CUDA kernels are tried on, with the emulator here and on a device in tests/gpu."""

from dataclasses import dataclass, replace

import numpy as np

from locpipe import kernels, masks
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.engines import dense
from locpipe.kernels.normalized import Normalized
from locpipe.reductions import LogMass, WeightedMean

PROFILES = (
    *(
        kernels.Gaussian(0.5),
        kernels.Epanechnikov(0.9),
        kernels.Biweight(0.9),
        kernels.Triweight(0.9),
        kernels.Tricube(0.9),
    ),
    *(
        kernels.Triangular(0.9),
        kernels.Uniform(0.9),
        kernels.Cosine(0.9),
        kernels.Exponential(0.4),
        kernels.Logistic(0.3),
    ),
    *(kernels.StudentT(3.0, 0.5), kernels.Cauchy(0.5)),
)
TOLERANCE = {"float32": 1e-6, "float64": 1e-10}


@dataclass(frozen=True)
class Case:
    """One fold; data is made from the numbers."""

    kernel: object
    d: int = 2
    n_outputs: int = 1  # 0: LogMass
    dtype: str = "float32"
    n_queries: int = 60
    n_keys: int = 700
    spread: float = 1.0
    offset: float = 0.0
    far: float = 300.0  # the last queries lie so many units from all keys
    weights: float = 0.0  # log weights are spread over so many units
    rows: bool = False  # bandwidths ride in the rows

    @property
    def reduction(self):
        return WeightedMean(self.n_outputs) if self.n_outputs else LogMass()

    def blocks(self):
        rng = np.random.default_rng([self.d, self.n_keys])
        x = rng.normal(size=(self.n_queries, self.d)) * self.spread
        x[-2:] += np.asarray([[self.far], [-self.far / 10]]) * self.spread
        y = rng.normal(size=(self.n_keys, self.d)) * self.spread
        v = rng.normal(size=(self.n_keys, max(1, self.n_outputs)))
        log_w = self.weights * rng.uniform(-1, 1, self.n_keys)
        log_w[rng.integers(self.n_keys, size=3)] = -np.inf
        h, g = rng.uniform(0.5, 2, self.n_queries), rng.uniform(0.5, 2, self.n_keys)
        x, y, v = ((a + shift).astype(self.dtype) for a, shift in
                   ((x, self.offset), (y, self.offset), (v, 0.0)))  # fmt: skip
        k = KeyBlock(
            y,
            values=v if self.n_outputs else None,
            log_sample_weight=log_w if self.weights else None,
            bandwidth=g if self.rows else None,
        )
        return QueryBlock(x, bandwidth=h if self.rows else None), k


def _cases():
    g = kernels.Gaussian
    for kernel in PROFILES:
        name = type(kernel).__name__
        yield f"{name}-mean", Case(kernel)
        yield f"{name}-wide", Case(replace(kernel, bandwidth=5.0), d=12, n_outputs=2)
    yield "Gaussian-mass", Case(g(0.5), n_outputs=0)
    yield "Epanechnikov-mass", Case(kernels.Epanechnikov(0.9), n_outputs=0)
    for d in (1, 3, 4, 5, 7, 10):
        yield f"{d}-features", Case(g(0.4 * d**0.5), d=d, n_outputs=d if d < 4 else 1)
        yield f"{d}-features-double", Case(g(0.4 * d**0.5), d=d, dtype="float64")
    for n in (3, 4, 6, 8, 9):
        yield f"{n}-outputs", Case(g(0.5), n_outputs=n)
    yield "features-scaled", Case(g((0.3, 2.0, 0.7)), d=3)
    yield "features-scaled-uniform", Case(kernels.Uniform((0.6, 2.0, 0.7)), d=3)
    yield "features-scaled-wide", Case(g(tuple(1.0 + j for j in range(11))), d=11)
    for weights in (5.0, 300.0, 690.0):
        yield f"weights-{weights:g}", Case(g(0.5), weights=weights)
        yield f"weights-{weights:g}-mass", Case(Normalized(g(0.5)), n_outputs=0, weights=weights)
    for kernel in (g(0.5), kernels.Uniform(0.9), kernels.StudentT(2.0, 0.5)):
        name = type(kernel).__name__
        yield f"rows-{name}", Case(kernel, rows=True, weights=2.0)
        yield f"rows-{name}-mass", Case(Normalized(kernel), n_outputs=0, rows=True)
        wide = Case(Normalized(replace(kernel, bandwidth=5.0)), d=12, n_outputs=0, rows=True)
        yield f"rows-{name}-wide", wide
    yield "far-from-the-origin", Case(g(0.5), d=3, offset=1e4)
    yield "far-from-the-origin-double", Case(g(0.5), d=3, offset=1e6, dtype="float64")
    yield "far-from-the-origin-wide", Case(g(2.0), d=16, offset=1e6, dtype="float64")
    for h in (1e-30, 1e30, 1e-140, 1e140):
        yield f"units-{h:g}", Case(g(h), spread=h, dtype="float64")
    yield "units-small-float", Case(g(1e-12), spread=1e-12)
    yield "all-queries-far", Case(g(1e-3), n_queries=20)
    yield "a-thousand-bandwidths", Case(g(0.5), far=500.0)
    yield "one-query", Case(g(0.5), n_queries=2, n_keys=5000)
    yield "more-queries-than-a-block", Case(g(0.5), n_queries=600, n_keys=130)
    for nu in (1e-200, 1e-5, 1e8, 1e300):
        yield f"nu-{nu:g}", Case(kernels.StudentT(nu, 0.5), dtype="float64", n_outputs=0)
    yield "nu-1e-05-float", Case(kernels.StudentT(1e-5, 0.5))
    for d in (2, 12):
        yield f"dot-{d}", Case(kernels.DotProduct(), d=d, far=0.0)
        yield (
            f"dot-{d}-steep",
            Case(kernels.DotProduct(30.0), d=d, n_outputs=2, far=0.0, weights=9.0),
        )
        for mask in (masks.ExcludeSelf(), masks.Causal(5), masks.Window(7.5)):
            name = type(mask).__name__
            yield f"dot-{d}-{name}", Case(kernels.DotProduct() * mask, d=d, far=0.0)
            yield f"Gaussian-{d}-{name}", Case(g(float(d)) * mask, d=d)
    both = masks.Causal(3) * masks.Window(9) * masks.ExcludeSelf()
    yield "three-masks", Case(kernels.Gaussian(0.5) * both)


CASES = dict(_cases())


def check(engine, case, q=None, k=None, to=lambda block: block, rtol=None):
    """The engine keeps the tolerance against `dense` in float64, state by state."""
    given = case.blocks()
    q, k = q or given[0], k or given[1]
    reduction = case.reduction
    before = reduction.init(to(q))
    state = engine.fold(reduction, before, to(q), to(k), case.kernel)
    got = [np.asarray(a.get() if hasattr(a, "get") else a) for a in state]
    want = dense.fold(reduction, reduction.init(q), q, k, case.kernel)
    compare(type(want)(*got), want, rtol or engine.rtol, lambda: sizes(case, q, k))
    return state


def sizes(case, q, k):
    """Local mean of the values' sizes, by `dense`."""
    k = replace(k, values=np.abs(k.values))
    state = dense.fold(case.reduction, case.reduction.init(q), q, k, case.kernel)
    return state.moment / np.where(state.mass > 0, state.mass, 1.0)[:, None]


def compare(got, want, rtol, size):
    """By the measure of `rtol`: masses, log masses, and means by the local mean of sizes."""
    assert all(np.isfinite(a).all() for a in got[1:])
    some = want.mass > 0
    np.testing.assert_array_equal(got.mass > 0, some)
    np.testing.assert_array_equal(got.shift[~some], -np.inf)
    log_got, log_want = (s.shift[some] + np.log(s.mass[some]) for s in (got, want))
    # Adding a shift of some size to a log loses places that the states have.
    room = 4e-16 * (np.abs(got.shift[some]) + np.abs(want.shift[some]))
    assert (np.abs(log_got - log_want) <= rtol + room).all(), np.max(np.abs(log_got - log_want))
    if hasattr(want, "moment"):
        means = [s.moment[some] / s.mass[some][:, None] for s in (got, want)]
        error = np.abs(means[0] - means[1])
        assert (error <= rtol * size()[some]).all(), np.max(error / size()[some])
        return
    effective = [s.mass[some] ** 2 / s.mass_of_squares[some] for s in (got, want)]
    np.testing.assert_allclose(*effective, rtol=4 * rtol)
    np.testing.assert_allclose(got.key_weight, want.key_weight, rtol=1e-12)
