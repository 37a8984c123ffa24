"""Plans: from metadata alone, within the limit, readable."""

import re
import threading
import time
from dataclasses import replace
from multiprocessing.pool import ThreadPool

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, get_client

import locpipe as lp
from locpipe.blocks import KeyBlock
from locpipe.engines import Spread
from locpipe.errors import InputError
from locpipe.graph.footprint import bytes_in_memory
from locpipe.graph.inputs import Queries
from locpipe.graph.operation import Operation
from locpipe.graph.place import WORKER_BASELINE
from locpipe.graph.plan import plan_fold
from locpipe.graph.sources import ArrayKeys, read_bytes
from locpipe.reductions import LogMass, TopK, WeightedMean
from locpipe.testing import no_compute

GAUSSIAN = lp.kernels.Gaussian(1.0)
MiB, GiB = 2**20, 2**30
UNKNOWN = (
    r"number of keys must be known, got a Dask array of unknown chunk sizes; call "
    r"compute_chunk_sizes\(\) on it, or lp.prepare\(keys\), first"
)


@pytest.fixture(autouse=True)
def _process_that_holds_nothing_else(monkeypatch):
    """Other tests leave their memory in this process; what is planned here is another one."""
    monkeypatch.setattr("locpipe.graph.place.resident_bytes", lambda: 0)


class Endless:
    """A `KeySource` of any size that holds nothing; it must not be read."""

    def __init__(self, n_keys, n_features=2, n_outputs=None):
        self.n_keys, self.n_features, self.n_outputs = n_keys, n_features, n_outputs

    def iter_blocks(self, block_rows, start=0, stop=None):
        raise AssertionError("a plan reads nothing")


class HeldWhole(Endless):
    """A source that decodes a gigabyte whatever it is asked for."""

    def read_bytes(self, block_rows):
        return GiB


def zeros(n, d=2, dtype=np.float64):
    """Rows that take no memory, however many they are."""
    return np.broadcast_to(np.zeros((1, d), dtype), (n, d))


def plan_of(n_queries, keys, reduction=None, kernel=GAUSSIAN, d=2, **run):
    op = Operation(reduction or LogMass(), kernel)
    return plan_fold(op, Queries(zeros(n_queries, d)), keys, **run)


@pytest.mark.parametrize("limit", [512 * MiB, GiB, 8 * GiB])
@pytest.mark.parametrize("n_threads", [1, 2, 64])
@pytest.mark.parametrize("d", [1, 16, 784])
def test_the_limit_is_kept(limit, n_threads, d):
    for reduction in (LogMass(), WeightedMean(50), TopK(50)):
        plan = plan_of(
            5_000, Endless(10**9, d, 50), reduction, d=d, n_threads=n_threads, memory_limit=limit
        )
        assert plan.peak_bytes <= plan.memory_limit == limit
        assert plan.query_rows % 256 == plan.key_rows % 256 == 0
        assert 1 <= plan.n_threads <= n_threads


def test_auto_takes_what_fits():
    """The trees of all keys are the fastest, and larger than the limit."""
    keys, spread = Endless(10**8, 1), Spread((0.0,), (1.0,), (0.5,), (0.1,))
    how = {"reduction": TopK(1), "kernel": lp.kernels.Nearness(), "d": 1, "spread": spread}
    plans = [plan_of(10**6, keys, memory_limit=limit, **how) for limit in (16 * GiB, 4 * GiB)]
    assert [plan.engine for plan in plans] == ["pruned", "fused"]
    assert plans[0].peak_bytes > 4 * GiB > plans[1].peak_bytes
    with pytest.raises(InputError, match="memory_limit must be at least"):
        plan_of(10**6, keys, memory_limit=4 * GiB, engine="pruned", **how)


def test_no_compiler_is_loaded_that_would_not_fit():
    limits = (8 * GiB, WORKER_BASELINE + 100 * MiB)
    kernel = lp.kernels.Nearest(5)
    plans = [
        plan_of(5_000, Endless(10**6), WeightedMean(1), kernel, memory_limit=limit)
        for limit in limits
    ]
    assert [plan.op.ranker.name for plan in plans] == ["fused", "dense"]


