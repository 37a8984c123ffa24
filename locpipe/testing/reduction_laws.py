"""What every reduction must obey, as property tests to inherit."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

import numpy as np

import locpipe as lp
from locpipe.blocks import ArrayPairs, KeyBlock, QueryBlock
from locpipe.kernels import Gaussian, Kernel
from locpipe.reductions import Reduction, State
from locpipe.testing.kinds import as_keys, as_queries
from locpipe.testing.laws import (
    Laws,
    assert_equal,
    assert_same,
    assert_value,
    law,
    peak_bytes,
    strict_arrays,
)
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
    shift : str or tuple of str
        What a constant c on all log weights does to each result: ``"invariant"`` (nothing; the
        default), ``"adds"`` (adds c) or ``"scales"`` (multiplies by exp(c)).
    empty : str, float, or a tuple of them
        What each result is for a query with no neighbour: ``"given"`` (the value that `finalize`
        is given, and -1 in integers; the default), a number, or None: anything.
    kernel : Kernel
        For runs through `locpipe.fold`.
    rtol : float
        Relative difference allowed between two orders of summation.

    Notes
    -----
    Values are standard normal; override ``make_values(rng, n_keys)``, which gives an array
    (n_keys, n_outputs), for a reduction that needs others.  Results of integer type are taken for
    key indices, -1 for none.  To do without one law, set it to None: ``test_key_order = None``.
    No law can see a wrong formula: compare with a plain loop as well.

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
    shift: ClassVar[str | tuple[str, ...]] = "invariant"
    empty: ClassVar[Any] = "given"
    kernel: ClassVar[Kernel] = Gaussian(1.0)
    rtol: ClassVar[float] = 1e-9

    def make_values(self, rng: np.random.Generator, n_keys: int) -> np.ndarray:
        """Random values of keys (n_keys, n_outputs)."""
        return rng.normal(size=(n_keys, self.n_outputs))

    def problem(self, case: Case, masked: float = 0.3) -> Problem:
        """Random tiles; with ties some log weights are equal, with bandwidths they are extreme."""
        rng, shape = case.rng(), (case.n_queries, case.n_keys)
        data = [rng.normal(size=(n, self.n_features)) for n in shape]
        values = self.make_values(rng, case.n_keys)
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

    def assert_same(self, a: State, b: State, violated: str) -> None:
        """Two states finalize to the same."""
        assert_same(self.results(a), self.results(b), violated, self.rtol, 1e-13)

    def per_result(self, name: str, results: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a class attribute says of each result."""
        rules = getattr(self, name)
        rules = rules if isinstance(rules, tuple) else (rules,) * len(results)
        assert len(rules) == len(results), (
            f"{name} must be one rule or a tuple with one for each of {len(results)} results, "
            f"got {rules!r}"
        )
        return rules

    def shown(self, case: Case) -> dict[str, Any]:
        """The tile of a case, and the state that it gives."""
        problem = self.problem(case)
        state = self.fold(problem)
        names = getattr(state, "_fields", range(len(state)))
        states = {f"state {n} after all keys": a for n, a in zip(names, state, strict=True)}
        shown = {"log weights": problem.log_w, "k.values": problem.k.values}
        return shown | states

    # A monoid.

    @law(0.25)
    def test_identity(self, case: Case) -> None:
        """`init` is neutral on either side."""
        problem = self.problem(case)
        init, state = self.reduction.init(problem.q), self.fold(problem)
        self.assert_same(
            self.reduction.merge(init, state), state, "merge(init, state) is not state"
        )
        self.assert_same(
            self.reduction.merge(state, init), state, "merge(state, init) is not state"
        )

    @law(0.5)
    def test_any_partition(self, case: Case) -> None:
        """Keys cut anywhere and merged in any order give what one update gives."""
        problem, rng = self.problem(case), case.rng()
        parts = _parts(rng, case.n_keys)
        states = [self.fold(problem.keys(part)) for part in parts]
        whole = self.fold(problem)
        while len(states) > 1:
            a, b = (states.pop(int(rng.integers(len(states)))) for _ in range(2))
            states.append(self.reduction.merge(a, b))
        self.assert_same(states[0], whole, f"{_cuts(parts)} and merged is not the whole")

    @law(0.25)
    def test_associative_and_commutative(self, case: Case) -> None:
        """``merge(merge(a, b), c) == merge(a, merge(b, c)) == merge(merge(c, a), b)``."""
        merge = self.reduction.merge
        problem = self.problem(replace(case, n_keys=case.n_keys + 3))
        third = 1 + case.n_keys // 3
        cuts = (slice(0, third), slice(third, 2 * third), slice(2 * third, case.n_keys + 3))
        a, b, c = (self.fold(problem.keys(cut)) for cut in cuts)
        left, cut = merge(merge(a, b), c), _cuts(cuts)
        self.assert_same(left, merge(a, merge(b, c)), f"{cut}, merge is not associative")
        self.assert_same(left, merge(merge(c, a), b), f"{cut}, merge is not commutative")

    @law(0.25)
    def test_update_is_a_merge(self, case: Case) -> None:
        """``update(state, tile) == merge(state, update(init, tile))``, tile after tile."""
        problem = self.problem(case)
        cuts = _parts(case.rng(), case.n_keys)
        parts = [problem.keys(part) for part in cuts]
        streamed = reduce(lambda state, part: self.fold(part, state), parts, None)
        merged = reduce(self.reduction.merge, map(self.fold, parts))
        assert streamed is not None
        violated = f"{_cuts(cuts)}, update(state, tile) is not merge(state, update(init, tile))"
        self.assert_same(streamed, merged, violated)

    # What it must not depend on.

    @law(0.5)
    def test_key_order(self, case: Case) -> None:
        """Keys in another order give the same, key indices mapped."""
        problem = self.problem(replace(case, ties=False))
        order = case.rng().permutation(case.n_keys)
        moved = self.results(self.fold(problem.reordered(order)))
        original = [_mapped(result, order) for result in moved]
        violated = f"keys in the order {order.tolist()} give another result"
        assert_same(original, self.results(self.fold(problem)), violated, self.rtol, 1e-13)

    @law(0.25)
    def test_rows_are_independent(self, case: Case) -> None:
        """A query alone gets what it gets among others."""
        problem = self.problem(case)
        row = int(case.rng().integers(case.n_queries))
        alone = self.fold(problem.cut(slice(row, row + 1), slice(0, case.n_keys)))
        among = [result[row : row + 1] for result in self.results(self.fold(problem))]
        violated = f"query {row} alone gets another result than among others"
        assert_same(self.results(alone), among, violated, self.rtol, 1e-13)

    @law(0.5)
    def test_shift(self, case: Case) -> None:
        """A constant on all log weights does to each result what `shift` says."""
        if not self.reduction.reads_kernel:
            return
        problem, rng = self.problem(replace(case, bandwidths=False)), case.rng()
        plain = self.results(self.fold(problem))
        rules = self.per_result("shift", plain)
        choices = (-300.0, 300.0) if "scales" in rules else (-1e5, -700.0, 700.0, 1e5)
        constant = float(rng.choice(choices))
        moved = self.results(self.fold(replace(problem, log_w=problem.log_w + constant)))
        for i, (x, y, rule) in enumerate(zip(plain, moved, rules, strict=True)):
            # A log weight near 1e5 has an absolute error of 1e-11.
            violated = (
                f"with {constant:g} added to all log weights, which should leave result {i} "
                f"{rule!r} (sum weights at a shift, or say what the constant does in `shift`)"
            )
            assert_equal(y, _shifted(x, rule, constant), violated, 1e-8, 1e-10)

    # Edges.

    @law(0.25)
    def test_the_state_never_holds_nan(self, case: Case) -> None:
        """Not at first, not after masked, extreme or merged tiles."""
        problem = self.problem(case)
        masked = replace(problem, log_w=np.full_like(problem.log_w, -np.inf))
        state = self.reduction.init(problem.q)
        for part in (masked, problem, masked):
            state = self.reduction.merge(self.fold(part, state), self.fold(part))
            for i, array in enumerate(state):
                assert not np.isnan(array).any(), f"array {i} of the state holds NaN: {array}"

    @law(0.25)
    def test_masked_rows(self, case: Case) -> None:
        """A query whose keys all have log weight -inf gets what `empty` says."""
        if not self.reduction.reads_kernel:
            return
        problem = self.problem(case)
        masked = replace(problem, log_w=np.full_like(problem.log_w, -np.inf))
        for state in (self.fold(masked), self.fold(masked, self.fold(masked))):
            for value in (math.nan, 0.0):
                self._check_empty(self.reduction.finalize(state, value), value)
        after = self.fold(masked, self.fold(problem))
        before = self.fold(problem, self.fold(masked))
        self.assert_same(after, before, "keys of log weight -inf count otherwise first than last")

    def _check_empty(self, results: tuple[Any, ...], value: float) -> None:
        for i, (result, rule) in enumerate(
            zip(results, self.per_result("empty", results), strict=True)
        ):
            if rule is None:
                continue
            given = -1 if result.dtype.kind in "iu" else value
            expected = np.full(result.shape, given if rule == "given" else rule)
            violated = (
                f"result {i} of a query with no neighbour, under empty={value}, is not what "
                f"`empty` says (fill_empty fills it in finalize; or state another empty value)"
            )
            assert_equal(result, expected, violated)

    @law(0.25)
    def test_results_are_numbers(self, case: Case) -> None:
        """With 0 for what is empty no result is NaN, whatever the log weights."""
        results = self.reduction.finalize(self.fold(self.problem(case)), 0.0)
        for i, result in enumerate(results):
            at = np.argwhere(np.isnan(result)).tolist() if result.dtype.kind == "f" else []
            assert not at, (
                f"result {i} is NaN at {tuple(at[0])} under empty=0; set "
                "test_results_are_numbers = None if it has no value there"
            )

    def test_no_rows(self) -> None:
        """No queries: results of no rows, with the types and other sizes of any rows."""
        problem = self.problem(Case(0, 3, 5))
        some = self.results(self.fold(problem))
        state = self.reduction.init(problem.q.rows(slice(0, 0)))
        for none, result in zip(self.results(state), some, strict=True):
            shape = (0, *result.shape[1:])
            assert none.shape == shape, f"no queries give shape {none.shape}, not {shape}"
            assert none.dtype == result.dtype, f"no queries give {none.dtype}, not {result.dtype}"

    def test_value(self) -> None:
        """A frozen, hashable value that equals its copy and survives a process boundary."""
        reduction = self.reduction
        assert_value(reduction, "reduction")
        assert pickle.loads(pickle.dumps(reduction)) == reduction, "the pickled reduction differs"

    # What a run makes of it.

    def test_memory(self) -> None:
        """`update` holds no more arrays of the tile's size than `tile_arrays` says."""
        n = 256
        problem = self.problem(Case(0, n, n))
        state = self.fold(problem)
        used = peak_bytes(lambda: self.fold(problem, state))
        beside = 8 * sum(int(array.nbytes) for array in state) + 2**16
        held, said = (used - beside) / (8 * n * n), self.reduction.tile_arrays
        assert held <= said, (
            f"update held {held:.1f} arrays of the tile's size, and tile_arrays says {said}; "
            f"let the property tile_arrays return {math.ceil(held)}, or hold fewer"
        )

    @law(0.06)
    def test_chunks_and_array_kinds(self, case: Case) -> None:
        """NumPy, array-api-strict and Dask in any chunks, some of them empty, give the same."""
        problem, rng = self.problem(case), case.rng()
        q, k = problem.q, problem.k
        pairs = None if self.reduction.reads_kernel else ArrayPairs(problem.delta)
        expected = self._run(as_queries(q), as_keys(k), pairs)
        if pairs is None and "strict" in self.kinds:
            with strict_arrays("reduction"):
                strict = self._run(as_queries(q, "strict"), as_keys(k, "strict"), None)
            assert_same(strict, expected, "array-api-strict gives others", self.rtol, 1e-12)
        if "dask" not in self.kinds:
            return
        queries = as_queries(q, "dask", random_chunks(rng, case.n_queries))
        for keys in (as_keys(k), as_keys(k, "dask", random_chunks(rng, case.n_keys))):
            lazy = self._run(queries, keys, pairs)
            computed = [array.compute(scheduler="sync") for array in lazy]
            chunks = [getattr(rows.data, "chunks", "memory") for rows in (queries, keys)]
            violated = f"Dask chunks of queries and keys {chunks} give others"
            assert_same(computed, expected, violated, self.rtol, 1e-12)
            said, found = ([a.dtype for a in arrays] for arrays in (lazy, computed))
            assert said == found, f"Dask promises {said} and gives {found}"

    def _run(self, queries: Any, keys: Any, pairs: Any) -> tuple[Any, ...]:
        kernel = self.kernel if self.reduction.reads_kernel else None
        return lp.fold(self.reduction, queries, keys, kernel, pairs)


def _parts(rng: np.random.Generator, n_keys: int) -> list[slice]:
    ends = np.cumsum([n for n in random_chunks(rng, n_keys) if n])
    starts = [0, *ends[:-1]]
    return [slice(int(a), int(b)) for a, b in zip(starts, ends, strict=True)]


def _cuts(parts: Any) -> str:
    return "keys cut into " + ", ".join(f"{part.start}:{part.stop}" for part in parts)


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
