"""Every metric of `nearest` against scikit-learn and against right values of user reports."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import pairwise
from sklearn.metrics.pairwise import nan_euclidean_distances

import locpipe as lp
from locpipe.errors import InputError
from locpipe.metrics import METRICS

THEIRS = {
    "euclidean": pairwise.euclidean_distances,
    "manhattan": pairwise.manhattan_distances,
    "cosine": pairwise.cosine_distances,
    "nan-euclidean": nan_euclidean_distances,
    "haversine": pairwise.haversine_distances,
}
every = pytest.mark.parametrize("metric", METRICS)


def rows(seed, n, metric):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2 if metric == "haversine" else 5))
    if metric == "haversine":
        x[:, 0] = np.arctan(x[:, 0])  # latitudes lie between the poles
    if metric == "nan-euclidean":
        x[rng.random(x.shape) < 0.3] = np.nan
    return x


@every
@given(seed=st.integers(0, 2**32 - 1))
def test_distances_equal_scikit_learn(metric, seed):
    q, k = rows(seed, 6, metric), rows(seed + 1, 20, metric)
    theirs = THEIRS[metric](q, k)
    distances, index = lp.nearest(q, k, 20, metric=metric)
    found = index >= 0
    assert (found.sum(1) == np.isfinite(theirs).sum(1)).all()
    row = np.nonzero(found)[0]
    np.testing.assert_allclose(distances[found], theirs[row, index[found]], rtol=1e-7, atol=1e-9)
    assert (distances[:, 1:] >= distances[:, :-1]).all()


@every
def test_chunks_do_not_matter(metric):
    q, k = rows(1, 12, metric), rows(2, 30, metric)
    expected = lp.nearest(q, k, 4, metric=metric)
    lazy = lp.nearest(
        da.from_array(q, chunks=(5, -1)), da.from_array(k, chunks=(7, 1)), 4, metric=metric
    )
    for ours, theirs in zip(lazy, expected, strict=True):
        np.testing.assert_array_equal(ours.compute(scheduler="sync"), theirs)


def test_parallel_rows_are_at_cosine_distance_zero():
    distances, _ = lp.nearest([[3.0, 4.0]], [[3e140, 4e140], [3e-200, 4e-200]], 2, metric="cosine")
    np.testing.assert_allclose(distances, 0, atol=1e-15)


@pytest.mark.parametrize(
    ("metric", "q", "message"),
    [
        ("taxi", [[0.0, 0.0]], "metric must be one of .*'cosine'.*got 'taxi'"),
        ("haversine", [[0.0]], "rows of 2 features, got 1"),
        ("euclidean", [[np.nan]], "must be finite"),
        ("nan-euclidean", [[np.inf]], "must not be infinite, got inf in row 0"),
    ],
)
def test_bad_input(metric, q, message):
    with pytest.raises(InputError, match=message):
        lp.nearest(q, np.zeros((3, len(q[0]))), 1, metric=metric)
