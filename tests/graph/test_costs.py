"""Planned seconds: about what they take, reading included."""

import time

import numpy as np
import pytest
import zarr

import locpipe as lp
from locpipe import kernels, reductions
from locpipe.store import ZarrKeys, ZarrPairs

MEAN, GAUSSIAN = reductions.WeightedMean(1), kernels.Gaussian(1.0)


def cpu_seconds(call):
    """Of this thread alone, the better of two."""
    taken = []
    for _ in range(2):
        start = time.thread_time()
        call()
        taken.append(time.thread_time() - start)
    return min(taken)


@pytest.mark.parametrize(
    ("d", "reduction", "kernel"),
    [
        (2, MEAN, GAUSSIAN),
        (256, reductions.TopK(5), kernels.Nearness()),
        (128, reductions.TopK(5), kernels.Nearness("cosine")),
        (16, MEAN, kernels.Gaussian(1.0, metric="cosine")),
        (2, MEAN, kernels.Nearest(10, "tricube")),
        (3, reductions.Gather(100, 3, 1), GAUSSIAN),
        (2, reductions.LocalMoments(1, (1.0, 1.0), 1), GAUSSIAN),
    ],
)
def test_planned_seconds_are_about_those_taken(d, reduction, kernel):
    rng = np.random.default_rng(0)
    q, x = rng.normal(size=(256, d)), rng.normal(size=(4096, d))
    run = {"n_threads": 1, "engine": "dense"}
    keys = lp.Keys(x, x[:, 0])
    plan = lp.plan(q, keys, kernel, reduction=reduction, **run)
    taken = cpu_seconds(lambda: lp.fold(reduction, q, keys, kernel, **run))
    # A factor of 2 where they were measured; other machines and other load get another 2.
    assert taken / 4 < plan.seconds < 4 * taken


def test_reading_a_store_costs(tmp_path):
    x, q = np.zeros((20_000, 4)), np.zeros((9, 4))
    zarr.create_array(tmp_path / "few", data=x, chunks=(10_000, 4))
    zarr.create_array(tmp_path / "many", data=x, chunks=(100, 4))

    def seconds(keys, n=9, **run):
        run = {"reduction": "log_mass", "engine": "dense"} | run
        return lp.plan(np.zeros((n, 4)), keys, GAUSSIAN, **run).seconds

    few, many = (ZarrKeys(tmp_path / name, "") for name in ("few", "many"))
    in_memory = seconds(x)
    assert in_memory < seconds(few) < seconds(many) < in_memory + 1
    # Prepared keys are read as they are; each block of queries reads all of them.
    assert seconds(lp.prepare(few)) == seconds(few)
    one, four = (seconds(many, n, n_threads=1) - seconds(x, n, n_threads=1) for n in (9, 50_000))
    assert four == pytest.approx(4 * one)
    nearest = lp.plan(q, few, kernels.Nearest(2), reduction=reductions.LogMass()).seconds
    assert nearest - in_memory > 2 * (seconds(few) - in_memory)  # it goes twice


def test_reading_pairs_costs_by_the_tile(tmp_path):
    zarr.create_array(tmp_path, name="w", data=np.ones((300, 600)), chunks=(300, 600))
    q, x = np.zeros((300, 2)), np.zeros((600, 2))

    def seconds(pairs):
        return lp.plan(q, x, kernels.Precomputed(pairs), reduction="log_mass", n_threads=1).seconds

    stored, plain = seconds(ZarrPairs(tmp_path, "w")), seconds(np.ones((300, 600)))
    assert 0.005 < stored - plain < 0.1
