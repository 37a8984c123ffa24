"""Every engine against the reference: kernels, features, chunkings, weights, dtypes, far queries.

What is compared is the measure of `rtol`: the error of a mass by the mass, and that of a mean by
the local mean of the values' sizes.  Where float64 itself cannot tell (a key on the edge of a
support, exponents of a million), the reference at bandwidths one part in 1e14 apart says so.
"""

from typing import NamedTuple

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.errors import InputError
from locpipe.kernels.names import RADIAL

PROFILES = sorted({kernel.__name__.lower() for kernel in RADIAL.values()} | {"studentt"})
NUDGE = 1e-14


class Problem(NamedTuple):
    q: lp.Queries
    k: lp.Keys
    profile: str
    h: np.ndarray

    def kernel(self, factor=1.0):
        h = tuple(self.h * factor)
        if self.profile == "studentt":
            return lp.kernels.StudentT(2.5, h)
        return RADIAL[self.profile](h)


def sums(problem, factor=1.0, **run):
    """Log mass and mean."""
    kernel, mean = problem.kernel(factor), lp.reductions.WeightedMean(problem.k.values.shape[1])
    log_mass, _, key_weight = lp.fold(lp.reductions.LogMass(), problem.q, problem.k, kernel, **run)
    return log_mass, lp.fold(mean, problem.q, problem.k, kernel, **run)[0], key_weight


def sizes(problem):
    """Local means of the values' sizes."""
    k = lp.Keys(**{**vars(problem.k), "values": np.abs(problem.k.values)})
    return sums(problem._replace(k=k), engine="dense")[1]


def ratio(log_a, log_b):
    """|a / b - 1|, 0 where both are 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(np.isneginf(log_a) & np.isneginf(log_b), 0.0, log_a - log_b)
        return np.abs(np.expm1(difference))


def agree(problem, rtol, **run):
    """Whether an engine keeps `rtol`."""
    below, right, above = (sums(problem, 1 + n * NUDGE, engine="dense") for n in (-1, 0, 1))
    sure = ratio(above[0], below[0]) < 0.5  # or a key lies on the edge of a support
    found = sums(problem, rtol=rtol, **run)
    allowed = rtol + ratio(above[0], right[0]) + ratio(below[0], right[0])
    assert (ratio(found[0], right[0]) <= allowed)[sure].all()
    np.testing.assert_allclose(found[2], right[2], rtol=1e-12)
    with np.errstate(invalid="ignore"):
        nudged = np.abs(above[1] - right[1]) + np.abs(below[1] - right[1])
        error = np.abs(found[1] - right[1])
    empty = np.isnan(right[1])
    np.testing.assert_array_equal(np.isnan(found[1])[sure], empty[sure])
    # A log weight of a million holds the log of a key's own weight to ten digits.
    slack = rtol + 1e-15 * (1 + np.abs(np.where(np.isneginf(right[0]), 0, right[0])))
    allowed = slack[:, None] * sizes(problem) + nudged
    assert (error <= allowed)[sure & ~empty.any(axis=1)].all()


@st.composite
def problems(draw, dimensions, profiles=PROFILES):
    """Clusters, duplicates, offsets, far queries, weights of any size."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d, dtype = draw(st.sampled_from(dimensions)), draw(st.sampled_from([np.float32, np.float64]))
    n_queries, n_keys = draw(st.integers(1, 40)), draw(st.integers(1, 150))
    h, offset = 10.0 ** draw(st.integers(-2, 2)), draw(st.sampled_from([0.0, 1e3, 1e6]))
    x = rng.normal(size=(n_keys, d)) * draw(st.sampled_from([0.0, 0.3, 1.0, 5.0]))
    x[: n_keys // 3] = np.round(x[: n_keys // 3])
    q = rng.normal(size=(n_queries, d))
    q[: n_queries // 4] *= draw(st.sampled_from([1.0, 10.0, 1000.0]))
    q[-1] = x[0]
    scale = h * (np.ones(d) if draw(st.booleans()) else rng.uniform(0.5, 2.0, d))
    x, q = ((scale * rows + offset * h).astype(dtype) for rows in (x, q))
    values = rng.normal(size=(n_keys, draw(st.sampled_from([1, 2, d]))))
    values *= 10.0 ** rng.integers(-3, 4, size=values.shape)
    weight = draw(st.sampled_from([None, (-1, 1), (-300, 149)]))
    if weight is not None:
        weight = 10.0 ** rng.uniform(*weight, n_keys)
        weight[rng.random(n_keys) < 0.2] = 0.0
        weight[0] = 1.0
    keys = lp.Keys(x, values.astype(dtype), weight)
    return Problem(lp.Queries(q), keys, draw(st.sampled_from(profiles)), scale)


RTOLS = st.sampled_from([1e-6, 1e-10])


@given(problems((1, 2, 3, 4, 7)), RTOLS)
def test_compiled_loops(problem, rtol):
    agree(problem, rtol, engine="fused")


@given(problems((12, 40)), RTOLS)
def test_products_of_matrices(problem, rtol):
    agree(problem, rtol, engine="fused")


@given(problems((1, 2, 3, 5)), RTOLS)
def test_pruned_pairs(problem, rtol):
    agree_or_refuse(problem, rtol, engine="pruned")


@given(problems((1, 2, 3), ["gaussian"]), RTOLS)
def test_fourier_transforms(problem, rtol):
    agree_or_refuse(problem, rtol, engine="spectral")


@given(problems((1, 2, 3, 12)), RTOLS)
def test_whatever_is_cheapest(problem, rtol):
    agree(problem, rtol)


def refusal(problem, rtol, **run):
    """What an engine says that cannot serve, or None."""
    try:
        lp.plan(problem.q, problem.k, problem.kernel(), rtol=rtol, **run)
    except InputError as refused:
        return str(refused)
    return None


def agree_or_refuse(problem, rtol, **run):
    """An engine may say that it cannot serve, in one sentence that names one that can."""
    said = refusal(problem, rtol, **run)
    if said is None:
        agree(problem, rtol, **run)
    else:
        assert "cannot serve" in said
        assert "'dense'" in said


def chunked(rows, n):
    """The same rows as Dask arrays."""
    given = {name: a for name, a in vars(rows).items() if a is not None}
    return type(rows)(
        **{name: da.from_array(a, chunks=(n, *a.shape[1:])) for name, a in given.items()}
    )


@pytest.mark.parametrize("engine", ["fused", "pruned", "spectral"])
@given(problems((2,), ["gaussian", "epanechnikov"]), st.integers(1, 60), st.integers(1, 60))
def test_chunks_do_not_matter(engine, problem, q_chunk, k_chunk):
    """Dask arrays in any chunks agree with the reference in memory."""
    lazy = problem._replace(
        q=chunked(problem.q, q_chunk), k=lp.prepare(chunked(problem.k, k_chunk))
    )
    if refusal(lazy, 1e-6, engine=engine) is not None:
        return
    mean = lp.reductions.WeightedMean(problem.k.values.shape[1])
    (found,) = lp.fold(mean, lazy.q, lazy.k, lazy.kernel(), engine=engine, rtol=1e-6)
    below, right, above = (sums(problem, 1 + n * NUDGE, engine="dense") for n in (-1, 0, 1))
    sure = (ratio(above[0], below[0]) < 0.5) & ~np.isnan(right[1]).any(axis=1)
    nudged = np.abs(above[1] - right[1]) + np.abs(below[1] - right[1])
    error = np.abs(found.compute(scheduler="sync") - right[1])
    assert (error <= 2e-6 * sizes(problem) + nudged)[sure].all()
