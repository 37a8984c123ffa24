"""Measured peak of memory against the planned one and the limit: `python benchmarks/memory.py`.

One process per shape, and one line for each: its highest resident memory, of every worker where
there are workers.  ``--all`` adds the long shape, 200,000 x 200,000 rows (4e10 pairs) under 1 GiB;
``--only NAME`` takes one, and ``--scale 0.1`` a tenth of the queries.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import locpipe as lp
from locpipe import kernels, reductions
from locpipe.store import ZarrKeys, ZarrPairs

MiB = 2**20
GAUSSIAN = kernels.Gaussian(1.0)


def rows(n, d, dtype=np.float64, seed=0):
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal((max(n, 1), d), dtype=dtype)


def mean(queries, keys, values=None, **run):
    """The plan of a local mean, and the call."""
    plan = lp.plan(queries, keys, GAUSSIAN, values=values, **run)
    return plan, lambda: lp.local_mean(queries, keys, values, GAUSSIAN, **run)


def neighbours(queries, keys, k, **run):
    plan = lp.plan(queries, keys, reduction="nearest", k=k, **run)
    return plan, lambda: lp.nearest(queries, keys, k, **run)


def computed(case):
    """The case of lazy results: what is measured is to compute them."""
    import dask

    plan, call = case
    return plan, lambda: dask.compute(call())


def plane(scale, folder):
    x = rows(int(40_000 * scale), 2)
    return mean(x, x, x, memory_limit="512 MiB")


def among_themselves(scale, folder):
    """Rows under a kernel that is dear, so that each pair is weighed once."""
    x, kernel = rows(int(20_000 * scale), 8), kernels.Tricube(3.0)
    plan = lp.plan(x, x, kernel, values=x, memory_limit="1 GiB")
    return plan, lambda: lp.local_mean(x, x, x, kernel, memory_limit="1 GiB")


def two_passes(scale, folder):
    """Means over the 10 nearest keys, and of the nearest where a mask leaves none."""
    x, run = rows(int(20_000 * scale), 3), {"empty": "nearest", "memory_limit": "1 GiB"}
    kernel, keys = kernels.Nearest(10) * lp.masks.Window(50), rows(20_000, 3, seed=1)
    plan = lp.plan(x, keys, kernel, values=keys, **run)
    return plan, lambda: lp.local_mean(x, keys, keys, kernel, **run)


def long(scale, folder):
    """4e10 pairs."""
    x = rows(int(200_000 * scale), 2, np.float32)
    return mean(x, x, x[:, 0], memory_limit="1 GiB")


def pictures(scale, folder):
    keys = rows(60_000, 784, np.float32)
    return mean(rows(int(2_000 * scale), 784, np.float32, 1), keys, keys[:, 0])


def best_fifty(scale, folder):
    return neighbours(rows(int(30_000 * scale), 16, seed=1), rows(20_000, 16), 50)


def self_neighbours(scale, folder):
    x = rows(int(60_000 * scale), 4, np.float32)
    return neighbours(x, x, 5, memory_limit="1 GB")


def moments(scale, folder):
    keys = lp.Keys(rows(30_000, 4), rows(30_000, 2))
    reduction, q = reductions.LocalMoments(1, (1.0,) * 4, 2), rows(int(20_000 * scale), 4, seed=1)
    plan = lp.plan(q, keys, GAUSSIAN, reduction=reduction)
    return plan, lambda: lp.fold(reduction, q, keys, GAUSSIAN)


def many_outputs(scale, folder):
    keys, values = rows(40_000, 8, np.float32), rows(40_000, 600, np.float32)
    return mean(rows(int(20_000 * scale), 8, np.float32, 1), keys, values)


def dask_threads(scale, folder):
    import dask.array as da

    q = da.from_array(rows(int(100_000 * scale), 3, np.float32), chunks=(5_000, 3))
    return computed(mean(q, rows(20_000, 3, np.float32), rows(20_000, 3)))


def store(scale, folder):
    """Keys of 1.2 GB in a Zarr store, under 768 MiB."""
    import zarr

    n_keys, d = 600_000, 256
    shape, chunks = (n_keys, d), (20_000, d)
    plain = {"store": str(folder), "dtype": "f8", "compressors": None}
    keys = zarr.create_array(name="keys", shape=shape, chunks=chunks, **plain)
    values = zarr.create_array(name="values", shape=n_keys, chunks=chunks[0], **plain)
    block = rows(*chunks)
    for start in range(0, n_keys, chunks[0]):
        keys[start : start + chunks[0]] = block + start / n_keys
        values[start : start + chunks[0]] = block[:, 0]
    source = ZarrKeys(folder, "keys", "values")
    return mean(rows(int(100 * scale), d, seed=1), source, memory_limit="768 MiB")


def cluster(scale, folder):
    """Nearest keys of 40,000 x 32 on two workers of 1 GB."""
    import dask.array as da

    x = rows(int(40_000 * scale), 32, np.float32)
    return computed(neighbours(da.from_array(x, chunks=(len(x) // 20, 32)), x, 5))


def dask_pairs(scale, folder):
    """Weights of 4,000 x 4,000 in one chunk of a Dask array."""
    import dask.array as da

    n = int(4_000 * scale)
    x, kernel = rows(n, 2), kernels.Precomputed(da.ones((n, n), chunks=-1) * 0.5)
    plan = lp.plan(x, x, kernel, values=x[:, 0])
    return computed((plan, lambda: lp.local_mean(x, x, x[:, 0], kernel)))


def stored_pairs(scale, folder):
    """Weights in a Zarr store, in chunks far larger than a tile."""
    import zarr

    n_queries, n_keys = int(512 * scale), 8_000
    form = {"shape": (n_queries, n_keys), "chunks": (512, n_keys), "dtype": "f8"}
    zarr.create_array(str(folder), name="weights", **form)[:] = np.abs(rows(n_queries, n_keys))
    q, keys = rows(n_queries, 2), rows(n_keys, 2)
    kernel = kernels.Precomputed(ZarrPairs(folder, "weights"))
    plan = lp.plan(q, keys, kernel, values=keys[:, 0])
    return plan, lambda: lp.local_mean(q, keys, keys[:, 0], kernel)


def stored(n_keys, d, folder, n_queries, **layout):
    """Keys in a Zarr store of some layout."""
    import zarr

    keys = zarr.create_array(str(folder), name="keys", shape=(n_keys, d), dtype="f4", **layout)
    step = layout.get("shards", layout["chunks"])[0]
    for start in range(0, n_keys, step):
        keys[start : start + step] = rows(step, d, np.float32, start)
    source, q = ZarrKeys(folder, "keys"), rows(n_queries, d, np.float32)
    plan = lp.plan(q, source, GAUSSIAN, reduction="log_mass")
    return plan, lambda: lp.log_mass(q, source, GAUSSIAN)


def shards(scale, folder):
    """Few chunks in a shard, many shards: all stored chunks of a block are fetched first."""
    layout = {"chunks": (1_000, 64), "shards": (100_000, 64)}
    return stored(200_000, 64, folder, int(256 * scale), **layout)


def columns(scale, folder):
    """A chunk per column."""
    return stored(100_000, 100, folder, int(256 * scale), chunks=(50_000, 1))


SHAPES = {
    case.__name__: case
    for case in (
        plane,
        among_themselves,
        two_passes,
        pictures,
        best_fifty,
        self_neighbours,
        moments,
        many_outputs,
        dask_threads,
        store,
        dask_pairs,
        stored_pairs,
        shards,
        columns,
        cluster,
    )
}


def peak_bytes():
    """The highest resident memory of this process since `forget_peak`."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


