import dask.array as da
import numpy as np
import pytest
from sklearn.cluster import MeanShift as SklearnMeanShift
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import locpipe as lp
from locpipe.errors import InputError
from locpipe.testing import assert_close, local_mean_reference


def test_modes_of_the_theory_sheet():
    # Theory sheet 4.1: two points at +-2 with h = 1; the four points of set T.
    modes = lp.MeanShift(bandwidth=1.0, tol=1e-10).fit([[-2.0], [2.0]]).cluster_centers_
    assert_close(np.sort(modes.ravel()), [-1.99865134603022, 1.99865134603022], 1e-9)
    x = np.array([0.0, 1.0, 2.0, 4.0])[:, None]
    mean_shift = lp.MeanShift(bandwidth=1.0, tol=1e-10).fit(x)
    assert_close(mean_shift.cluster_centers_[0, 0], 1.0367340409234, 1e-9)


def test_centres_are_fixed_points_and_labels_recover_blobs():
    X, truth = make_blobs(600, centers=5, cluster_std=0.5, random_state=3)
    mean_shift = lp.MeanShift(bandwidth=0.8).fit(X)
    centres = mean_shift.cluster_centers_
    assert_close(local_mean_reference(centres, X, X, 0.8), centres, 1e-4)
    assert adjusted_rand_score(truth, mean_shift.labels_) > 0.99
    assert (np.diff(mean_shift.mode_density_) <= 0).all()
    theirs = SklearnMeanShift(bandwidth=1.5).fit(X)
    assert adjusted_rand_score(theirs.labels_, mean_shift.labels_) > 0.99


def test_identical_points_are_one_cluster():  # M07
    mean_shift = lp.MeanShift(bandwidth=1.0).fit(np.full((10, 2), 3.0))
    assert_close(mean_shift.cluster_centers_, [[3.0, 3.0]])
    assert (mean_shift.labels_ == 0).all()


def test_tied_integers():  # M01
    X = np.array([20] * 4 + [21] * 3 + [25] * 2)[:, None]
    labels = lp.MeanShift(bandwidth=0.4).fit(X).labels_
    assert labels.tolist() == [0] * 4 + [1] * 3 + [2] * 2


def test_two_groups_are_two_clusters():  # M03
    A = np.array([[0, 0], [0, 2], [2, 0], [2, 2]])
    centres = lp.MeanShift(bandwidth=3.0).fit(np.vstack([A, A + 20])).cluster_centers_
    np.testing.assert_allclose(np.sort(centres, axis=0), [[1, 1], [21, 21]], atol=1e-3)


def test_weights_repeat_rows():
    X = np.array([[0.0], [1.0], [5.0], [5.5]])
    weighted = lp.MeanShift(bandwidth=1.0, tol=1e-9).fit(X, sample_weight=[1, 2, 3, 1])
    repeated = lp.MeanShift(bandwidth=1.0, tol=1e-9).fit(np.repeat(X, [1, 2, 3, 1], axis=0))
    assert_close(weighted.cluster_centers_, repeated.cluster_centers_, 1e-6)


def test_weights_on_dask():
    X = np.array([[0.0], [1.0], [5.0], [5.5]])
    fitted = lp.MeanShift(bandwidth="scott").fit(X, sample_weight=da.ones(4, chunks=2))
    np.testing.assert_array_equal(fitted.labels_, lp.MeanShift().fit(X).labels_)


def test_one_bandwidth_for_all_rows():
    with pytest.raises(InputError, match="one bandwidth for all rows"):
        lp.MeanShift(bandwidth=1.0).fit(lp.Keys([0.0, 1.0], bandwidth=[1.0, 2.0]))


def test_predict_takes_the_nearest_mode_in_bandwidths():
    X = np.array([[0.0, 0.0], [10.0, 0.0]])
    mean_shift = lp.MeanShift(bandwidth=[1.0, 5.0]).fit(X)
    labels = mean_shift.predict([[0.5, 30.0], [9.0, -30.0]])
    np.testing.assert_array_equal(labels, mean_shift.labels_)


def test_says_when_it_stops_early():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        lp.MeanShift(bandwidth=1.0, max_iter=1).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"merge": "basins"}, r"merge must be one of \['bandwidth'\]"),
        ({"max_iter": 0}, "max_iter must be at least 1, got 0"),
        ({"tol": 0}, "tol must be between 0 and 1"),
        ({"bandwidth": 0}, "positive finite"),
        ({"kernel": lp.masks.Causal(), "bandwidth": None}, "needs the Gaussian kernel"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(InputError, match=message):
        lp.MeanShift(**parameters).fit(np.random.default_rng(0).normal(size=(9, 2)))
