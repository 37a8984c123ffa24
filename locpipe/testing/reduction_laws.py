"""What every reduction must obey, as property tests to inherit."""

from __future__ import annotations

import gc
import math
import pickle
import tracemalloc
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

import numpy as np

import locpipe as lp
from locpipe.blocks import ArrayPairs, KeyBlock, QueryBlock
from locpipe.kernels import Gaussian, Kernel
from locpipe.reductions import Reduction, State
from locpipe.testing.kinds import as_keys, as_queries
from locpipe.testing.laws import Laws, assert_same, law
from locpipe.testing.strategies import Case, random_chunks

__all__ = ["ReductionLaws"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Queries, keys, and what there is per pair: log weights, some -inf, and dissimilarities."""

    q: QueryBlock
    k: KeyBlock
    log_w: np.ndarray
    delta: np.ndarray

    def cut(self, rows: slice, columns: slice) -> Problem:
        """The part of some queries and some keys."""
        log_w, delta = self.log_w[rows, columns], self.delta[rows, columns]
        return Problem(self.q.rows(rows), self.k.rows(columns), log_w, delta)

    def keys(self, columns: slice) -> Problem:
        """The part of some keys."""
        return self.cut(slice(0, self.q.n_rows), columns)

    def reordered(self, order: np.ndarray) -> Problem:
        """The keys in another order."""
        k = replace(self.k, data=self.k.data[order], values=self.k.values[order])  # type: ignore[index]
        return Problem(self.q, k, self.log_w[:, order], self.delta[:, order])


class ReductionLaws(Laws):
    """Laws of a reduction.  Inherit in a test module; pytest does the rest.

    Attributes
    ----------
    reduction : Reduction
        The reduction under test.
    n_features, n_outputs : int
        Columns of the random keys and of their values; default 2.
    shift : str or tuple of str, optional
        What a constant c on all log weights does to each result: ``"invariant"`` (nothing),
        ``"adds"`` (adds c) or ``"scales"`` (multiplies by exp(c)); default: not tested.
    kernel : Kernel
        For runs through `locpipe.fold`.
    rtol : float
        Relative difference allowed between two orders of summation.

    Notes
    -----
    Results of integer type are taken for key indices, -1 for none.  To do without one law, set
    it to None: ``test_key_order = None``.

    Examples
    --------
    >>> from locpipe.reductions import WeightedMean
    >>> class TestWeightedMean(ReductionLaws):
    ...     reduction = WeightedMean(2)
    ...     shift = "invariant"
    """

    reduction: ClassVar[Reduction]
    n_features: ClassVar[int] = 2
    n_outputs: ClassVar[int] = 2
    shift: ClassVar[str | tuple[str, ...] | None] = None
    kernel: ClassVar[Kernel] = Gaussian(1.0)
    rtol: ClassVar[float] = 1e-9

    def problem(self, case: Case, masked: float = 0.3) -> Problem:
        """Random tiles; with ties some log weights are equal, with bandwidths they are extreme."""
        rng, shape = case.rng(), (case.n_queries, case.n_keys)
        data = [rng.normal(size=(n, self.n_features)) for n in shape]
        values = rng.normal(size=(case.n_keys, self.n_outputs))
        log_w = rng.uniform(-1e5, 690, shape) if case.bandwidths else rng.normal(size=shape)
        log_w = np.round(log_w) if case.ties else log_w
        log_w[rng.random(shape) < masked] = -np.inf
        log_w[0] = np.where(rng.random() < masked, -np.inf, log_w[0])
        delta = np.abs(rng.normal(size=shape))
        delta[rng.random(shape) < 0.5 * masked] = np.nan
        return Problem(QueryBlock(data[0]), KeyBlock(data[1], values=values), log_w, delta)

    def fold(self, problem: Problem, state: State | None = None) -> State:
        """State with all keys of a problem folded in."""
        state = self.reduction.init(problem.q) if state is None else state
        log_w = problem.log_w if self.reduction.reads_kernel else None
        return self.reduction.update(state, log_w, problem.q, problem.k, (problem.delta,))

    def results(self, state: State) -> tuple[Any, ...]:
        """What the state finalizes to."""
        return self.reduction.finalize(state, math.nan)

    def assert_same(self, a: State, b: State) -> None:
        """Two states finalize to the same."""
        assert_same(self.results(a), self.results(b), self.rtol, 1e-13)

    # A monoid.

    @law(0.25)
    def test_identity(self, case: Case) -> None:
        """`init` is neutral on either side."""
        problem = self.problem(case)
        init, state = self.reduction.init(problem.q), self.fold(problem)
        self.assert_same(self.reduction.merge(init, state), state)
        self.assert_same(self.reduction.merge(state, init), state)

    @law()
    def test_any_partition(self, case: Case) -> None:
        """Keys cut anywhere and merged in any order give what one update gives."""
        problem, rng = self.problem(case), case.rng()
        parts = [problem.keys(part) for part in _parts(rng, case.n_keys)]
        states = [self.fold(part) for part in parts]
        whole = self.fold(problem)
        while len(states) > 1:
            a, b = (states.pop(int(rng.integers(len(states)))) for _ in range(2))
            states.append(self.reduction.merge(a, b))
        self.assert_same(states[0], whole)

    @law(0.5)
    def test_associative_and_commutative(self, case: Case) -> None:
        """``merge(merge(a, b), c) == merge(a, merge(b, c)) == merge(merge(c, a), b)``."""
        merge = self.reduction.merge
        problem = self.problem(replace(case, n_keys=case.n_keys + 3))
        third = 1 + case.n_keys // 3
        cuts = (slice(0, third), slice(third, 2 * third), slice(2 * third, case.n_keys + 3))
        a, b, c = (self.fold(problem.keys(cut)) for cut in cuts)
        self.assert_same(merge(merge(a, b), c), merge(a, merge(b, c)))
        self.assert_same(merge(merge(a, b), c), merge(merge(c, a), b))

    @law(0.5)
    def test_update_is_a_merge(self, case: Case) -> None:
        """``update(state, tile) == merge(state, update(init, tile))``, tile after tile."""
        problem = self.problem(case)
        parts = [problem.keys(part) for part in _parts(case.rng(), case.n_keys)]
        streamed = reduce(lambda state, part: self.fold(part, state), parts, None)
        merged = reduce(self.reduction.merge, map(self.fold, parts))
        assert streamed is not None
        self.assert_same(streamed, merged)

    # What it must not depend on.

    @law(0.5)
    def test_key_order(self, case: Case) -> None:
        """Keys in another order give the same, key indices mapped."""
        problem = self.problem(replace(case, ties=False))
        order = case.rng().permutation(case.n_keys)
        moved = self.results(self.fold(problem.reordered(order)))
        original = [_mapped(result, order) for result in moved]
        assert_same(original, self.results(self.fold(problem)), self.rtol, 1e-13)

    @law(0.25)
    def test_rows_are_independent(self, case: Case) -> None:
        """A query alone gets what it gets among others."""
        problem = self.problem(case)
        row = int(case.rng().integers(case.n_queries))
        alone = self.fold(problem.cut(slice(row, row + 1), slice(0, case.n_keys)))
        among = [result[row : row + 1] for result in self.results(self.fold(problem))]
        assert_same(self.results(alone), among, self.rtol, 1e-13)

    @law(0.5)
    def test_shift(self, case: Case) -> None:
        """A constant on all log weights does to each result what `shift` says."""
        if self.shift is None:
            return
        problem, rng = self.problem(replace(case, bandwidths=False)), case.rng()
        plain = self.results(self.fold(problem))
        rules = (self.shift,) * len(plain) if isinstance(self.shift, str) else self.shift
        choices = (-300.0, 300.0) if "scales" in rules else (-1e4, -700.0, 700.0, 1e5)
        constant = float(rng.choice(choices))
        moved = self.results(self.fold(replace(problem, log_w=problem.log_w + constant)))
        expected = [_shifted(x, rule, constant) for x, rule in zip(plain, rules, strict=True)]
        # A log weight near 1e5 has an absolute error of 1e-11.
        assert_same(moved, expected, 1e-8, 1e-10)

    # Edges.

    @law(0.25)
    def test_the_state_never_holds_nan(self, case: Case) -> None:
        """Not at first, not after masked, extreme or merged tiles."""
        problem = self.problem(case)
        masked = replace(problem, log_w=np.full_like(problem.log_w, -np.inf))
        state = self.reduction.init(problem.q)
        for part in (masked, problem, masked):
            state = self.reduction.merge(self.fold(part, state), self.fold(part))
            assert not any(np.isnan(array).any() for array in state), "NaN in the state"

    @law(0.25)
    def test_masked_rows(self, case: Case) -> None:
        """A query with no neighbour finalizes without error, as one that met no key would."""
        if not self.reduction.reads_kernel:
            return
        problem = self.problem(case)
        masked = replace(problem, log_w=np.full_like(problem.log_w, -np.inf))
        nothing, twice = self.fold(masked), self.fold(masked, self.fold(masked))
        for a, b in zip(self.results(nothing), self.results(twice), strict=True):
            assert a.shape == b.shape
        for empty in (math.nan, 0.0):
            self.reduction.finalize(nothing, empty)
        after = self.fold(masked, self.fold(problem))
        before = self.fold(problem, self.fold(masked))
        self.assert_same(after, before)

    def test_no_rows(self) -> None:
        """No queries: results of no rows, with the types and other sizes of any rows."""
        problem = self.problem(Case(0, 3, 5))
        some = self.results(self.fold(problem))
        state = self.reduction.init(problem.q.rows(slice(0, 0)))
        for none, result in zip(self.results(state), some, strict=True):
            assert none.shape == (0, *result.shape[1:])
            assert none.dtype == result.dtype

    def test_value(self) -> None:
        """A frozen, hashable value that equals its copy and survives a process boundary."""
        reduction = self.reduction
        assert hash(reduction) == hash(copy(reduction))
        assert reduction == copy(reduction)
        assert pickle.loads(pickle.dumps(reduction)) == reduction

    # What a run makes of it.

    def test_memory(self) -> None:
        """`update` holds no more arrays of the tile's size than `tile_arrays` says."""
        n = 256
        problem = self.problem(Case(0, n, n))
        state = self.fold(problem)
        used = _peak(lambda: self.fold(problem, state))
        allowed = self.reduction.tile_arrays * 8 * n * n + 8 * _nbytes(state) + 2**16
        held = used / (8 * n * n)
        assert used <= allowed, f"update held {held:.1f} tiles, said {self.reduction.tile_arrays}"

    @law(0.06)
    def test_chunks_and_array_kinds(self, case: Case) -> None:
        """NumPy, array-api-strict and Dask in any chunks, some of them empty, give the same."""
        problem, rng = self.problem(case), case.rng()
        q, k = problem.q, problem.k
        pairs = None if self.reduction.reads_kernel else ArrayPairs(problem.delta)
        expected = self._run(as_queries(q), as_keys(k), pairs)
        if pairs is None and "strict" in self.kinds:
            strict = self._run(as_queries(q, "strict"), as_keys(k, "strict"), None)
            assert_same(strict, expected, self.rtol, 1e-12)
        if "dask" not in self.kinds:
            return
        queries = as_queries(q, "dask", random_chunks(rng, case.n_queries))
        for keys in (as_keys(k), as_keys(k, "dask", random_chunks(rng, case.n_keys))):
            lazy = self._run(queries, keys, pairs)
            computed = [array.compute(scheduler="sync") for array in lazy]
            assert_same(computed, expected, self.rtol, 1e-12)
            assert [a.dtype for a in lazy] == [a.dtype for a in computed]

    def _run(self, queries: Any, keys: Any, pairs: Any) -> tuple[Any, ...]:
        kernel = self.kernel if self.reduction.reads_kernel else None
        return lp.fold(self.reduction, queries, keys, kernel, pairs)


def _parts(rng: np.random.Generator, n_keys: int) -> list[slice]:
    ends = np.cumsum([n for n in random_chunks(rng, n_keys) if n])
    starts = [0, *ends[:-1]]
    return [slice(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]


def _mapped(result: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Key indices as they were before the keys were reordered."""
    if result.dtype.kind not in "iu":
        return result
    return np.where(result >= 0, order[np.maximum(result, 0)], -1)


def _shifted(result: np.ndarray, rule: str, constant: float) -> np.ndarray:
    rules = {"invariant": 1.0, "adds": 1.0, "scales": math.exp(min(constant, 700.0))}
    assert rule in rules, f"shift must be one of {sorted(rules)}, got {rule!r}"
    return result + constant if rule == "adds" else result * rules[rule]


def _nbytes(state: State) -> int:
    return sum(int(array.nbytes) for array in state)


def _peak(function: Any) -> int:
    """Bytes that a call holds at most, beyond what there was."""
    function()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = function()
        del result
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