def test_less_memory_means_smaller_blocks_and_then_fewer_threads():
    plans = [
        plan_of(20_000, Endless(10**8, 50, 2_000), WeightedMean(2_000), d=50, n_threads=4,
                memory_limit=limit)
        for limit in (16 * GiB, 2 * GiB, 1 * GiB)
    ]  # fmt: skip
    sizes = [(p.query_rows, p.key_rows, p.n_threads) for p in plans]
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[0][2] == 4


@pytest.mark.parametrize(("n_keys", "per_thread"), [(20_000, 2), (2_000_000, 4)])
def test_a_short_call_has_fewer_blocks(n_keys, per_thread):
    plan = plan_of(4096, ArrayKeys(KeyBlock(zeros(n_keys, 2))), n_threads=2, engine="fused")
    assert plan.n_tasks == 2 * per_thread


def test_what_cannot_fit_is_refused_in_one_sentence():
    keys = np.zeros((9_000_000, 8))  # 576 MB, and none of it touched
    q = np.zeros((10, 8))
    with pytest.raises(InputError, match=r"memory_limit must be at least .* got 512 MiB; hand"):
        lp.log_mass(q, lp.Keys(keys), GAUSSIAN, memory_limit="512 MiB")
    lazy = da.zeros((2 * 10**6, 2), chunks=10**6)
    with pytest.raises(InputError, match=r"got 512 MiB; take smaller chunks of the queries, or"):
        lp.nearest(lazy, q[:, :2], 10, memory_limit="512 MiB")


def test_a_limit_that_nobody_asked_for_never_fails(monkeypatch):
    monkeypatch.setattr("locpipe.config.granted_memory", lambda: 10 * MiB)
    plan = plan_of(3_000, Endless(10**6))
    assert (plan.query_rows, plan.key_rows, plan.n_threads) == (256, 256, 1)
    assert lp.log_mass([[0.0]], [[0.0]], GAUSSIAN) == [0.0]


def test_the_limit_of_the_settings_counts_as_asked_for():
    with lp.config.override(memory_limit="600 MiB"):
        assert plan_of(100, Endless(1000)).memory_limit == 600 * MiB
        with pytest.raises(InputError, match="memory_limit must be at least"):
            plan_of(10**8, Endless(1000), TopK(100))


def test_counts_do_not_overflow():  # D17
    n = 3_000_000
    plan = plan_of(n, Endless(n), TopK(5), memory_limit=GiB)
    assert plan.n_queries * plan.n_keys == 9 * 10**12
    assert plan.n_tasks * plan.query_rows >= n > (plan.n_tasks - 1) * plan.query_rows
    assert plan.peak_bytes <= GiB
    huge = plan_of(2**20, Endless(2**62))
    assert huge.n_queries * huge.n_keys == 2**82
    assert huge.seconds > 1e12
    assert all(type(v) is int for v in (huge.n_tasks, huge.peak_bytes, huge.key_rows))


def test_indices_beyond_32_bits():  # D17
    class Far:
        n_keys, n_features, n_outputs = 2**33, 1, None

        def iter_blocks(self, block_rows, start=0, stop=None):
            yield KeyBlock(np.array([[5.0]]), start=2**33 - 1)

    _, index = lp.fold(TopK(1), [[0.0]], Far(), lp.kernels.Nearness())
    assert index.dtype == np.int64
    assert index[0, 0] == 2**33 - 1


def test_nothing_is_computed():
    x = da.ones((1000, 2), chunks=100)
    unknown = x[x[:, 0] > 0]
    with no_compute():
        tree = lp.plan(x, x + 1, GAUSSIAN, values=x)
        stream = lp.plan(x, np.ones((50, 2)), reduction="nearest", k=3)
        open_ended = lp.plan(unknown, Endless(10**6), GAUSSIAN, reduction="log_mass")
    assert (tree.strategy, tree.n_tasks) == ("tree", 100)
    assert (stream.strategy, stream.n_tasks) == ("stream", 10)
    assert open_ended.n_queries is None
    assert "queries of unknown number x 1,000,000 keys" in str(open_ended)
    with pytest.raises(InputError, match=UNKNOWN):
        lp.plan(x, unknown, GAUSSIAN, reduction="density")


