"""What is shipped for users' tests: laws that catch wrong kernels and reductions."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings

import locpipe as lp
from locpipe.kernels import Gaussian, Kernel, KernelSpec
from locpipe.reductions import WeightedMean
from locpipe.testing import KernelLaws, ReductionLaws, as_kind, no_compute, strategies
from locpipe.testing.laws import Laws, law
from locpipe.testing.reduction_laws import Problem


@dataclass(frozen=True)
class Wrong(Kernel):
    """A Gaussian with one of many faults."""

    fault: str = ""

    def log_weights(self, q, k):
        log_w = Gaussian(1.0).log_weights(q, k)
        if self.fault == "nan":
            return np.where(log_w > -1e-3, np.nan, log_w)
        if self.fault == "tile":
            return log_w - log_w.max()
        if self.fault == "bound":
            return log_w + 1
        if self.fault == "float32":
            return log_w.astype(np.float32)
        if self.fault == "order":
            return log_w - np.arange(k.n_rows)
        if self.fault == "many arrays":
            return sum([log_w * (1 / 16) for _ in range(16)])
        if self.fault == "numpy":
            return np.minimum(log_w, np.ones(1))
        d2 = -2 * log_w
        with np.errstate(all="ignore"):
            if self.fault == "cosh":
                return -np.log(np.cosh(np.sqrt(d2)))
            if self.fault == "log of exp":
                return np.log(np.exp(log_w))
            if self.fault == "inf - inf":
                u = np.sqrt(d2 / 1e-300)
                return np.log1p(u * u) - u * u
            if self.fault == "rises":
                return np.sqrt(d2) - 0.1 * d2
            if self.fault == "expanded":
                qq, kk = ((b.data**2).sum(1) for b in (q, k))
                return -np.maximum(qq[:, None] + kk - 2 * q.data @ k.data.T, 0)
        return log_w

    @property
    def symmetric(self):
        return self.fault == "symmetric"

    def lower(self, n_features):
        support = 0.5 if self.fault == "support" else np.inf
        normalizer = 0.0 if self.fault == "normaliser" else None
        return KernelSpec("general", "euclidean", (1.0,) * n_features, support, 0.0, normalizer)


@dataclass(frozen=True)
class Lopsided(Wrong):
    def log_weights(self, q, k):
        return Gaussian(1.0).log_weights(q, k) - np.abs(k.data[:, 0])


KERNEL_FAULTS = {
    "test_values": ["nan", "bound", "float32"],
    "test_tile": ["tile", "order"],
    "test_rows_are_independent": ["tile"],
    "test_key_order": ["order"],
    "test_support": ["support"],
    "test_normaliser": ["normaliser"],
    "test_rows_of_any_size": ["inf - inf"],
    "test_far_queries": ["log of exp", "cosh"],
    "test_farther_weighs_no_more": ["rises"],
    "test_far_from_the_origin": ["expanded"],
    "test_memory": ["many arrays"],
    "test_strict_arrays": ["numpy"],
}
KERNEL_MESSAGES = {
    "nan": r"query \d+ and key \d+ \(q = .*is nan, which is no log weight",
    "bound": r"above log_bound=0\.0",
    "float32": "log weights are float32, not float64",
    "tile": r"the tile of q\[\d+:\d+\] with k\[.*\] is no slice of the whole|weighs otherwise",
    "order": "is no slice of the whole|keys in the order .* weigh otherwise",
    "support": r"beyond the stated support of 0\.5",
    "normaliser": r"so log_normalizer is -1\.837\d*, not 0",
    "inf - inf": r"is nan, which is no log weight",
    "log of exp": r"is -inf, as if the support ended.*test_far_queries = None",
    "cosh": r"is -inf, as if the support ended",
    "rises": "more than the key before it on the same ray",
    "expanded": r"1\.34218e\+08 added to all rows changes weights",
    "many arrays": r"arrays of the tile's size, and tile_arrays says 8; set tile_arrays = \d+",
    "numpy": r"array-api-strict .*array_namespace\(",
}


def laws_of(base, **attributes):
    with_examples = {"share": 100 / settings().max_examples, **attributes}
    return type("Laws", (base,), with_examples)()


@pytest.mark.parametrize(
    ("name", "fault"), [(name, f) for name, faults in KERNEL_FAULTS.items() for f in faults]
)
def test_kernel_laws_catch(name, fault):
    with pytest.raises(AssertionError, match=KERNEL_MESSAGES[fault]) as caught:
        getattr(laws_of(KernelLaws, kernel=Wrong(fault)), name)()
    if name not in ("test_normaliser", "test_memory"):
        story = "\n".join(caught.value.__notes__)
        assert all(words in story for words in ("The law: ", "q.data =", "k.data ="))
    getattr(laws_of(KernelLaws, kernel=Gaussian(1.0)), name)()


def test_kernel_laws_catch_a_false_symmetry():
    with pytest.raises(AssertionError):
        laws_of(KernelLaws, kernel=Lopsided("symmetric")).test_symmetry()


@dataclass
class Thawed(Gaussian.__mro__[2]):
    """Not frozen."""

    def log_weights(self, q, k):
        return Gaussian(1.0).log_weights(q, k)

    def lower(self, n_features):
        return KernelSpec()

    __hash__ = object.__hash__


@dataclass(frozen=True)
class OfAnArray(Gaussian.__mro__[2]):
    centres: object = None

    def log_weights(self, q, k):
        return Gaussian(1.0).log_weights(q, k)

    def lower(self, n_features):
        return KernelSpec()


def test_an_array_as_a_field_is_named():
    with pytest.raises(AssertionError, match="field 'centres' holds a ndarray; use a tuple"):
        laws_of(KernelLaws, kernel=OfAnArray(np.zeros(2))).test_value()


def test_kernels_that_rank_get_as_many_keys():
    assert laws_of(KernelLaws, kernel=lp.kernels.Nearest(7)).least_keys() == 7


def test_kernel_laws_catch_mutable_values():
    with pytest.raises(AssertionError, match="the kernel must equal its copy, hash included"):
        laws_of(KernelLaws, kernel=Thawed()).test_value()


@dataclass(frozen=True)
class WrongMean(WeightedMean):
    """A local mean with one of many faults."""

    fault: str = ""

    def init(self, q):
        state = super().init(q)
        one = state._replace(mass=state.mass + 1, shift=0 * state.mass)
        return one if self.fault == "init" else state

    def update(self, state, log_w, q, k, pair=None):
        if self.fault == "first":
            return super().update(state, log_w[:, :1], q, k.rows(slice(0, 1)))
        if self.fault == "memory":
            keep = [log_w + i for i in range(20)]
            return super().update(state, keep[0], q, k)
        if self.fault == "numpy":
            return super().update(state, np.minimum(log_w, np.full(1, np.inf)), q, k)
        if self.fault == "shift":
            return super().update(state, np.minimum(log_w, 1.0), q, k)
        if self.fault == "unshifted":
            w = np.exp(np.minimum(log_w, 700.0))
            mass, moment = state.mass + w.sum(1), state.moment + w @ k.values
            return state._replace(shift=0 * mass, mass=mass, moment=moment)
        return super().update(state, log_w, q, k)

    def merge(self, a, b):
        merged = super().merge(a, b)
        return merged._replace(moment=a.moment + b.moment) if self.fault == "merge" else merged

    def finalize(self, state, empty):
        if self.fault in ("nan", "always nan"):
            with np.errstate(invalid="ignore"):
                mean = state.moment / state.mass[:, None]
            return (np.where(mean > 0.5, np.nan, mean) if self.fault == "always nan" else mean,)
        if self.fault == "zero":
            return super().finalize(state, 0.0)
        return super().finalize(state, empty)


REDUCTION_FAULTS = {
    "test_identity": "init",
    "test_any_partition": "merge",
    "test_update_is_a_merge": "merge",
    "test_key_order": "first",
    "test_shift": "shift",
    "test_masked_rows": "nan",
    "test_memory": "memory",
    "test_results_are_numbers": "always nan",
    "test_chunks_and_array_kinds": "numpy",
}
REDUCTION_MESSAGES = {
    "init": r"merge\(init, state\) is not state",
    "merge": r"keys cut into 0:\d+, .*(and merged is not the whole|is not merge\(state, update)",
    "first": "keys in the order .* give another result",
    "shift": r"added to all log weights, which should leave result 0 'invariant' \(sum weights at",
    "unshifted": r"-?\d+ added to all log weights, which should leave result 0 'invariant'",
    "nan": r"no neighbour, under empty=0\.0, is not what `empty` says \(fill_empty",
    "zero": "no neighbour, under empty=nan, is not what `empty` says",
    "memory": r"update held \d+\.\d arrays of the tile's size, and tile_arrays says 3; let",
    "always nan": r"result 0 is NaN at \(\d+, \d+\) under empty=0",
    "numpy": r"the reduction fails on array-api-strict .*array_namespace\(",
}


@pytest.mark.parametrize(
    ("name", "fault"),
    [*REDUCTION_FAULTS.items(), ("test_shift", "unshifted"), ("test_masked_rows", "zero")],
)
def test_reduction_laws_catch(name, fault):
    wrong = laws_of(ReductionLaws, reduction=WrongMean(2, fault))
    with pytest.raises(AssertionError, match=REDUCTION_MESSAGES[fault]) as caught:
        getattr(wrong, name)()
    if name != "test_memory":
        story = "\n".join(caught.value.__notes__)
        assert all(words in story for words in ("The law: ", "log weights =", "state mass"))
    getattr(laws_of(ReductionLaws, reduction=WrongMean(2)), name)()


class Fractions(ReductionLaws):
    reduction = WeightedMean(1)
    n_outputs = 1

    def make_values(self, rng, n_keys):
        return rng.random((n_keys, 1))


def test_values_are_the_users():
    values = Fractions().problem(strategies.Case(0, 3, 50)).k.values
    assert ((values >= 0) & (values < 1)).all()


def test_as_many_rules_as_results():
    with pytest.raises(AssertionError, match="empty must be one rule or a tuple with one for each"):
        laws_of(ReductionLaws, reduction=WrongMean(2), empty=(0.0, 0.0)).test_masked_rows()


def test_a_rule_of_shifts_is_checked():
    with pytest.raises(AssertionError, match="shift must be one of"):
        laws_of(ReductionLaws, reduction=WeightedMean(2), shift="moves").test_shift()


def test_each_class_has_laws_of_its_own():
    class One(Laws):
        share = 0.5

        @law()
        def test_size(self, case):
            assert self.fixed_sizes in (None, (case.n_queries, case.n_keys))

    class Two(One):
        fixed_sizes = (3, 2)

    assert One.test_size is not Two.test_size
    One().test_size()
    Two().test_size()


@pytest.mark.parametrize("name", ["KernelLaws", "ReductionLaws", "strategies"])
def test_the_laws_say_what_they_need(name):
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import locpipe.testing as t\n"
        f"try: t.{name}\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "need hypothesis; install it with: pip install hypothesis" in done.stdout


def test_a_missing_library_is_named():
    code = (
        "import sys; sys.modules['array_api_strict'] = None\n"
        "from locpipe.testing import as_kind\n"
        "try: as_kind([1.0], 'strict')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install array-api-strict, or leave" in done.stdout


def test_kinds_may_be_left_out():
    kernel = laws_of(KernelLaws, kernel=Gaussian(1.0), kinds=())
    kernel.test_strict_arrays()
    kernel.test_chunks_and_array_kinds()
    laws_of(ReductionLaws, reduction=WeightedMean(2), kinds=()).test_chunks_and_array_kinds()


def test_there_is_nothing_else():
    import locpipe.testing

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = locpipe.testing.nothing


def test_strategies_draw_what_they_say():
    from hypothesis import given
    from hypothesis import strategies as st

    @settings(max_examples=15)
    @given(st.data(), st.integers(0, 9))
    def check(data, n):
        rows = data.draw(strategies.rows(n, 3))
        assert rows.shape == (n, 3)
        q, k = (data.draw(s(n, 2)) for s in (strategies.query_blocks, strategies.key_blocks))
        assert q.n_rows == k.n_rows == len(k.log_sample_weight) == n
        assert sum(data.draw(strategies.chunkings(n))) == n
        parts = data.draw(strategies.partitions(n))
        assert [i for p in parts for i in range(p.start, p.stop)] == list(range(n))
        kind = data.draw(strategies.array_kinds())
        assert as_kind(rows, kind).shape == (n, 3)

    check()


def test_nothing_computes_inside():
    lazy = as_kind(np.ones((3, 1)), "dask").sum()
    with no_compute(), pytest.raises(AssertionError, match="where nothing may compute"):
        lazy.compute()


def test_problems_are_cut_and_reordered():
    class Mean(ReductionLaws):
        reduction = WeightedMean(2)

    problem = Mean().problem(strategies.Case(0, 3, 5))
    assert isinstance(problem, Problem)
    assert problem.cut(slice(0, 1), slice(1, 3)).log_w.shape == (1, 2)
    order = np.array([4, 3, 2, 1, 0])
    np.testing.assert_array_equal(problem.reordered(order).k.values, problem.k.values[::-1])
    assert lp.Keys(problem.k.data).data.shape == (5, 2)
