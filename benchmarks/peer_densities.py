"""Density estimates by scikit-learn and by KDEpy, with a Gaussian of one bandwidth."""

from functools import partial

import numpy as np


def scikit_learn(x, bandwidth):
    """Log density at every point; its trees run on one thread."""
    from sklearn.neighbors import KernelDensity

    kde = KernelDensity(bandwidth=bandwidth, rtol=1e-6)
    return lambda: kde.fit(x).score_samples(x)


def kdepy(x, bandwidth, n_cells, degree):
    """Log density at every point: by FFT on a grid, and from there by splines of a degree."""
    from KDEpy import FFTKDE

    return partial(_on_a_grid, FFTKDE, x, bandwidth, n_cells, degree)


def _on_a_grid(estimator, x, bandwidth, n_cells, degree):
    from scipy.interpolate import RectBivariateSpline

    points, density = estimator(kernel="gaussian", bw=bandwidth).fit(x).evaluate(n_cells)
    sides = [np.unique(column) for column in points.T]
    spline = RectBivariateSpline(*sides, density.reshape(n_cells, n_cells), kx=degree, ky=degree)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(spline.ev(*x.T))