def test_the_scheduler_owns_the_threads_of_a_graph():
    x = da.ones((1000, 2), chunks=100)
    with dask.config.set(num_workers=5):
        plan = lp.plan(x, np.ones((50, 2)), GAUSSIAN, reduction="density", n_threads=1)
    assert plan.n_threads == 5
    with dask.config.set(scheduler="synchronous"):
        assert lp.plan(x, np.ones((50, 2)), GAUSSIAN, reduction="density").n_threads == 1
    with ThreadPool(6) as pool, dask.config.set(pool=pool):
        assert lp.plan(x, np.ones((50, 2)), GAUSSIAN, reduction="density").n_threads == 6


def test_a_graph_runs_the_planned_threads_and_no_more():
    at_work, most, lock = [0], [0], threading.Lock()

    def watched(block):
        with lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
        time.sleep(0.02)
        with lock:
            at_work[0] -= 1
        return block

    x = da.ones((800, 2), chunks=50).map_blocks(watched, meta=np.empty((0, 2)))
    with dask.config.set(num_workers=3):
        plan = lp.plan(x, np.ones((50, 2)), GAUSSIAN, reduction="density")
        lp.log_density(x, np.ones((50, 2)), GAUSSIAN).compute()
    assert 1 < most[0] <= plan.n_threads == 3


def test_threads_of_a_graph_are_not_fewer_to_fit():
    x = da.ones((10**6, 2), chunks=100_000)
    with dask.config.set(num_workers=64), pytest.raises(InputError, match="chunks of the queries"):
        lp.nearest(x, np.ones((50, 2)), 9, memory_limit="1 GiB")


def limit_in(message):
    number, unit = re.search(r"at least ([0-9.]+) (MiB|GiB)", str(message)).groups()
    return f"{number} {unit}"


def test_the_limit_that_a_refusal_names_is_enough():
    m = da.ones((8_000, 8_000), chunks=-1) * 0.5
    x, kernel = np.ones((8_000, 2)), lp.kernels.Precomputed(m)
    calls = {
        "take smaller chunks of the pairs": lambda **run: lp.plan(x, x, kernel, values=x, **run),
        "take smaller chunks of the keys": lambda **run: lp.plan(
            da.ones((10, 2)), da.ones((3 * 10**7, 2), chunks=-1), GAUSSIAN,
            reduction="density", **run,
        ),
        "take smaller chunks of the queries": lambda **run: lp.plan(
            da.ones((2 * 10**6, 2), chunks=10**6), x, reduction="nearest", k=10, **run
        ),
        "store the keys in smaller chunks": lambda **run: lp.plan(
            x, HeldWhole(10**6), GAUSSIAN, reduction="density", **run
        ),
    }  # fmt: skip
    for remedy, call in calls.items():
        with pytest.raises(InputError, match=f"got 512 MiB; {remedy}, or raise") as refused:
            call(memory_limit="512 MiB")
        limit = limit_in(refused.value)
        plan = call(memory_limit=limit)
        assert plan.peak_bytes <= plan.memory_limit


def test_pairs_of_a_dask_array_are_counted():
    n = 2_000
    x, whole = np.ones((n, 2)), da.ones((n, n), chunks=-1)

    def peak(pairs, q=x):
        return lp.plan(q, x, lp.kernels.Precomputed(pairs), values=x).peak_bytes

    chunk = 8 * n * n
    assert peak(whole) > chunk + WORKER_BASELINE
    # Cut to the leaves: the chunk that they come from, and the pieces.
    few = da.from_array(x, chunks=(100, 2))
    assert peak(whole, few) > chunk
    assert peak(da.ones((n, n), chunks=100), few) < peak(whole, few) - chunk // 2


