"""Every reduction obeys the laws."""

from math import inf

from locpipe import reductions
from locpipe.reductions import (
    ArgBest,
    Gather,
    LocalMoments,
    LogMass,
    MajorizationStep,
    Reduction,
    TopK,
    WeightedMean,
    WeightedSum,
    WeightedVariance,
)
from locpipe.testing import ReductionLaws


class TestLogMass(ReductionLaws):
    reduction = LogMass()
    shift = ("adds", "invariant", "invariant")
    empty = (-inf, 0.0, None)


class TestWeightedMean(ReductionLaws):
    reduction = WeightedMean(2)


class TestWeightedVariance(ReductionLaws):
    reduction = WeightedVariance(2)
    # A variance of nearly equal values is a small difference of large ones.
    rtol = 1e-7


class TestWeightedSum(ReductionLaws):
    reduction = WeightedSum(2)
    shift = "scales"
    empty = 0.0


class TestTopK(ReductionLaws):
    reduction = TopK(3)
    shift = ("adds", "invariant")
    empty = (-inf, "given")


class TestTopKBeyondTheKeys(ReductionLaws):
    reduction = TopK(20)
    shift = ("adds", "invariant")
    empty = (-inf, "given")
    share = 0.25


class TestArgBest(ReductionLaws):
    reduction = ArgBest()
    shift = ("adds", "invariant")
    empty = (-inf, "given")


class TestGather(ReductionLaws):
    reduction = Gather(3, 2, 2)
    shift = ("adds", "invariant", "invariant", "invariant")
    empty = (-inf, "given", "given", "given")


class TestGatherWithoutValues(ReductionLaws):
    reduction = Gather(2, 3)
    n_features = 3
    shift = ("adds", "invariant", "invariant", "invariant")
    empty = (-inf, "given", "given", "given")
    share = 0.25


class TestLocalMoments(ReductionLaws):
    reduction = LocalMoments(1, (0.5, 2.0), 2)
    shift = ("adds", "invariant", "invariant")
    empty = (-inf, 0.0, 0.0)


class TestLocalMomentsOfHigherOrder(ReductionLaws):
    reduction = LocalMoments(2, (0.5, 2.0, 1.0), 2)
    n_features = 3
    shift = ("adds", "invariant", "invariant")
    empty = (-inf, 0.0, 0.0)
    share = 0.25


class TestMajorizationStep(ReductionLaws):
    reduction = MajorizationStep(2)


def test_every_reduction_is_here():
    tested = {type(laws.reduction) for laws in ReductionLaws.__subclasses__()}
    named = [getattr(reductions, name) for name in reductions.__all__]
    concrete = {r for r in named if isinstance(r, type) and issubclass(r, Reduction)} - {Reduction}
    assert concrete <= tested
