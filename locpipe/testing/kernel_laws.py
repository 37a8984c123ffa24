"""What every kernel must obey, as property tests to inherit."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.graph.operation import with_ranks
from locpipe.kernels.base import Kernel, KernelSpec, Ranking
from locpipe.metrics import METRICS, metric_of
from locpipe.reductions import TopK
from locpipe.testing.asserts import assert_log_close
from locpipe.testing.kinds import as_keys, as_queries, block_as_kind
from locpipe.testing.laws import Laws, law
from locpipe.testing.strategies import Case, random_chunks, row_attributes

__all__ = ["KernelLaws"]

_THREADED_QUERIES = 600


class KernelLaws(Laws):
    """Laws of a kernel.  Inherit in a test module; pytest does the rest.

    Attributes
    ----------
    kernel : Kernel
        The kernel under test.
    n_features : int
        Features of the random rows; default 2.
    fixed_sizes : (int, int), optional
        Numbers of queries and keys of a kernel whose weights belong to rows by their place, so
        that rows cannot be permuted or asked alone; default: any numbers.

    Notes
    -----
    Rows are standard normal; override ``make_queries(rng, n_rows)`` and ``make_keys(rng, n_rows)``,
    which give arrays (n_rows, n_features), for a kernel that needs others.  To do without one
    law, set it to None: ``test_key_order = None``.

    Examples
    --------
    >>> import locpipe as lp
    >>> class TestGaussian(KernelLaws):
    ...     kernel = lp.kernels.Gaussian(0.5)
    """

    kernel: ClassVar[Kernel]
    n_features: ClassVar[int] = 2

    def make_queries(self, rng: np.random.Generator, n_rows: int) -> np.ndarray:
        """Coordinates of random queries."""
        return rng.normal(size=(n_rows, self.n_features))

    def make_keys(self, rng: np.random.Generator, n_rows: int) -> np.ndarray:
        """Coordinates of random keys."""
        return rng.normal(size=(n_rows, self.n_features))

    def blocks(self, case: Case) -> tuple[QueryBlock, KeyBlock]:
        """Queries and keys of a case, with ids, times and values."""
        rng = case.rng()
        q, k = self.make_queries(rng, case.n_queries), self.make_keys(rng, case.n_keys)
        if case.ties and q.shape[1] == k.shape[1]:
            k[-1], q[0] = k[0], k[case.n_keys // 2]
        rows = [row_attributes(rng, n) for n in (case.n_queries, case.n_keys)]
        if case.bandwidths:
            for row in rows:
                row["bandwidth"] = rng.uniform(0.5, 2, len(row["ids"]))
        return QueryBlock(q, **rows[0]), KeyBlock(k, **rows[1])

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Any:
        """Log weights, after the first pass where the kernel needs one."""
        return self.kernel.log_weights(ranked(self.kernel, q, k), k)

    # What log weights are.

    @law(0.5)
    def test_values(self, case: Case) -> None:
        """Float64 (n_queries, n_keys), never NaN or +inf, never above the stated bound."""
        q, k = self.blocks(case)
        log_w = self.log_weights(q, k)
        assert log_w.shape == (case.n_queries, case.n_keys), f"shape {log_w.shape}"
        assert log_w.dtype == np.float64, f"dtype {log_w.dtype}, not float64"
        assert not np.isnan(log_w).any(), "a log weight is NaN"
        assert (log_w < np.inf).all(), "a log weight is +inf"
        bound = self.kernel.lower(self.n_features).log_bound
        plain = self.log_weights(replace(q, bandwidth=None), replace(k, bandwidth=None))
        assert (plain <= bound + 1e-12 * abs(bound)).all(), f"a log weight above {bound}"

    @law(0.5)
    def test_tile(self, case: Case) -> None:
        """A tile is a slice of the whole, wherever queries and keys are cut."""
        q, k = self.blocks(case)
        q, rng = ranked(self.kernel, q, k), case.rng()
        rows, columns = _cut(rng, case.n_queries), _cut(rng, case.n_keys)
        tile = self.kernel.log_weights(q.rows(rows), k.rows(columns))
        whole = self.kernel.log_weights(q, k)[rows, columns]
        np.testing.assert_allclose(tile, whole, rtol=1e-11, atol=1e-12)

    @law(0.25)
    def test_rows_are_independent(self, case: Case) -> None:
        """A query's weights do not depend on the other queries, nor a key's on the other keys."""
        q, k = self.blocks(case)
        q = ranked(self.kernel, q, k)
        other_q, other_k = self.blocks(replace(case, seed=case.seed + 1))
        whole = self.kernel.log_weights(q, k)
        mixed = self.kernel.log_weights(replace(q, data=_first(q.data, other_q.data)), k)
        np.testing.assert_allclose(mixed[:1], whole[:1], rtol=1e-11, atol=1e-12)
        mixed = self.kernel.log_weights(q, replace(k, data=_first(k.data, other_k.data)))
        np.testing.assert_allclose(mixed[:, :1], whole[:, :1], rtol=1e-11, atol=1e-12)

    @law(0.5)
    def test_key_order(self, case: Case) -> None:
        """Keys in another order, with all that they carry, have the same weights."""
        if self.fixed_sizes is not None:
            return
        # Which of two equal keys is the k-th goes by their order.
        ties = case.ties and self.kernel.ranking() is None
        q, k = self.blocks(replace(case, ties=ties))
        order = case.rng().permutation(case.n_keys)
        whole, moved = self.log_weights(q, k), self.log_weights(q, _reordered(k, order))
        np.testing.assert_allclose(moved, whole[:, order], rtol=1e-11, atol=1e-12)

    # What the kernel says of itself.

    @law(0.5)
    def test_support(self, case: Case) -> None:
        """No weight beyond the stated support, and some weight within it."""
        spec = self.kernel.lower(self.n_features)
        if spec.metric not in METRICS or spec.support == np.inf:
            return
        q, k = self.blocks(replace(case, bandwidths=False))
        log_w, u = self.log_weights(q, k), _distance(spec, q.data, k.data)
        assert (log_w[u > spec.support * (1 + 1e-9)] == -np.inf).all(), "weight beyond the support"
        assert (log_w[u < spec.support * (1 - 1e-9)] > -np.inf).all(), "none within the support"

    @law(0.25)
    def test_symmetry(self, case: Case) -> None:
        """A kernel that says it is symmetric is."""
        if not self.kernel.symmetric:
            return
        q, k = self.blocks(case)
        there, back = self.log_weights(q, k), self.log_weights(_as(QueryBlock, k), _as(KeyBlock, q))
        np.testing.assert_allclose(there, back.T, rtol=1e-11, atol=1e-12)

    @law(0.25)
    def test_missing(self, case: Case) -> None:
        """A kernel that allows missing coordinates gives no NaN for them."""
        if not self.kernel.allows_missing:
            return
        q, k = self.blocks(case)
        for block in (q, k):
            block.data[case.rng().random(block.data.shape) < 0.4] = np.nan
        assert not np.isnan(self.log_weights(q, k)).any(), "NaN in the rows gave a NaN log weight"

    def test_normaliser(self) -> None:
        """The stated normaliser makes the kernel integrate to 1."""
        spec = self.kernel.lower(self.n_features)
        if spec.log_normalizer is None or spec.metric != "euclidean":
            return
        total = _integral(self.kernel, spec, self.n_features) * math.exp(spec.log_normalizer)
        np.testing.assert_allclose(total, 1.0, rtol=1e-6)

    def test_value(self) -> None:
        """A frozen, hashable value that equals its copy and survives a process boundary."""
        kernel = self.kernel
        q, k = self.blocks(Case(0, *(self.fixed_sizes or (3, 4))))
        assert hash(kernel) == hash(copy(kernel))
        assert kernel == copy(kernel)
        for field in fields(kernel)[:1]:  # type: ignore[arg-type]
            with _frozen():
                setattr(kernel, field.name, None)
        again = pickle.loads(pickle.dumps(kernel))
        np.testing.assert_array_equal(
            again.log_weights(ranked(again, q, k), k), self.log_weights(q, k)
        )

    # What a run makes of it.

    @law(0.25)
    def test_strict_arrays(self, case: Case) -> None:
        """Nothing but the array API standard is used: array-api-strict gives the same."""
        if "strict" not in self.kinds:
            return
        q, k = self.blocks(case)
        strict_q, strict_k = block_as_kind(q, "strict"), block_as_kind(k, "strict")
        strict = self.log_weights(strict_q, strict_k)
        assert type(strict) is type(strict_q.data), f"array-api-strict came out as {type(strict)}"
        np.testing.assert_allclose(
            np.asarray(strict), self.log_weights(q, k), rtol=1e-11, atol=1e-12
        )

    @law(0.25)
    def test_a_constant_on_log_weights_shifts_the_log_mass(self, case: Case) -> None:
        """Log weights near +-700 and beyond neither overflow nor vanish."""
        q, k = self.blocks(case)
        queries, keys = as_queries(q), as_keys(k)
        plain = lp.log_mass(queries, keys, self.kernel)
        constant = case.rng().choice([-1e5, -700.0, 700.0, 1e5])
        moved = lp.log_mass(queries, keys, Shifted(self.kernel, float(constant)))
        assert_log_close(moved, plain + constant, 1e-11)

    @law(0.1)
    def test_sample_weights(self, case: Case) -> None:
        """A factor on all sample weights shifts the log mass by its log."""
        q, k = self.blocks(case)
        factor = float(np.exp(case.rng().uniform(-300, 300)))
        plain = lp.log_mass(as_queries(q), as_keys(k), self.kernel)
        weighted = lp.log_mass(
            as_queries(q), as_keys(k), self.kernel, sample_weight=np.full(case.n_keys, factor)
        )
        assert_log_close(weighted, plain + math.log(factor), 1e-11)

    @law(0.2)
    def test_float32_far_from_the_origin(self, case: Case) -> None:
        """Float32 rows at an offset of a million are as near to each other as at 0."""
        if self.kernel.lower(self.n_features).metric not in ("euclidean", "manhattan"):
            return
        q, k = self.blocks(case)
        # On this lattice float32 holds the moved rows exactly.
        near_q, near_k = np.round(16 * q.data) / 16, np.round(16 * k.data) / 16
        expected = lp.log_mass(
            as_queries(replace(q, data=near_q)), as_keys(replace(k, data=near_k)), self.kernel
        )
        far_q = replace(q, data=(near_q + 2.0**20 - 64).astype(np.float32))
        far_k = replace(k, data=(near_k + 2.0**20 - 64).astype(np.float32))
        actual = lp.log_mass(as_queries(far_q), as_keys(far_k), self.kernel)
        assert actual.dtype == np.float32
        assert_log_close(actual, expected, 1e-6)

    @law(0.06)
    def test_chunks_and_array_kinds(self, case: Case) -> None:
        """NumPy, array-api-strict and Dask in any chunks, some of them empty, give the same."""
        (q, k), rng = self.blocks(case), case.rng()
        k = replace(k, log_sample_weight=rng.normal(size=case.n_keys))
        expected = lp.log_mass(as_queries(q), as_keys(k), self.kernel)
        if "strict" in self.kinds:
            strict = lp.log_mass(as_queries(q, "strict"), as_keys(k, "strict"), self.kernel)
            assert_log_close(strict, expected, 1e-11)
        if "dask" not in self.kinds:
            return
        queries = as_queries(q, "dask", random_chunks(rng, case.n_queries))
        for keys in (as_keys(k), as_keys(k, "dask", random_chunks(rng, case.n_keys))):
            lazy = lp.log_mass(queries, keys, self.kernel)
            # Dask would broadcast a single row over empty chunks, so it is put into one.
            assert case.n_queries == 1 or lazy.chunks[0] == queries.data.chunks[0]
            assert_log_close(lazy.compute(scheduler="sync"), expected, 1e-11)

    @law(0.04)
    def test_threads(self, case: Case) -> None:
        """Two threads give the bits of one."""
        n_queries = case.n_queries if self.fixed_sizes else _THREADED_QUERIES
        q, k = self.blocks(replace(case, n_queries=n_queries))
        one, two = (
            lp.log_mass(as_queries(q), as_keys(k), self.kernel, n_threads=n) for n in (1, 2)
        )
        np.testing.assert_array_equal(one, two)

    @law(0.06)
    def test_one_query_at_a_time(self, case: Case) -> None:
        """Queries asked one by one get what they get together; no queries get nothing."""
        if self.fixed_sizes is not None:
            return
        q, k = self.blocks(case)
        together, keys = lp.log_mass(as_queries(q), as_keys(k), self.kernel), as_keys(k)
        for i in range(case.n_queries):
            alone = lp.log_mass(as_queries(q.rows(slice(i, i + 1))), keys, self.kernel)
            assert_log_close(alone, together[i : i + 1], 1e-11)
        assert lp.log_mass(as_queries(q.rows(slice(0, 0))), keys, self.kernel).shape == (0,)


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


def _cut(rng: np.random.Generator, n_rows: int) -> slice:
    a, b = np.sort(rng.integers(0, n_rows + 1, 2))
    return slice(int(a), int(b)) if a < b else slice(0, n_rows)


def _first(data: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The first row of `data` and the rest of `other`."""
    return np.concatenate([data[:1], other[1:]])


