"""What Dask costs on top of a fused job of a minute: `python benchmarks/on_dask.py`.

One local mean in space, as many queries as take `--seconds` in this process; then the same queries
as a Dask array in the thread scheduler, on a cluster of threads of this process, and on a
LocalCluster of single-thread workers, all warm (they have compiled) before the clock starts.  This
process runs first and last, and counts with the mean of both: more than five minutes in all, or
half a minute with `--seconds 5`.
"""

from functools import partial
from statistics import mean

import dask.array as da
import numpy as np
from side_by_side import arguments, heading, seconds, shown, table, threads

import locpipe as lp

KERNEL = lp.kernels.Gaussian(0.5)
FEATURES = 3


def points(n, seed):
    """Normal numbers in float32."""
    return np.random.default_rng(seed).standard_normal((n, FEATURES), np.float32)


def local_mean(queries, keys, options):
    """Computed or lazy, as the queries are."""
    run = {"engine": options.engine, "n_threads": options.threads}
    return lp.local_mean(queries, keys, keys[:, 0], KERNEL, **run)


def computed(queries, keys, options, **how):
    """The local mean of queries in memory, through Dask."""
    lazy = da.from_array(queries, chunks=(-(-len(queries) // options.chunks), FEATURES))
    return local_mean(lazy, keys, options).compute(**how)


def warm(call, q, keys):
    """Seconds and result of a call, after one of few rows."""
    call(q[:2000], keys[:2000])
    return seconds(partial(call, q, keys))


def on_cluster(kind, q, keys, options):
    """Seconds and result on threads of this process, or on processes of one thread each."""
    from locpipe.cluster import connect

    size = {"threads": "threads_per_worker", "processes": "n_workers"}[kind]
    with connect(kind, **{size: options.threads}) as client:
        return warm(partial(computed, options=options, scheduler=client), q, keys)


def on_threads(q, keys, options):
    """Seconds and result on Dask's own pool."""
    pool = {"scheduler": "threads", "num_workers": options.threads}
    return warm(partial(computed, options=options, **pool), q, keys)


def size_for(keys, options) -> int:
    """As many queries as take so many seconds in this process, and a little more."""
    n = max(1000, len(keys) // 50)
    here = partial(local_mean, options=options)
    return int(n * options.seconds * 1.1 / warm(here, points(n, 1), keys)[0])


def main(argv=None) -> None:
    """Print the table."""
    defaults = {"keys": 700_000, "seconds": 60.0, "chunks": 64, "engine": "fused"}
    options = arguments(__doc__, **defaults).parse_args(argv)
    heading("Dask on top of a fused job", options.threads)
    keys = points(options.keys, 0)
    q = points(size_for(keys, options), 1)
    print(f"{len(q):,} queries x {len(keys):,} keys, {options.chunks} chunks of queries\n")
    here = partial(local_mean, options=options)
    with threads(options.threads):
        first, result = warm(here, q, keys)
        ways = {
            "Dask, threads": on_threads(q, keys, options),
            "cluster, threads": on_cluster("threads", q, keys, options),
            "cluster, processes": on_cluster("processes", q, keys, options),
        }
        last, _ = warm(here, q, keys)
    row = table(("", "seconds", "speed of in-process", "largest difference"))
    row("in-process, first", first, "", "")
    row("in-process, last", last, "", "")
    for name, (spent, other) in ways.items():
        share = f"{100 * mean([first, last]) / spent:.0f} %"
        row(name, spent, share, shown(float(np.abs(other - result).max())))
    print()


if __name__ == "__main__":
    main()
