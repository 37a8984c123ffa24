"""What the laws of kernels are told with: a first pass, a shifted kernel, distances, integrals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from typing import Any

import numpy as np

from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.graph.operation import with_ranks
from locpipe.kernels.base import Kernel, KernelSpec, Ranking
from locpipe.metrics import metric_of
from locpipe.reductions import TopK

__all__ = [
    "Shifted",
    "as_block",
    "cut",
    "distances",
    "first_of",
    "frozen",
    "integral",
    "moved",
    "of_any_size",
    "on_a_ray",
    "on_lattice",
    "pair",
    "ranked",
    "reordered",
]


@dataclass(frozen=True)
class Shifted(Kernel):
    """`kernel` with a constant added to its log weights."""

    kernel: Kernel
    constant: float

    @property
    def allows_missing(self) -> bool:
        """As the kernel."""
        return self.kernel.allows_missing

    def ranking(self) -> Ranking | None:
        """As the kernel's: a constant changes no rank."""
        return self.kernel.ranking()

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Any:
        """Log weights plus the constant."""
        return self.kernel.log_weights(q, k) + self.constant

    def lower(self, n_features: int) -> KernelSpec:
        """The bound moves too."""
        return KernelSpec(log_bound=self.kernel.lower(n_features).log_bound + self.constant)


def ranked(kernel: Kernel, q: QueryBlock, k: KeyBlock) -> QueryBlock:
    """Queries that have been through the first pass over all keys, where the kernel needs one."""
    ranking = kernel.ranking()
    if ranking is None:
        return q
    best = TopK(ranking.k)
    return with_ranks(q, best.update(best.init(q), ranking.score.log_weights(q, k), q, k))


def cut(rng: np.random.Generator, n_rows: int) -> slice:
    """A random span of rows, never empty."""
    a, b = np.sort(rng.integers(0, n_rows + 1, 2))
    return slice(int(a), int(b)) if a < b else slice(0, n_rows)


def first_of(data: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The first row of `data` and the rest of `other`."""
    return np.concatenate([data[:1], other[1:]])


def reordered(k: KeyBlock, order: np.ndarray) -> KeyBlock:
    """The keys in another order, with all that they carry."""
    arrays = {f.name: getattr(k, f.name) for f in fields(k) if f.name != "start"}
    return replace(k, **{name: a[order] for name, a in arrays.items() if a is not None})


def as_block(kind: Any, block: Any) -> Any:
    """The rows of a block as a block of the other kind."""
    names = ("data", "bandwidth", "ids", "time", "values")
    return kind(**{name: getattr(block, name) for name in names})


def distances(spec: KernelSpec, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Distances in bandwidths."""
    metric, h = metric_of(spec.metric, q.shape[1]), np.asarray(spec.scale)
    if not metric.scales:
        return np.asarray(metric.distance(metric.surrogate(q, k)) / h[0])
    return np.asarray(metric.distance(metric.surrogate(q, k, h)))


def pair(q: QueryBlock, k: KeyBlock, wrong: np.ndarray) -> str:
    """The first pair that is marked, in words."""
    i, j = (int(n) for n in np.argwhere(wrong)[0])
    rows = [f"q = {q.data[i].tolist()}", f"k = {k.data[j].tolist()}"]
    given = (("query", q.bandwidth, i), ("key", k.bandwidth, j))
    rows += [f"bandwidth of the {n} {h[at]:.3g}" for n, h, at in given if h is not None]
    return f"query {i} and key {j} ({', '.join(rows)})"


def integral(kernel: Kernel, spec: KernelSpec, d: int) -> float:
    """``prod(h) S_d int K(u) u^(d - 1) du`` of a radial kernel."""
    from scipy.integrate import quad

    q, h = QueryBlock(np.zeros((1, d))), np.asarray(spec.scale)

    def ring(u: float) -> float:
        k = KeyBlock(np.r_[u, np.zeros(d - 1)][None, :] * h)
        return float(np.exp(kernel.log_weights(q, k)[0, 0])) * u ** (d - 1)

    sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)
    return float(quad(ring, 0, spec.support, limit=400)[0] * sphere * np.prod(h))


@contextmanager
def frozen() -> Iterator[None]:
    """Fail unless what is inside finds a frozen dataclass."""
    try:
        yield
    except FrozenInstanceError:
        return
    raise AssertionError("the dataclass must be frozen: @dataclass(frozen=True)")


def of_any_size(block: Any, rng: np.random.Generator) -> Any:
    """Rows of sizes from 1e-150 to 1e150, and bandwidths, where there are, 1e-140 to 1e140."""
    data = block.data * 10.0 ** rng.uniform(-150, 149, (block.n_rows, 1))
    if block.bandwidth is None:
        return replace(block, data=data)
    return replace(block, data=data, bandwidth=10.0 ** rng.uniform(-140, 140, block.n_rows))


def on_a_ray(q: QueryBlock, k: KeyBlock, rng: np.random.Generator) -> tuple[QueryBlock, KeyBlock]:
    """A query at 0, and keys of one bandwidth in one direction, ever farther."""
    sizes = np.sort(10.0 ** rng.uniform(-150, 149, k.n_rows))
    q, k = replace(q, data=np.zeros_like(q.data)), replace(k, data=k.data[:1] * sizes[:, None])
    return q, k if k.bandwidth is None else replace(k, bandwidth=np.full(k.n_rows, k.bandwidth[0]))


def on_lattice(q: QueryBlock, k: KeyBlock) -> tuple[QueryBlock, KeyBlock]:
    """Rows on a lattice that float32 holds exactly, also when they are moved by a million."""
    near_q, near_k = (np.round(16 * block.data) / 16 for block in (q, k))
    return replace(q, data=near_q), replace(k, data=near_k)


def moved(block: Any, by: float) -> Any:
    """The rows with a number added to all coordinates."""
    return replace(block, data=block.data + by)
