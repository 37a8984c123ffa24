"""Every kernel obeys the laws."""

import numpy as np

import locpipe as lp
from locpipe import kernels
from locpipe.kernels import (
    DotProduct,
    Epanechnikov,
    Gaussian,
    Kernel,
    Nearest,
    Nearness,
    Normalized,
    Precomputed,
    Radial,
    StudentT,
    Tricube,
    Uniform,
)
from locpipe.testing import KernelLaws

RADIAL = [
    found
    for name in kernels.__all__
    if isinstance(found := getattr(kernels, name), type)
    and issubclass(found, Radial)
    and found not in (Radial, StudentT)
]

for radial in RADIAL:  # one class per profile, as a user would write it
    test = f"Test{radial.__name__}"
    globals()[test] = type(test, (KernelLaws,), {"kernel": radial(1.3)})


class TestStudentT(KernelLaws):
    kernel = StudentT(3.0, 0.7)


class TestGaussianInOneDimension(KernelLaws):
    kernel = Gaussian(0.4)
    n_features = 1


class TestGaussianInTwentyDimensions(KernelLaws):
    kernel = Gaussian(3.0)
    n_features = 20


class TestBandwidthPerFeature(KernelLaws):
    kernel = Epanechnikov((0.5, 2.0, 3.0))
    n_features = 3


class TestManhattan(KernelLaws):
    kernel = Tricube((1.0, 2.5), metric="manhattan")


class TestCosineDistance(KernelLaws):
    kernel = Epanechnikov(0.8, metric="cosine")
    n_features = 3


class TestNanEuclidean(KernelLaws):
    kernel = Gaussian(0.8, metric="nan-euclidean")
    n_features = 3


class TestHaversine(KernelLaws):
    kernel = Uniform(1.2, metric="haversine")

    def make_queries(self, rng, n_rows):
        return rng.uniform((-np.pi / 2, -np.pi), (np.pi / 2, np.pi), (n_rows, 2))

    make_keys = make_queries


class TestNearness(KernelLaws):
    kernel = Nearness()


class TestNormalized(KernelLaws):
    kernel = Normalized(Tricube(0.9))


class TestDotProduct(KernelLaws):
    kernel = DotProduct()


class TestDotProductOfScale(KernelLaws):
    kernel = DotProduct(40.0)
    n_features = 5


class TestPrecomputed(KernelLaws):
    fixed_sizes = (9, 7)
    kernel = Precomputed(np.random.default_rng(0).uniform(-1, 3, fixed_sizes).clip(0))
    kinds = ("dask",)  # the matrix is a NumPy array


class TestExcludeSelf(KernelLaws):
    kernel = lp.masks.ExcludeSelf()


class TestCausal(KernelLaws):
    kernel = lp.masks.Causal(1)


class TestWindow(KernelLaws):
    kernel = lp.masks.Window(3)


class TestProduct(KernelLaws):
    kernel = Gaussian(0.9) * Epanechnikov(2.0) * lp.masks.ExcludeSelf() * lp.masks.Causal(2)
    test_far_queries = None  # of a product's factors some end


class TestBilateral(KernelLaws):
    kernel = Gaussian(0.9) * Gaussian(0.5).on(query="values", key="values")


def first_two(x):
    return x[:, :2]


class TestTwoTowers(KernelLaws):
    kernel = Gaussian(0.9).on(query=first_two)
    n_features = 3

    def make_keys(self, rng, n_rows):
        return rng.normal(size=(n_rows, 2))


class TestNearest(KernelLaws):
    kernel = Nearest(3)


class TestNearestByDistance(KernelLaws):
    kernel = Nearest(3, "distance", "manhattan")


class TestNearestOfProfile(KernelLaws):
    kernel = Nearest(4, Tricube(1.2))


class TestNearestWhereFewerAreAllowed(KernelLaws):
    kernel = Nearest(5, "gaussian") * lp.masks.Causal(1)


class TestNearestButSelf(KernelLaws):
    kernel = Nearest(3) * lp.masks.ExcludeSelf() * Gaussian(1.0)


def test_every_kernel_is_here():
    tested = {type(laws.kernel) for laws in KernelLaws.__subclasses__()}
    named = [getattr(home, name) for home in (kernels, lp.masks) for name in home.__all__]
    concrete = {k for k in named if isinstance(k, type) and issubclass(k, Kernel)}
    assert concrete - {Kernel, Radial} <= tested