def _reordered(k: KeyBlock, order: np.ndarray) -> KeyBlock:
    arrays = {f.name: getattr(k, f.name) for f in fields(k) if f.name != "start"}
    return replace(k, **{name: a[order] for name, a in arrays.items() if a is not None})


def _as(kind: Any, block: Any) -> Any:
    """The rows of a block as a block of the other kind."""
    names = ("data", "bandwidth", "ids", "time", "values")
    return kind(**{name: getattr(block, name) for name in names})


def _distance(spec: KernelSpec, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Distances in bandwidths."""
    metric, h = metric_of(spec.metric, q.shape[1]), np.asarray(spec.scale)
    if not metric.scales:
        return np.asarray(metric.distance(metric.surrogate(q, k)) / h[0])
    return np.asarray(metric.distance(metric.surrogate(q / h, k / h)))


def _integral(kernel: Kernel, spec: KernelSpec, d: int) -> float:
    """``prod(h) S_d int K(u) u^(d - 1) du`` of a radial kernel."""
    from scipy.integrate import quad

    q, h = QueryBlock(np.zeros((1, d))), np.asarray(spec.scale)

    def ring(u: float) -> float:
        k = KeyBlock(np.r_[u, np.zeros(d - 1)][None, :] * h)
        return float(np.exp(kernel.log_weights(q, k)[0, 0])) * u ** (d - 1)

    sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)
    return float(quad(ring, 0, spec.support, limit=400)[0] * sphere * np.prod(h))


@contextmanager
def _frozen() -> Iterator[None]:
    try:
        yield
    except FrozenInstanceError:
        return
    raise AssertionError("the dataclass must be frozen: @dataclass(frozen=True)")
