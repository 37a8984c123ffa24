"""Compiled engines in graphs: nothing computed early, small tasks, right results."""

import pickle

import dask.array as da
import numpy as np
import pytest

import locpipe as lp
from locpipe.errors import InputError
from locpipe.testing import no_compute

GAUSSIAN = lp.kernels.Gaussian(0.5)
rng = np.random.default_rng(0)
QUERIES, KEYS, VALUES = (rng.normal(size=shape) for shape in ((700, 2), (3_000, 2), (3_000, 1)))
QUERIES[:3] += 40.0


def lazy(array, chunks):
    return da.from_array(array, chunks=-1).rechunk((chunks, -1))


LAZY_QUERIES = lazy(QUERIES, (1, 0, 299, 400))
LAZY_KEYS, LAZY_VALUES = (lazy(array, (0, 7, 1_993, 1_000)) for array in (KEYS, VALUES))


def keys_of(kind):
    """Keys and values in memory, lazy, or prepared."""
    if kind == "memory":
        return KEYS, VALUES
    rows = LAZY_KEYS, LAZY_VALUES
    return rows if kind == "lazy" else (lp.prepare(*rows), None)


@pytest.mark.parametrize("engine", ["fused", "pruned", "spectral"])
@pytest.mark.parametrize("kind", ["memory", "lazy", "prepared"])
@pytest.mark.parametrize("known", [True, False])
def test_a_graph_gives_what_the_reference_gives(engine, kind, known):
    keys, values = keys_of(kind)
    queries = LAZY_QUERIES if known else LAZY_QUERIES[LAZY_QUERIES[:, 0] > -100]
    with no_compute():
        if (engine, kind) == ("spectral", "lazy"):  # nobody has looked at these keys
            with pytest.raises(InputError, match=r"needs the box of the keys: call lp.prepare"):
                lp.plan(queries, keys, GAUSSIAN, values=values, engine=engine)
            return
        assert lp.plan(queries, keys, GAUSSIAN, values=values, engine=engine).engine == engine
        mean = lp.local_mean(queries, keys, values, GAUSSIAN, engine=engine)
    found = mean.compute(scheduler="threads")
    expected = lp.local_mean(QUERIES, KEYS, VALUES, GAUSSIAN, engine="dense")
    sizes = lp.local_mean(QUERIES, KEYS, np.abs(VALUES), GAUSSIAN, engine="dense")
    assert (np.abs(found - expected) <= 1e-10 * sizes).all()


@pytest.mark.parametrize("engine", ["fused", "pruned", "spectral"])
def test_tasks_are_small(engine):
    keys, _ = keys_of("prepared")
    mean = lp.local_mean(LAZY_QUERIES, keys, kernel=GAUSSIAN, engine=engine)
    own = set(mean.dask) - set(LAZY_QUERIES.dask) - set(LAZY_KEYS.dask) - set(LAZY_VALUES.dask)
    assert max(len(pickle.dumps(mean.dask[key])) for key in own) < 5_000


@pytest.mark.parametrize("engine", ["fused", "pruned"])
def test_nearest_keys_in_a_graph(engine):
    with no_compute():
        found = lp.nearest(LAZY_QUERIES, LAZY_KEYS, 5, engine=engine)
    expected = lp.nearest(QUERIES, KEYS, 5, engine="dense")
    for array, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(array.compute(scheduler="threads"), right)


def test_the_plan_says_which_engine_does_what():
    def engine_line(kernel=GAUSSIAN, **how):
        plan = lp.plan(QUERIES, KEYS, kernel, values=VALUES, **how)
        return str(plan).splitlines()[3].split(maxsplit=1)[1]

    assert engine_line(engine="fused") == "fused, one pass over the keys"
    spectral = "spectral, rows in doubt by fused, one pass over the keys"
    assert engine_line(engine="spectral") == spectral
    assert engine_line(engine="pruned") == "pruned, one pass over the keys"
    nearest = engine_line(lp.kernels.Nearest(5), engine="dense")
    assert nearest == "dense, ranking by dense, 2 passes over the keys"
