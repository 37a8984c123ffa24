"""The functions over stored arrays: the shape that arrays give, and nothing read whole."""

from pathlib import Path

import numpy as np
import pytest
import zarr

import locpipe as lp
from locpipe.errors import InputError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 2)), RNG.normal(size=30)
KERNEL = lp.kernels.Gaussian(0.7)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return a group with keys and their values, 1-d and 2-d."""
    for name, data in (("x", X), ("flat", Y), ("column", Y[:, None])):
        zarr.create_array(str(tmp_path), name=name, data=data)
    return str(tmp_path)


@pytest.mark.parametrize(("values", "shape"), [("flat", (5,)), ("column", (5, 1))])
def test_means_have_the_shape_that_arrays_give(
    url: str, values: str, shape: tuple[int, ...]
) -> None:
    keys = lp.store.ZarrKeys(url, "x", values)
    for stored in (keys, lp.prepare(keys)):
        mean = lp.local_mean(X[:5], stored, kernel=KERNEL)
        assert mean.shape == shape
        np.testing.assert_array_equal(mean.ravel(), lp.local_mean(X[:5], X, Y, KERNEL))


def test_zarr_arrays_are_not_read_whole(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = zarr.open_array(url, path="x"), zarr.open_array(url, path="flat")
    monkeypatch.setattr(zarr.Array, "__getitem__", lambda *_: pytest.fail("it was read"))
    for call in (
        lambda: lp.local_mean(x, X, Y, KERNEL),
        lambda: lp.local_mean(X, x, Y, KERNEL),
        lambda: lp.local_mean(X, X, y, KERNEL),
        lambda: lp.log_mass(X, X, KERNEL, sample_weight=y),
        lambda: lp.prepare(x),
    ):
        with pytest.raises(
            InputError,
            match=r"got a zarr Array, which .*store\.ZarrKeys .*dask\.array\.from_zarr",
        ):
            call()
    with pytest.raises(InputError, match=r"take locpipe\.store\.ZarrPairs or dask\.array"):
        lp.kernels.Precomputed(x)
