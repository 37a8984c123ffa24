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
        if self.fault == "weights":
            return np.log(np.exp(log_w - 500))
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
}


def laws_of(base, **attributes):
    with_examples = {"share": 50 / settings().max_examples, **attributes}
    return type("Laws", (base,), with_examples)()


@pytest.mark.parametrize(
    ("name", "fault"), [(name, f) for name, faults in KERNEL_FAULTS.items() for f in faults]
)
def test_kernel_laws_catch(name, fault):
    with pytest.raises(AssertionError):
        getattr(laws_of(KernelLaws, kernel=Wrong(fault)), name)()
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


def test_kernel_laws_catch_mutable_values():
    with pytest.raises((AssertionError, TypeError)):
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
        if self.fault == "shift":
            return super().update(state, np.minimum(log_w, 1.0), q, k)
        return super().update(state, log_w, q, k)

    def merge(self, a, b):
        merged = super().merge(a, b)
        return merged._replace(moment=a.moment + b.moment) if self.fault == "merge" else merged

    def finalize(self, state, empty):
        if self.fault == "nan":
            with np.errstate(invalid="raise"):
                return (state.moment / state.mass[:, None],)
        return super().finalize(state, empty)


REDUCTION_FAULTS = {
    "test_identity": "init",
    "test_any_partition": "merge",
    "test_update_is_a_merge": "merge",
    "test_key_order": "first",
    "test_shift": "shift",
    "test_masked_rows": "nan",
    "test_memory": "memory",
}


@pytest.mark.parametrize(("name", "fault"), REDUCTION_FAULTS.items())
def test_reduction_laws_catch(name, fault):
    wrong = laws_of(ReductionLaws, reduction=WrongMean(2, fault), shift="invariant")
    with pytest.raises((AssertionError, FloatingPointError)):
        getattr(wrong, name)()
    getattr(laws_of(ReductionLaws, reduction=WrongMean(2), shift="invariant"), name)()


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