def warm_up():
    """What a fold imports, so that making the data is not counted either."""
    lp.log_mass(np.zeros((9, 1)), np.zeros((9, 1)), GAUSSIAN)


def run_here(case, scale, folder):
    plan, call = case(scale, folder)
    forget_peak()
    seconds = timed(call)
    return {"plan": plan, "peak": peak_bytes(), "seconds": seconds}


def run_on_workers(case, scale, folder):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="1 GB",
            dashboard_address="127.0.0.1:0",
        ) as workers,
        Client(workers) as client,
    ):
        plan, call = case(scale, folder)
        seconds = timed(call)
        return {"plan": plan, "peak": max(client.run(peak_bytes).values()), "seconds": seconds}


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(name, scale=1.0):
    """Run one shape in this process and tell its figures."""
    warm_up()
    case = long if name == "long" else SHAPES[name]
    with tempfile.TemporaryDirectory() as folder:
        run = run_on_workers if name == "cluster" else run_here
        found = run(case, scale, Path(folder))
    plan = found.pop("plan")
    planned = {"planned": plan.peak_bytes, "limit": plan.memory_limit, "predicted": plan.seconds}
    sizes = {"shape": f"{plan.n_queries:,} x {plan.n_keys:,} x {plan.n_features}"}
    return sizes | planned | found | {"plan": str(plan)}


def show(name, found):
    """One line of the table."""
    kept = found["peak"] <= found["planned"] <= found["limit"]
    mib = "".join(f"{found[key] / MiB:7.0f} MiB" for key in ("peak", "planned", "limit"))
    times = f"{found['seconds']:7.1f} ({found['predicted']:.1f})"
    print(f"{name:15}  {found['shape']:>25}{mib}{times}" + ("" if kept else "  NOT KEPT"))


def main():
    """Print the table, one subprocess per line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="the long shape too")
    parser.add_argument("--only", choices=[*SHAPES, "long"])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--json", action="store_true", help="of --only, in this process")
    given = parser.parse_args()
    if given.json:
        print(json.dumps(measure(given.only, given.scale)))
        return
    names = [given.only] if given.only else [*SHAPES, *(["long"] if given.all else [])]
    print(f"{'':15}  {'queries x keys x features':>25}   measured    planned      limit  seconds")
    for name in names:
        command = [sys.executable, __file__, "--json", "--only", name]
        command += ["--scale", str(given.scale)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name}:\n{done.stderr}")
        show(name, json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
