"""Functions of the data that a kernel looks through: what they give is checked."""

import dask.array as da
import numpy as np
import pytest

import locpipe as lp
from locpipe.errors import InputError
from locpipe.kernels import Gaussian, Tricube


def nothing(x):
    return None


def a_list(x):
    return x.tolist()


def fewer(x):
    return x[:-1]


def cube(x):
    return x[:, :, None]


def missing(x):
    return x * np.nan


def endless(x):
    return x + np.inf


def huge(x):
    return x + 1e200


def words(x):
    return np.full(len(x), "a")


def masked(x):
    return np.ma.masked_array(x, x > 0)


def flat(x):
    return x[:, 0]


def whole(x):
    return (10 * x).astype(np.int64)


X = np.array([[0.5], [1.5], [2.0]])


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("view", "what"),
    [
        (nothing, "a NoneType"),
        (a_list, "a list"),
        (fewer, r"an array of shape \(2, 1\)"),
        (cube, r"an array of shape \(3, 1, 1\)"),
        (missing, r"NaN or numbers beyond 1e\+150"),
        (endless, r"NaN or numbers beyond 1e\+150"),
        (huge, r"NaN or numbers beyond 1e\+150"),
        (words, "numbers of dtype <U1"),
        (masked, "a MaskedArray"),
    ],
)
def test_what_a_function_gives_is_checked(view, what, lazy):
    x = da.from_array(X, chunks=(3, 1)) if lazy else X
    message = (
        rf"^the function {view.__name__} must give an array \(n_rows,\) or \(n_rows, n_columns\) "
        rf"of finite numbers for the 3 rows of the queries that it got, not {what}$"
    )
    for views in ((view, view), (view, "data")):
        with pytest.raises(InputError, match=message):
            np.asarray(lp.log_mass(x, X, Gaussian().on(*views)))
    with pytest.raises(InputError, match="rows of the keys that it got, not"):
        np.asarray(lp.log_mass(X, x, Gaussian().on("data", view)))


def test_missing_values_where_the_kernel_allows_them():
    kernel = Tricube(metric="nan-euclidean").on(missing, missing)
    assert lp.log_mass(X, X, kernel).tolist() == [-np.inf] * 3
    with pytest.raises(InputError, match="not NaN or numbers beyond"):
        lp.log_mass(X, X, Tricube(metric="nan-euclidean").on(endless, endless))


@pytest.mark.parametrize(("view", "factor"), [(flat, 1), (whole, 10)])
def test_columns_may_be_flat_or_whole(view, factor):
    expected = lp.log_mass(X * factor, X * factor, Gaussian())
    np.testing.assert_allclose(lp.log_mass(X, X, Gaussian().on(view, view)), expected)


@pytest.mark.parametrize("view", [np.ones((100, 3)), ["data"], None, 3, "x"])
def test_a_view_is_a_name_or_a_function(view):
    with pytest.raises(
        InputError, match=r"^query must be a function of the data or name .{1,150}$"
    ):
        Gaussian().on(view)


def radians(x):
    return np.deg2rad(x)


def test_angles_are_radians_in_views_too():
    degrees = np.array([[52.0, 13.0], [48.0, 2.0]])
    for kernel in (Gaussian(metric="haversine"), Tricube(metric="haversine") * Gaussian()):
        lp.log_mass(degrees, degrees, kernel.on(radians, radians))
        rows = lp.Queries(np.zeros(2), values=degrees), lp.Keys(np.zeros(2), values=degrees)
        with pytest.raises(InputError, match="latitudes in radians between -pi/2 and pi/2 under"):
            lp.log_mass(*rows, kernel.on("values", "values"))