def test_rows_among_themselves_are_weighed_once_where_that_pays():
    def strategy(q, x, kernel, engine="dense"):
        return lp.plan(q, x, kernel, values=x, engine=engine).strategy

    x, tricube = np.random.default_rng(0).normal(size=(5_000, 2)), lp.kernels.Tricube(1.0)
    assert strategy(x, x, tricube) == "symmetric"
    assert strategy(x, x, tricube, "fused") == "stream"
    assert strategy(x, x, GAUSSIAN) == "stream"
    assert strategy(x, x.copy(), tricube) == "stream"
    assert strategy(x[:500], x[:500], tricube) == "stream"


def test_kernels_that_rank_go_twice():
    plan = lp.plan([[0.0]], [[1.0], [2.0]], lp.kernels.Nearest(1), values=[1.0, 2.0])
    assert plan.n_passes == 2
    assert "2 passes over the keys" in str(plan)


def test_seconds_grow_with_pairs_features_and_outputs():
    def seconds(n=10_000, d=2, outputs=1, threads=1):
        rows, run = zeros(n, d), {"engine": "dense", "n_threads": threads}
        return lp.plan(rows, rows, GAUSSIAN, values=zeros(n, outputs), **run).seconds

    assert seconds() > 0
    assert seconds(20_000) == pytest.approx(4 * seconds())
    assert seconds(d=8) > seconds()
    assert seconds(outputs=100) > seconds()
    assert seconds(threads=2) == pytest.approx(seconds() / 2)


def test_memory_maps_and_shared_arrays_are_not_counted_twice(tmp_path):
    x = np.zeros((1000, 2))
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert bytes_in_memory([x, x, x[:], None, da.ones(5)]) == 16_000
    assert bytes_in_memory([mapped, mapped[5:]]) == 0


def test_a_source_says_what_it_holds():
    source = Endless(1000, n_features=3, n_outputs=5)
    assert read_bytes(source, 100) == 2 * 100 * 8 * (3 + 5 + 2)
    source.read_bytes = lambda block_rows: 7 * block_rows
    assert read_bytes(source, 100) == 700


@pytest.fixture(scope="module")
def client():
    with Client(
        processes=False,
        n_workers=1,
        threads_per_worker=3,
        memory_limit="2 GiB",
        dashboard_address="127.0.0.1:0",
    ) as client:
        yield client  # fmt: skip


def test_a_client_brings_its_threads_and_memory(client):
    x = da.ones((1000, 2), chunks=100)
    plan = lp.plan(x, np.ones((50, 2)), GAUSSIAN, reduction="density")
    assert (plan.n_threads, plan.n_workers, plan.memory_limit) == (3, 1, int(0.8 * 2 * GiB))
    given = lp.plan(x, np.ones((50, 2)), GAUSSIAN, reduction="density", memory_limit="1 GiB")
    assert given.memory_limit == GiB


def test_workers_that_are_too_small_are_told_of_once(client):
    x = da.ones((4 * 10**6, 2), chunks=10**6)
    told = (
        r"needs up to .* GiB, and Dask pauses it at 1.60 GiB .*; take smaller chunks of the queries"
    )
    with pytest.warns(UserWarning, match=told) as warned:
        lp.nearest(x, np.ones((50, 2)), 10)
    assert len(warned) == 1


def plan_in_task():
    assert get_client() is not None
    return lp.plan(np.ones((5000, 2)), np.ones((50, 2)), GAUSSIAN, reduction="density")


