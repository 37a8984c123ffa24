"""The pruned engine against the fused one: `python benchmarks/pruned.py`.

400,000 standard normal points in space, float32, log mass and a local mean of one output: a
Gaussian of Scott's bandwidth, and Epanechnikov's kernel of bandwidth 0.1.  The fused engine takes
a random twentieth of the queries, and its seconds are multiplied; `--full` gives it all.
"""

from functools import partial

import numpy as np
import oracle
from side_by_side import Contender, arguments, compare, heading, shown, table

import locpipe as lp

SHARE = 20
COLUMNS = ("kernel", "bandwidth", "pruned s", "fused s", "fused by pruned", "error", "of fused")


def measure(x, v, kernel, profile, options, row) -> None:
    """Print the line of a kernel."""
    n = len(x)
    rng = np.random.default_rng(options.seed + 1)
    part = np.arange(n) if options.full else np.sort(rng.choice(n, -(-n // SHARE), replace=False))
    run = {"rtol": 1e-6, "n_threads": options.threads}
    mean = partial(lp.local_mean, keys=x, values=v, kernel=kernel, **run)
    contenders = {
        "pruned": Contender(lambda: partial(mean, x, engine=options.engine), warm=False),
        "fused": Contender(lambda: partial(mean, x[part], engine=options.peer), warm=False),
    }
    for engine in (options.engine, options.peer):  # what they compile
        lp.local_mean(x[:100], x[:9000], v[:9000], kernel, engine=engine, **run)
    how = {"n_threads": options.threads, "rounds": options.rounds, "budget": options.budget}
    found = compare(contenders, **how)
    sample = rng.choice(len(part), min(len(part), 200), replace=False)
    true = oracle.truth(x[part[sample]], x, v, kernel.bandwidth, profile)
    errors = [
        oracle.mean_error(result, true)
        for result in (found["pruned"].result[part[sample]], found["fused"].result[sample])
    ]
    mine, theirs = found["pruned"].median, found["fused"].median * n / len(part)
    row(type(kernel).__name__, f"{kernel.bandwidth:.3g}", mine, theirs, theirs / mine, *errors)


def main(argv=None) -> None:
    """Print the table."""
    defaults = {"n": 400_000, "rounds": 3, "full": False, "budget": 30.0}
    options = arguments(__doc__, **defaults, engine="pruned", peer="fused").parse_args(argv)
    heading(f"Pruned local mean, {options.n:,} points in space", options.threads)
    rng = np.random.default_rng(options.seed)
    x = rng.standard_normal((options.n, 3), np.float32)
    v = rng.standard_normal(options.n, np.float32)
    if not options.full:
        print(f"Seconds of fused: those of a random {shown(1 / SHARE)} of the queries, scaled.\n")
    row = table(COLUMNS)
    scott = lp.kernels.Gaussian(options.n ** (-1 / 7))
    measure(x, v, scott, oracle.gaussian, options, row)
    measure(x, v, lp.kernels.Epanechnikov(0.1), oracle.epanechnikov, options, row)


if __name__ == "__main__":
    main()
