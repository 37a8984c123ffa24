"""Measured seconds against those of the plan: `python benchmarks/costs.py`.

One line per case: predicted, measured and their ratio, on one thread.  The constants in
`locpipe/graph/costs.py` come from here; a ratio between 1/3 and 3 is what they are for.
"""

import time

import numpy as np

import locpipe as lp
from locpipe import kernels, reductions

N_QUERIES, N_KEYS = 2_000, 20_000


def cases():
    """Name, number of features, and the reduction and kernel of each case."""
    mean, gaussian = reductions.WeightedMean(1), kernels.Gaussian(1.0)
    for n_features in (1, 2, 4, 16, 64):
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
    yield 2, mean, kernels.Nearest(10)
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
    start = time.process_time()
    lp.fold(reduction, q, keys, kernel, n_threads=1)
    return plan.seconds, time.process_time() - start


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
