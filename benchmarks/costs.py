"""Measured seconds against those of the plan: `python benchmarks/costs.py`.

One line per case: predicted, measured and their ratio, on one thread.  The constants in
`locpipe/graph/costs.py` come from here; a ratio between 1/2 and 2 is what they are for.
"""

import time

import numpy as np

import locpipe as lp
from locpipe import kernels, reductions

N_QUERIES, N_KEYS = 1_024, 8_192


def cases():
    """Name, number of features, and the reduction and kernel of each case."""
    mean, gaussian = reductions.WeightedMean(1), kernels.Gaussian(1.0)
    for n_features in (1, 2, 4, 16, 64, 256):
        yield n_features, mean, gaussian
        yield n_features, reductions.TopK(5), kernels.Nearness()
    for name in (
        "Epanechnikov",
        "Tricube",
        "Cosine",
        "Uniform",
        "Exponential",
        "Logistic",
        "Cauchy",
    ):
        yield 2, mean, getattr(kernels, name)(1.0)
    yield 16, mean, kernels.DotProduct()
    yield 16, mean, kernels.Tricube(5.0)
    for n_features in (16, 256):
        yield n_features, reductions.TopK(5), kernels.Nearness("cosine")
        yield n_features, mean, kernels.Gaussian(1.0, metric="cosine")
    for weights in ("uniform", "distance", "tricube"):
        yield 2, mean, kernels.Nearest(10, weights)
    yield 3, reductions.Gather(100, 3, 4), gaussian
    yield 2, reductions.WeightedVariance(20), gaussian
    yield 2, mean, gaussian * lp.masks.ExcludeSelf()
    yield 2, reductions.LogMass(), gaussian
    yield 2, reductions.WeightedMean(100), gaussian
    yield 2, reductions.TopK(50), kernels.Nearness()
    yield 2, reductions.LocalMoments(1, (1.0, 1.0), 1), gaussian
    yield 4, reductions.LocalMoments(1, (1.0,) * 4, 1), gaussian


def measure(n_features, reduction, kernel):
    """Seconds predicted and measured."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(N_KEYS, getattr(reduction, "n_outputs", 1)))
    q = rng.normal(size=(N_QUERIES, n_features))
    keys = lp.Keys(rng.normal(size=(N_KEYS, n_features)), values)
    plan = lp.plan(q, keys, kernel, reduction=reduction, n_threads=1)
    start = time.thread_time()
    lp.fold(reduction, q, keys, kernel, n_threads=1)
    return plan.seconds, time.thread_time() - start


def main():
    """Print the table."""
    lp.log_mass(np.zeros((9, 1)), np.zeros((9, 1)), kernels.Gaussian(1.0))  # imports
    print(f"{N_QUERIES:,} queries x {N_KEYS:,} keys, one thread, CPU seconds")
    print("features  predicted  measured  ratio  kernel, reduction")
    for n_features, reduction, kernel in cases():
        predicted, measured = measure(n_features, reduction, kernel)
        print(
            f"{n_features:8}  {predicted:9.2f}  {measured:8.2f}  {predicted / measured:5.2f}  "
            f"{kernel}, {reduction}"
        )


if __name__ == "__main__":
    main()
