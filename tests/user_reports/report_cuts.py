"""The same rows in memory and in Dask chunks of every shape, for the tests of user reports."""

from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

Cut = Callable[[Any], Any]


def _in_chunks(sizes: Callable[[int], tuple[int, ...]]) -> Cut:
    def cut(rows: Any) -> Any:
        array = np.asarray(rows)
        rest = tuple((n,) for n in array.shape[1:])
        return da.from_array(array, chunks=(sizes(len(array)), *rest))

    return cut


CUTS: dict[str, Cut] = {
    "in memory": np.asarray,
    "one chunk": _in_chunks(lambda n: (n,)),
    "one row each": _in_chunks(lambda n: (1,) * n),
    "empty first": _in_chunks(lambda n: (0, n)),
    "empty last": _in_chunks(lambda n: (n, 0)),
    "empty between": _in_chunks(lambda n: (n - n // 2, 0, n // 2)),
}
every_cut = pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)


def results(found: Any) -> Any:
    """What was found, computed if it is lazy; a tuple stays one."""
    if isinstance(found, tuple):
        return tuple(results(each) for each in found)
    return dask.compute(found, scheduler="sync")[0]


def layouts(rows: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The same rows as arrays that lie differently in memory."""
    array = np.asarray(rows)
    wide = np.repeat(array, 2, axis=-1)
    frozen = array.copy()
    frozen.setflags(write=False)
    yield "read-only", frozen
    yield "Fortran", np.asfortranarray(array)
    yield "strided", wide[..., ::2]
    yield "backwards", array[::-1].copy()[::-1]
    if array.dtype.kind != "b":
        yield "big-endian", array.astype(array.dtype.newbyteorder(">"))
