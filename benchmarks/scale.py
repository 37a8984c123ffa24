"""Time and memory from 1e4 to 1e7 rows: `python benchmarks/scale.py --picture docs/benchmarks.png`.

Local means of one output at n queries over the n keys themselves, standard normal, Scott's
bandwidth, `rtol` 1e-6; each engine as far as it is sensible.  Every line is a process of its own,
which has computed a small case before the clock starts.  Exponents are fitted to the upper half.
"""

import json
import subprocess
import sys
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np
from side_by_side import arguments, heading, peak, seconds, table

import locpipe as lp


class Curve(NamedTuple):
    """An engine, and the largest n that it is sensible for."""

    engine: str
    n_features: int
    largest: int

    @property
    def name(self) -> str:
        return f"{self.engine}, d = {self.n_features}"


CURVES = (
    Curve("fused", 2, 200_000),
    Curve("spectral", 2, 10_000_000),
    Curve("auto", 2, 10_000_000),
    Curve("fused", 3, 200_000),
    Curve("pruned", 3, 1_000_000),
    Curve("auto", 3, 10_000_000),
)
SIZES = (10_000, 30_000, 100_000, 200_000, 500_000, 1_000_000, 3_000_000, 10_000_000)
LONG = 10.0  # seconds of a case that is not repeated


class Point(NamedTuple):
    """What one process measured; memory in GiB."""

    n: int
    seconds: float
    peak: float
    data: float
    engine: str


def call(curve: Curve, n: int, n_threads: int):
    """The local mean, and the engine that it takes."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, curve.n_features), np.float32)
    v = rng.standard_normal(n, np.float32)
    run = {"engine": curve.engine, "rtol": 1e-6, "n_threads": n_threads}
    kernel = lp.kernels.Gaussian(n ** (-1 / (curve.n_features + 4)))
    plan = lp.plan(x, x, kernel, values=v, **run)
    return partial(lp.local_mean, x, x.copy(), v, kernel, **run), plan.engine


def alone(curve: Curve, n: int, n_threads: int) -> Point:
    """Measured in this process."""
    work, engine = call(curve, n, n_threads)
    call(curve._replace(engine=engine), 2_000, n_threads)[0]()
    before, spent = peak(), [seconds(work)[0]]
    while sum(spent) < LONG and len(spent) < 5:
        spent.append(seconds(work)[0])
    return Point(n, median(spent), peak(), before, engine)


def apart(curve: Curve, n: int, n_threads: int) -> Point:
    """Measured in a process of its own."""
    case = json.dumps([curve, n])
    command = [sys.executable, __file__, "--alone", case, "--threads", str(n_threads)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Point(*json.loads(done.stdout.splitlines()[-1]))


def exponent(points: list[Point], name: str) -> float:
    """Slope of the logs over the upper half of the sizes, two at least."""
    upper = points[len(points) // 2 :] if len(points) > 3 else points
    logs = np.log([(point.n, getattr(point, name)) for point in upper])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]) if len(upper) > 1 else float("nan")


def draw(found: dict[str, list[Point]], path: str) -> None:
    """Two panels: seconds and peak memory against n."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    panels = (("seconds", "seconds, 2 threads"), ("peak", "peak resident memory, GiB"))
    for axis, (name, label) in zip(axes, panels, strict=True):
        for curve, points in found.items():
            style = "--" if curve.startswith("auto") else "-"
            legend = f"{curve}: $n^{{{exponent(points, name):.2f}}}$"
            numbers = [getattr(point, name) for point in points]
            axis.loglog([p.n for p in points], numbers, style, marker="o", ms=4, label=legend)
        axis.set(xlabel="queries = keys", ylabel=label)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.suptitle("Gaussian local mean at Scott's bandwidth, float32, rtol 1e-6", fontsize=11)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv=None) -> None:
    """Print the tables, and draw the picture."""
    parser = arguments(__doc__, largest=10_000_000, only="", picture="", alone="")
    options = parser.parse_args(argv)
    if options.alone:
        curve, n = json.loads(options.alone)
        print(json.dumps(alone(Curve(*curve), n, options.threads)))
        return
    heading("Growth: local mean of n rows over themselves", options.threads)
    row = table(("engine", "n", "seconds", "peak GiB", "of it before", "engine taken"))
    found: dict[str, list[Point]] = {}
    for curve in (c for c in CURVES if options.only in (c.engine, "")):
        for n in (n for n in SIZES if n <= min(curve.largest, options.largest)):
            point = apart(curve, n, options.threads)
            found.setdefault(curve.name, []).append(point)
            row(curve.name, *point)
    print()
    row = table(("engine", "exponent of time", "of memory"))
    for name, points in found.items():
        row(name, exponent(points, "seconds"), exponent(points, "peak"))
    if options.picture:
        draw(found, options.picture)


if __name__ == "__main__":
    main()
