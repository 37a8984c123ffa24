"""`log_density` against scikit-learn and KDEpy: `python benchmarks/density.py`.

Standard normal points in the plane, Scott's bandwidth, all points as queries.  KDEpy's grid is
refined until its error falls no further, or to `--cells` (twice as many take minutes); there it
is timed against ours at `rtol` 1e-6 and at the error that it has.  scikit-learn's trees know only
one thread.
"""

from functools import partial

import numpy as np
import oracle
import peer_densities
from side_by_side import Contender, arguments, compare, heading, lines, seconds, shown, table

import locpipe as lp


def ours(x, bandwidth, n_threads, engine="auto", rtol=1e-6):
    """A call of the public function."""
    run = {"engine": engine, "rtol": rtol, "n_threads": n_threads}
    return partial(lp.log_density, x, x, lp.kernels.Gaussian(bandwidth), **run)


def best_grid(x, bandwidth, error, most_cells):
    """Cells a side and degree at which KDEpy's error stops to fall, and that error."""
    row = table(("KDEpy: cells a side", "spline", "seconds", "error"))
    best = (np.inf, 0, 0)
    for n_cells in (2**i for i in range(6, 14) if 2**i <= most_cells):
        found = []
        for degree in (1, 3):
            spent, result = seconds(peer_densities.kdepy(x, bandwidth, n_cells, degree))
            found.append((error(result), n_cells, degree))
            row(n_cells, "linear" if degree == 1 else "cubic", spent, found[-1][0])
        if min(found)[0] > best[0] / 1.2:  # a finer grid costs more and gives nothing
            break
        best = min(found)
    print()
    return best


def main(argv=None) -> None:
    """Print the tables."""
    parser = arguments(__doc__, n=30_000, cells=4096, engine="auto", rounds=5, budget=30.0)
    options = parser.parse_args(argv)
    heading(f"Log density of {options.n:,} points in the plane", options.threads)
    x = np.random.default_rng(options.seed).standard_normal((options.n, 2))
    h = options.n ** (-1 / 6)
    run = {"reduction": "density", "engine": options.engine, "rtol": 1e-6}
    print(f"Engine: {options.engine}, {lp.plan(x, x, lp.kernels.Gaussian(h), **run).engine}\n")
    sample = np.random.default_rng(1).choice(options.n, min(options.n, 1000), replace=False)
    true = oracle.truth(x[sample], x, None, h)
    constant = np.log(options.n * 2 * np.pi * h**2)

    def error(log_density):
        wrong = np.abs(np.expm1(log_density[sample] + constant - true.log_mass)).max()
        return float(np.nan_to_num(wrong, nan=np.inf))

    mine = partial(ours, x, h, options.threads, options.engine)
    run = {"ours": Contender(mine)}
    run["scikit-learn, rtol 1e-6"] = Contender(partial(peer_densities.scikit_learn, x, h), False)
    try:
        reached, *grid = best_grid(x, h, error, options.cells)
    except ImportError:
        reached, grid = 1e-6, (1, 1)
    kdepy = f"KDEpy, {grid[0]} cells a side"
    run[kdepy] = Contender(partial(peer_densities.kdepy, x, h, *grid))
    loose = f"ours, rtol {shown(reached)}"
    run[loose] = Contender(partial(mine, rtol=min(reached, 0.1)))
    how = {"n_threads": options.threads, "rounds": options.rounds, "budget": options.budget}
    found = compare(run, **how)
    lines(found, ["ours", "scikit-learn, rtol 1e-6", kdepy], error)
    lines(found, [loose, kdepy], error)


if __name__ == "__main__":
    main()
