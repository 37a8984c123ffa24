"""The fused Gaussian local mean against torch's attention and KeOps.

`python benchmarks/attention.py`: standard normal float32 data, bandwidth 0.3 sqrt(d), and at d = 64
Scott's too, where float32 products miss `rtol`.  The ceiling is the two matrix products alone.
One line is the engine's, one that of `auto`.  `--only 64,64` takes one case.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import oracle
import peer_keops
import peer_torch
from side_by_side import Contender, arguments, compare, heading, ratio, table

import locpipe as lp

SHAPES = (
    *((1, 1), (2, 1), (2, 2), (3, 1), (3, 3), (8, 1)),
    *((16, 16), (64, 1), (64, 64), (128, 128), (384, 384), (784, 1), (784, 784)),
)
TILE = 1024
COLUMNS = (
    *("d", "outputs", "n", "bandwidth", "engine", "seconds", "pairs/s", "torch by ours"),
    *("KeOps by ours", "of ceiling", "error", "of torch", "of KeOps", "first call s"),
)


class Case(NamedTuple):
    """Data, and its bandwidth with a name."""

    name: str
    bandwidth: float
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray


def cases(options) -> Iterator[Case]:
    """Every shape that was asked for."""
    only = tuple(map(int, options.only.split(","))) if options.only else None
    for d, n_outputs in SHAPES:
        if only not in (None, (d, n_outputs)):
            continue
        n = options.n or (8_192 if d > 300 else 16_384)
        rng = np.random.default_rng(options.seed)
        q, k, v = (rng.standard_normal((n, c), np.float32) for c in (d, d, n_outputs))
        yield Case("0.3 sqrt(d)", 0.3 * d**0.5, q, k, v)
        if d == 64:
            yield Case("Scott", n ** (-1 / (d + 4)), q, k, v)


def ours(case: Case, engine: str, n_threads: int):
    """A call of the public function."""
    kernel = lp.kernels.Gaussian(case.bandwidth)
    run = {"engine": engine, "rtol": 1e-6, "n_threads": n_threads}
    return partial(lp.local_mean, case.q, case.k, case.v, kernel, **run)


def label(case: Case, engine: str, n_threads: int) -> str:
    """The engine; of ``"auto"`` the one that it takes."""
    if engine != "auto":
        return engine
    kernel = lp.kernels.Gaussian(case.bandwidth)
    plan = lp.plan(case.q, case.k, kernel, values=case.v, rtol=1e-6, n_threads=n_threads)
    return f"auto: {plan.engine}"


def ceiling(case: Case, n_threads: int):
    """The two products of each tile and nothing between them: one BLAS thread for each worker."""
    from threadpoolctl import threadpool_limits

    def products(start):
        q = case.q[start : start + TILE]
        weights, moment = (np.empty((len(q), c), np.float32) for c in (TILE, case.v.shape[1]))
        for first in range(0, len(case.k) - len(case.k) % TILE, TILE):
            np.dot(q, case.k[first : first + TILE].T, out=weights)
            np.dot(weights, case.v[first : first + TILE], out=moment)

    def call():
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(products, range(0, len(case.q), TILE)))

    return call


def contenders(case: Case, options) -> dict[str, Contender]:
    """All that take part, by name."""
    data = (case.q, case.k, case.v, case.bandwidth)
    found = {
        engine: Contender(partial(ours, case, engine, options.threads))
        for engine in (options.engine, "auto")
    }
    found["torch"] = Contender(partial(peer_torch.gaussian_mean, *data))
    if case.q.shape[1] <= options.keops_up_to:
        found["KeOps"] = Contender(partial(peer_keops.gaussian_mean, *data))
    if case.q.shape[1] >= 16:
        found["ceiling"] = Contender(partial(ceiling, case, options.threads))
    return found


def measure(case: Case, options, row) -> None:
    """Print the case's lines: the engine's, and that of `auto`."""
    run = contenders(case, options)
    found = compare(run, n_threads=options.threads, rounds=options.rounds, budget=options.budget)
    n = len(case.q)
    sample = np.random.default_rng(1).choice(n, min(n, 200), replace=False)
    true = oracle.truth(case.q[sample], case.k, case.v, case.bandwidth)
    error = {
        name: oracle.mean_error(times.result[sample], true)
        for name, times in found.items()
        if times.result is not None
    }
    for engine in dict.fromkeys((options.engine, "auto")):
        mine = found[engine]
        ratios = (_ratio(found, run, name, mine) for name in ("torch", "KeOps", "ceiling"))
        errors = (error[engine], error.get("torch", "-"), error.get("KeOps", "-"))
        cost = (mine.median, f"{n * n / mine.median / 1e9:.2f} G", *ratios)
        shape = (case.q.shape[1], case.v.shape[1], n, case.name)
        row(*shape, label(case, engine, options.threads), *cost, *errors, mine.first)


def _ratio(found, run, name, mine):
    if name not in run:
        return "-"
    return ratio(found[name], mine) if name in found else None


def main(argv=None) -> None:
    """Print the table."""
    parser = arguments(__doc__, n=0, only="", engine="fused", rounds=9, budget=15.0, keops_up_to=16)
    options = parser.parse_args(argv)
    heading("Gaussian local mean, float32, rtol 1e-6", options.threads)
    row = table(COLUMNS)
    for case in cases(options):
        measure(case, options, row)


if __name__ == "__main__":
    main()
