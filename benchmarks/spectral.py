"""The spectral engine against its own two transforms: `python benchmarks/spectral.py`.

1e6 x 1e6 normal points in the plane, `rtol` 1e-6, mean of one output and log mass, checked on 1,000
random rows, the 200 of least mass and 50 queries 3 to 1,000 bandwidths off the data.  `--large`
does 1e7 x 1e7 in a process of its own, and gives that process's peak of memory.
"""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import oracle
import peer_finufft
from side_by_side import Contender, arguments, compare, heading, lines, peak, seconds, table

import locpipe as lp

FEATURES = 2


def data(n, seed):
    """Keys, a value for each, and Scott's bandwidth."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, FEATURES))
    return x, np.sin(3 * x[:, 0]) + rng.standard_normal(n), n ** (-1 / (FEATURES + 4))


def far_off(x, bandwidth, n, seed):
    """Points 3 to 1,000 bandwidths beyond the outermost key, in all directions."""
    rng = np.random.default_rng(seed + 2)
    out = rng.standard_normal((n, FEATURES))
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    return out * ((out @ x.T).max(1) + bandwidth * np.geomspace(3, 1000, n))[:, None]


def runs(x, v, queries, bandwidth, options):
    """The two calls of ours: local mean, log mass."""
    run = {"engine": options.engine, "rtol": 1e-6, "n_threads": options.threads}
    kernel = lp.kernels.Gaussian(bandwidth)
    return (
        partial(lp.local_mean, queries, x, v, kernel, **run),
        partial(lp.log_mass, queries, x, kernel, **run),
    )


def grid_of(x, v, bandwidth, options):
    """The grid of modes that the engine takes; None of an engine without one."""
    run = {"engine": options.engine, "rtol": 1e-6, "n_threads": options.threads}
    plan = lp.plan(x, x, lp.kernels.Gaussian(bandwidth), values=v, **run)
    return getattr(plan.op.engine, "grid", None)


def check(x, v, queries, bandwidth, mean, log_mass, n_off) -> None:
    """Print the largest errors of three kinds of rows."""
    n = len(x)
    rows = {
        "random": np.random.default_rng(1).choice(n, min(n, 1000), replace=False),
        "least mass": np.argsort(log_mass[:n])[:200],
        "off the data": np.arange(n, n + n_off),
    }
    row = table(("rows", "how many", "least log mass", "error of mean", "error of log mass"))
    for name, chosen in rows.items():
        true = oracle.truth(queries[chosen], x, v, bandwidth)
        errors = oracle.mean_error(mean[chosen], true), oracle.mass_error(log_mass[chosen], true)
        row(name, len(chosen), f"{true.log_mass.min():.4g}", *errors)
    print()


def large(options) -> None:
    """Print seconds and the peak of memory of a process of its own."""
    command = [sys.executable, __file__, "--alone", "--n", str(10 * options.n)]
    command += ["--engine", options.engine, "--threads", str(options.threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    row = table(("points", "seconds", "peak GiB", "of it before"))
    row(*json.loads(done.stdout.splitlines()[-1]))


def alone(options) -> None:
    """One local mean, and what the process took."""
    x, v, bandwidth = data(options.n, options.seed)
    before = peak()
    spent, _ = seconds(runs(x, v, x.copy(), bandwidth, options)[0])
    print(json.dumps([options.n, spent, peak(), before]))


def main(argv=None) -> None:
    """Print the tables."""
    defaults = {"n": 1_000_000, "off": 50, "rounds": 5, "budget": 60.0}
    parser = arguments(__doc__, **defaults, engine="spectral", large=False, alone=False)
    options = parser.parse_args(argv)
    if options.alone:
        return alone(options)
    x, v, bandwidth = data(options.n, options.seed)
    queries = np.vstack([x, far_off(x, bandwidth, options.off, options.seed)])
    heading(f"Spectral local mean, {options.n:,} x {options.n:,} points", options.threads)
    contenders = {
        "local mean": Contender(lambda: runs(x, v, x.copy(), bandwidth, options)[0]),
        "local mean, values > 0": Contender(
            lambda: runs(x, np.abs(v), x.copy(), bandwidth, options)[0]
        ),
        "log mass": Contender(lambda: runs(x, v, x.copy(), bandwidth, options)[1]),
    }
    if (grid := grid_of(x, v, bandwidth, options)) is not None:
        print(f"FINUFFT: eps {grid.tolerance:.0e}, {' x '.join(map(str, grid.modes))} modes\n")
        bare = partial(peer_finufft.two_calls, grid, x, v, options.threads)
        contenders = {"two FINUFFT calls": Contender(bare), **contenders}
    how = {"n_threads": options.threads, "rounds": options.rounds, "budget": options.budget}
    lines(compare(contenders, **how), list(contenders))
    checked = runs(x, v, queries, bandwidth, options)
    check(x, v, queries, bandwidth, *(call() for call in checked), options.off)
    return large(options) if options.large else None


if __name__ == "__main__":
    main()
