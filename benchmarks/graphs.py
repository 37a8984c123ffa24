"""Size of graphs and seconds to build them: `python benchmarks/graphs.py`.

Local means of 10,000 to 10,000,000 Dask queries; keys in memory, in a store, and Dask.  Nothing
is computed.  Bytes are those of the pickled graph, as a scheduler is sent it.
"""

import itertools
import tempfile
import time

import cloudpickle
import dask.array as da
import numpy as np
import zarr
from dask.base import collections_to_expr

import locpipe as lp
from locpipe.store import ZarrKeys

N_KEYS = 100_000
QUERIES = [(10**4, 10**3), (10**5, 10**4), (10**6, 10**4), (10**7, 10**4), (10**7, 10**5)]
KERNEL = lp.kernels.Gaussian(1.0)


def key_kinds(folder):
    """Keys that give a mean of one output, by kind."""
    x = np.random.default_rng(0).normal(size=(N_KEYS, 2))
    zarr.create_array(folder, name="x", data=x, chunks=(10_000, 2))
    zarr.create_array(folder, name="v", data=x[:, 0], chunks=10_000)
    few, many = (
        da.random.default_rng(0).normal(size=(n, 2), chunks=(10**4, 2)) for n in (N_KEYS, 10**6)
    )
    return {
        "in memory": lp.Keys(x, x[:, 0]),
        "in a store": ZarrKeys(folder, "x", "v"),
        "Dask, 10 chunks": lp.Keys(few, few[:, 0]),
        "Dask, 100 chunks": lp.Keys(many, many[:, 0]),
    }


def build(n_queries, chunk, keys):
    """Tasks, seconds and pickled bytes of the graph of a local mean."""
    queries = da.random.default_rng(1).normal(size=(n_queries, 2), chunks=(chunk, 2))
    start = time.perf_counter()
    mean = lp.local_mean(queries, keys, kernel=KERNEL)
    seconds = time.perf_counter() - start
    n_tasks = len(mean.__dask_graph__()) - queries.npartitions
    return n_tasks, seconds, len(cloudpickle.dumps(collections_to_expr([mean])))


def main():
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        kinds = key_kinds(folder)
        build(10, 5, kinds["in memory"])  # imports
        print(f"{'queries':>10}  {'a chunk':>8}  {'keys':17}  {'tasks':>8}  seconds       bytes")
        for (n_queries, chunk), (kind, keys) in itertools.product(QUERIES, kinds.items()):
            n_tasks, seconds, size = build(n_queries, chunk, keys)
            print(
                f"{n_queries:10,}  {chunk:8,}  {kind:17}  {n_tasks:8,}  {seconds:7.2f}  {size:10,}",
                flush=True,
            )


if __name__ == "__main__":
    main()
