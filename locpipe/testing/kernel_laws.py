"""What every kernel must obey, as property tests to inherit."""

from __future__ import annotations

import math
import pickle
from dataclasses import fields, replace
from typing import Any, ClassVar

import numpy as np

import locpipe as lp
from locpipe.blocks import KeyBlock, QueryBlock
from locpipe.kernels.base import Kernel
from locpipe.metrics import METRICS
from locpipe.testing.asserts import assert_log_close
from locpipe.testing.kernel_tools import (
    Shifted,
    as_block,
    cut,
    distances,
    first_of,
    frozen,
    integral,
    moved,
    of_any_size,
    on_a_ray,
    on_lattice,
    pair,
    ranked,
    reordered,
)
from locpipe.testing.kinds import as_keys, as_queries, block_as_kind
from locpipe.testing.laws import (
    Laws,
    assert_equal,
    assert_value,
    law,
    peak_bytes,
    strict_arrays,
)
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
    law, set it to None: ``test_key_order = None``.  No law can see a wrong formula: compare with
    a plain loop as well.

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

    @classmethod
    def least_keys(cls) -> int:
        """As many keys as a kernel ranks."""
        ranking = cls.kernel.ranking() if hasattr(cls, "kernel") else None
        return 1 if ranking is None else ranking.k

    def shown(self, case: Case) -> dict[str, Any]:
        """The rows of a case and their log weights."""
        q, k = self.blocks(case)
        given = {"q.data": q.data, "k.data": k.data}
        given |= {"q.bandwidth": q.bandwidth, "k.bandwidth": k.bandwidth}
        return given | {"log weights": self.log_weights(q, k)}

    # What log weights are.

    @law(0.25)
    def test_values(self, case: Case) -> None:
        """Float64 (n_queries, n_keys), never NaN or +inf, never above the stated bound."""
        q, k = self.blocks(case)
        log_w = self.log_weights(q, k)
        shape = (case.n_queries, case.n_keys)
        assert log_w.shape == shape, f"log weights have shape {log_w.shape}, not {shape}"
        assert log_w.dtype == np.float64, f"log weights are {log_w.dtype}, not float64"
        self.check_numbers(q, k, log_w)
        bound = self.kernel.lower(self.n_features).log_bound
        q, k = replace(q, bandwidth=None), replace(k, bandwidth=None)
        plain = self.log_weights(q, k)
        above = plain > bound + 1e-12 * abs(bound)
        assert not above.any(), (
            f"the log weight of {pair(q, k, above)} is {plain[above][0]}, above log_bound={bound}"
        )

    def check_numbers(self, q: QueryBlock, k: KeyBlock, log_w: Any) -> None:
        """Neither NaN nor +inf."""
        bad = ~(log_w < np.inf)
        assert not bad.any(), (
            f"the log weight of {pair(q, k, bad)} is {log_w[bad][0]}, which is no log weight"
        )

    @law(0.25)
    def test_rows_of_any_size(self, case: Case) -> None:
        """Never NaN or +inf, with coordinates from 1e-150 to 1e150, bandwidths 1e-140 to 1e140."""
        (q, k), rng = self.blocks(case), case.rng()
        q, k = (of_any_size(block, rng) for block in (q, k))
        with np.errstate(all="ignore"):
            self.check_numbers(q, k, self.log_weights(q, k))

    @law(0.25)
    def test_far_queries(self, case: Case) -> None:
        """Far beyond where exp underflows log weights are finite, unless the support ends."""
        spec = self.kernel.lower(self.n_features)
        if spec.support < np.inf or self.kernel.ranking() is not None:
            return
        (q, k), rng = self.blocks(replace(case, bandwidths=False)), case.rng()
        far = replace(q, data=q.data * 10.0 ** rng.uniform(1, 6))
        with np.errstate(all="ignore"):
            lost = (self.log_weights(q, k) > -np.inf) & (self.log_weights(far, k) == -np.inf)
        assert not lost.any(), (
            f"the log weight of {pair(far, k, lost)} is -inf, as if the support ended: form logs "
            "directly, not as log(weight); or state support= in the spec, or set "
            "test_far_queries = None where weights end at no one distance"
        )

    @law(0.15)
    def test_farther_weighs_no_more(self, case: Case) -> None:
        """Along a ray log weights never rise, for a kernel that states a metric and scales."""
        spec = self.kernel.lower(self.n_features)
        scales = spec.metric in METRICS and METRICS[spec.metric].scales
        if not (scales and spec.scale) or self.kernel.ranking() is not None:
            return
        q, k = on_a_ray(*self.blocks(replace(case, n_queries=1)), case.rng())
        with np.errstate(all="ignore"):
            log_w = self.log_weights(q, k)
            rises = log_w[:, 1:] > log_w[:, :-1] + 1e-12 * np.abs(log_w[:, :-1])
        rises = np.concatenate([np.zeros((1, 1), bool), rises], axis=1)
        assert not rises.any(), (
            f"{pair(q, k, rises)} has the log weight {log_w[rises][0]}, more than the key before "
            "it on the same ray; set test_farther_weighs_no_more = None if that is meant"
        )

    @law(0.25)
    def test_tile(self, case: Case) -> None:
        """A tile is a slice of the whole, wherever queries and keys are cut."""
        q, k = self.blocks(case)
        q, rng = ranked(self.kernel, q, k), case.rng()
        rows, columns = cut(rng, case.n_queries), cut(rng, case.n_keys)
        tile = self.kernel.log_weights(q.rows(rows), k.rows(columns))
        whole = self.kernel.log_weights(q, k)[rows, columns]
        where = f"q[{rows.start}:{rows.stop}] with k[{columns.start}:{columns.stop}]"
        assert_equal(tile, whole, f"the tile of {where} is no slice of the whole")

    @law(0.25)
    def test_rows_are_independent(self, case: Case) -> None:
        """A query's weights do not depend on the other queries, nor a key's on the other keys."""
        q, k = self.blocks(case)
        q = ranked(self.kernel, q, k)
        other_q, other_k = self.blocks(replace(case, seed=case.seed + 1))
        whole = self.kernel.log_weights(q, k)
        mixed = self.kernel.log_weights(replace(q, data=first_of(q.data, other_q.data)), k)
        assert_equal(mixed[:1], whole[:1], "with other queries beside it, query 0 weighs otherwise")
        mixed = self.kernel.log_weights(q, replace(k, data=first_of(k.data, other_k.data)))
        assert_equal(
            mixed[:, :1], whole[:, :1], "with other keys beside it, key 0 weighs otherwise"
        )

    @law(0.25)
    def test_key_order(self, case: Case) -> None:
        """Keys in another order, with all that they carry, have the same weights."""
        if self.fixed_sizes is not None:
            return
        # Which of two equal keys is the k-th goes by their order.
        ties = case.ties and self.kernel.ranking() is None
        q, k = self.blocks(replace(case, ties=ties))
        order = case.rng().permutation(case.n_keys)
        whole, other = self.log_weights(q, k), self.log_weights(q, reordered(k, order))
        assert_equal(other, whole[:, order], f"keys in the order {order.tolist()} weigh otherwise")

    # What the kernel says of itself.

    @law(0.25)
    def test_support(self, case: Case) -> None:
        """No weight beyond the stated support, and some weight within it."""
        spec = self.kernel.lower(self.n_features)
        if spec.metric not in METRICS or spec.support == np.inf:
            return
        q, k = self.blocks(replace(case, bandwidths=False))
        log_w, u = self.log_weights(q, k), distances(spec, q.data, k.data)
        beyond = (u > spec.support * (1 + 1e-9)) & (log_w > -np.inf)
        assert not beyond.any(), (
            f"{pair(q, k, beyond)} has a weight at {u[beyond][0]} bandwidths, beyond the stated "
            f"support of {spec.support}"
        )
        without = (u < spec.support * (1 - 1e-9)) & (log_w == -np.inf)
        assert not without.any(), (
            f"{pair(q, k, without)} has no weight at {u[without][0]} bandwidths, within the stated "
            f"support of {spec.support}"
        )

    @law(0.25)
    def test_symmetry(self, case: Case) -> None:
        """A kernel that says it is symmetric is."""
        if not self.kernel.symmetric:
            return
        q, k = self.blocks(case)
        there = self.log_weights(q, k)
        back = self.log_weights(as_block(QueryBlock, k), as_block(KeyBlock, q))
        assert_equal(there, back.T, "symmetric is True, and K(q, k) is not K(k, q)")

    @law(0.25)
    def test_missing(self, case: Case) -> None:
        """A kernel that allows missing coordinates gives no NaN for them."""
        if not self.kernel.allows_missing:
            return
        q, k = self.blocks(case)
        for block in (q, k):
            block.data[case.rng().random(block.data.shape) < 0.4] = np.nan
        self.check_numbers(q, k, self.log_weights(q, k))

    def test_normaliser(self) -> None:
        """The stated normaliser makes the kernel integrate to 1."""
        spec = self.kernel.lower(self.n_features)
        if spec.log_normalizer is None or spec.metric != "euclidean":
            return
        total = integral(self.kernel, spec, self.n_features)
        assert abs(total * math.exp(spec.log_normalizer) - 1) < 1e-6, (
            f"the kernel integrates to {total:.9g}, so log_normalizer is {-math.log(total):.9g}, "
            f"not {spec.log_normalizer:.9g}"
        )

    def test_value(self) -> None:
        """A frozen, hashable value that equals its copy and survives a process boundary."""
        kernel = self.kernel
        q, k = self.blocks(Case(0, *(self.fixed_sizes or (3, 4))))
        assert_value(kernel, "kernel")
        for field in fields(kernel)[:1]:  # type: ignore[arg-type]
            with frozen():
                setattr(kernel, field.name, None)
        again = pickle.loads(pickle.dumps(kernel))
        log_w = again.log_weights(ranked(again, q, k), k)
        assert_equal(log_w, self.log_weights(q, k), "the pickled kernel weighs otherwise", 0, 0)

    def test_memory(self) -> None:
        """`log_weights` holds no more arrays of the tile's size than `tile_arrays` says."""
        if self.fixed_sizes is not None:
            return
        n, said = 256, self.kernel.tile_arrays
        for bandwidths in (False, True):
            q, k = self.blocks(Case(0, n, n, bandwidths=bandwidths))
            q = ranked(self.kernel, q, k)
            used = peak_bytes(lambda q=q, k=k: self.kernel.log_weights(q, k))  # type: ignore[misc]
            held = (used - 3 * (q.data.nbytes + k.data.nbytes) - 2**16) / (8 * n * n)
            assert held <= said, (
                f"log_weights held {held:.1f} arrays of the tile's size, and tile_arrays says "
                f"{said}; set tile_arrays = {math.ceil(held)} in the class, or hold fewer"
            )

    # What a run makes of it.

    @law(0.15)
    def test_strict_arrays(self, case: Case) -> None:
        """Nothing but the array API standard is used: array-api-strict gives the same."""
        if "strict" not in self.kinds:
            return
        q, k = self.blocks(case)
        strict_q, strict_k = block_as_kind(q, "strict"), block_as_kind(k, "strict")
        with strict_arrays("kernel"):
            strict = self.log_weights(strict_q, strict_k)
        assert type(strict) is type(strict_q.data), (
            f"arrays of array-api-strict came out as {type(strict).__name__}; take all functions "
            "from array_namespace(q.data)"
        )
        assert_equal(strict, self.log_weights(q, k), "array-api-strict weighs otherwise")

    @law(0.1)
    def test_a_constant_on_log_weights_shifts_the_log_mass(self, case: Case) -> None:
        """Log weights near +-700 and beyond neither overflow nor vanish."""
        q, k = self.blocks(case)
        queries, keys = as_queries(q), as_keys(k)
        plain = lp.log_mass(queries, keys, self.kernel)
        constant = case.rng().choice([-1e5, -700.0, 700.0, 1e5])
        shifted = lp.log_mass(queries, keys, Shifted(self.kernel, float(constant)))
        assert_log_close(shifted, plain + constant, 1e-11)

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

    @law(0.15)
    def test_far_from_the_origin(self, case: Case) -> None:
        """Rows at an offset of 1e8, float32 ones at a million, are as near as at 0."""
        if not self.goes_by_differences():
            return
        (q, k), by = on_lattice(*self.blocks(case)), 2.0**27
        expected = self.log_weights(q, k)
        actual = self.log_weights(moved(q, by), moved(k, by))
        assert_equal(actual, expected, f"{by:g} added to all rows changes weights", 1e-9, 1e-9)
        if case.seed % 2:  # whole runs are slower
            return
        far = (moved(q, 1e6), moved(k, 1e6))
        far_q, far_k = (replace(block, data=block.data.astype(np.float32)) for block in far)
        mass = lp.log_mass(as_queries(far_q), as_keys(far_k), self.kernel)
        assert mass.dtype == np.float32, f"the log mass of float32 queries is {mass.dtype}"
        assert_log_close(mass, lp.log_mass(as_queries(q), as_keys(k), self.kernel), 1e-6)

    def goes_by_differences(self) -> bool:
        """Whether a small offset of all rows changes no weight: then no offset may."""
        q, k = on_lattice(*self.blocks(Case(0, *(self.fixed_sizes or (8, 12 + self.least_keys())))))
        there = self.log_weights(q, k)
        others = [self.log_weights(moved(q, by), moved(k, by)) for by in (1.0, -5.0, 32.0)]
        return all(np.allclose(log_w, there, rtol=1e-6, atol=1e-6) for log_w in others)

    @law(0.03)
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
        assert_equal(two, one, "two threads give other bits than one", 0, 0)

    @law(0.04)
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