def test_inside_a_task_one_thread_and_a_share_of_the_worker(client):
    inside = client.submit(plan_in_task, pure=False).result()
    outside = lp.plan(
        np.ones((5000, 2)), np.ones((50, 2)), GAUSSIAN, reduction="density", n_threads=1
    )
    assert (inside.n_threads, inside.memory_limit) == (1, int(0.8 * 2 * GiB))
    same = replace(inside, peak_bytes=0, memory_limit=0)
    assert same == replace(outside, peak_bytes=0, memory_limit=0)
    assert inside.peak_bytes > outside.peak_bytes  # the worker's other threads have work too


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "median"}, r"reduction must be one of \['mean', .*\] or a Reduction"),
        ({"reduction": "nearest"}, "k must be a whole number of at least 1, got None"),
        ({"reduction": "nearest", "k": 9}, "k must be at most the number of keys"),
        ({}, "a local mean needs values"),
        ({"reduction": "density", "kernel": None}, "kernel must be a kernel object"),
        ({"memory_limit": "1 MB"}, "memory_limit must be at least 512 MiB"),
        ({"memory_limit": "lots"}, "memory_limit must be a number of bytes"),
        ({"rtol": 0}, "rtol must be None or a number between 0 and 1, got 0"),
        ({"rtol": 1.0}, "rtol must be None or a number between 0 and 1, got 1.0"),
        ({"rtol": "small"}, "rtol must be None or a number between 0 and 1, got 'small'"),
        ({"n_threads": True}, "n_threads must be a whole number"),
        ({"exclude_self": True}, "exclude_self goes with reduction='nearest' alone, got reduc"),
        ({"metric": "cosine"}, "metric goes with reduction='nearest' alone, got reduction='mean'"),
        ({"pairs": np.ones((3, 3))}, "pairs goes with reduction=a Reduction alone, got"),
        ({"reduction": "nearest", "kernel": None, "metric": "l2"}, "metric must be one of"),
        ({"reduction": "nearest", "k": 3, "exclude_self": True}, r"k must be at most .*\(2\)"),
    ],
)
def test_bad_options(options, message):
    x = np.ones((3, 2))
    with pytest.raises(InputError, match=message):
        lp.plan(x, x, **{"kernel": GAUSSIAN} | options)


def test_plans_take_what_the_functions_take():
    x = np.array([[0.0, np.nan], [1.0, 2.0], [2.0, 1.0]])
    near = lp.plan(x, x, reduction="nearest", k=1, metric="nan-euclidean", exclude_self=True)
    assert near.kernel == lp.kernels.Nearness("nan-euclidean") * lp.masks.ExcludeSelf()
    missing = lp.kernels.Gaussian(1.0, metric="nan-euclidean")
    assert lp.plan(x, x, missing, values=[1.0, 2.0, 3.0])
    cells = lp.plan(x[1:], x, reduction=LogMass(), kernel=missing, pairs=np.ones((2, 3)))
    assert cells.n_queries == 2
    with pytest.raises(InputError, match="pairs must have shape"):
        lp.plan(x, x, reduction=LogMass(), kernel=missing, pairs=np.ones((2, 3)))
    for bad in ({"reduction": "nearest", "k": 1}, {"reduction": "density", "kernel": missing}):
        with pytest.raises(InputError, match="must be finite"):
            lp.plan(x, x, **bad)


@pytest.mark.parametrize("engine", ["dense", "fused"])
def test_threads_and_memory_change_no_bit(engine):
    rng = np.random.default_rng(0)
    x, q = rng.normal(size=(3_000, 2)), rng.normal(size=(1_300, 2))
    expected = lp.local_mean(q, x, x, GAUSSIAN, engine=engine, n_threads=1)
    for run in ({"n_threads": 3}, {"memory_limit": "512 MiB"}):
        found = lp.local_mean(q, x, x, GAUSSIAN, engine=engine, **run)
        np.testing.assert_array_equal(found, expected)


def test_rtol_changes_no_bit_of_the_reference_and_is_kept_by_auto():
    rng = np.random.default_rng(0)
    x, q = rng.normal(size=(3_000, 2)), rng.normal(size=(1_300, 2))
    expected = lp.local_mean(q, x, x, GAUSSIAN, engine="dense")
    found = lp.local_mean(q, x, x, GAUSSIAN, engine="dense", rtol=1e-3)
    np.testing.assert_array_equal(found, expected)
    sizes = lp.local_mean(q, x, np.abs(x), GAUSSIAN, engine="dense")
    for rtol in (1e-3, 1e-6, 1e-10):
        error = np.abs(lp.local_mean(q, x, x, GAUSSIAN, rtol=rtol) - expected)
        assert (error <= rtol * sizes).all()
