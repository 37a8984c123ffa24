"""Pair sources over sparse matrices and Dask arrays, and what a matrix of pairs must be."""

import pickle

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import locpipe as lp
from locpipe.blocks import ArrayPairs, PairSource
from locpipe.errors import InputError
from locpipe.kernels import Gaussian, Precomputed
from locpipe.kernels.masks import ExcludeSelf
from locpipe.kernels.normalized import Normalized
from locpipe.pairs import DaskPairs, SparsePairs, as_pairs
from locpipe.testing import assert_close, no_compute

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


def sparse(seed, shape=(9, 13), density=0.3):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 1, shape) * (rng.random(shape) < density)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(FORMATS),
    st.lists(st.integers(0, 9), min_size=2, max_size=2),
    st.lists(st.integers(0, 13), min_size=2, max_size=2),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_tiles_of_sparse_matrices(seed, kind, rows, columns, density):
    dense = sparse(seed, density=density)
    pairs = SparsePairs(scipy.sparse.csr_array(dense).asformat(kind))
    rows, columns = slice(*sorted(rows)), slice(*sorted(columns))
    assert pairs.shape == (9, 13)
    np.testing.assert_array_equal(pairs.tile(rows, columns)[0], dense[rows, columns])


def test_duplicates_are_summed_and_the_matrix_is_left_alone():
    matrix = scipy.sparse.csr_matrix(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    tile = SparsePairs(matrix).tile(slice(0, 1), slice(0, 2))[0]
    np.testing.assert_array_equal(tile, [[2.0, 5.0]])
    assert matrix.nnz == 3


def test_sparse_pairs_pickle_as_references():
    pairs = SparsePairs(scipy.sparse.random_array((1000, 1000), density=0.1, rng=0))
    data = pickle.dumps(pairs)
    assert len(data) < 2000
    whole = slice(0, 1000), slice(0, 1000)
    np.testing.assert_array_equal(pickle.loads(data).tile(*whole)[0], pairs.tile(*whole)[0])


def test_weights_of_a_sparse_matrix():
    dense = sparse(1)
    dense[4] = 0
    v = np.arange(13.0)
    with np.errstate(invalid="ignore"):
        expected = dense @ v / dense.sum(1)
    q, k = np.zeros(9), np.zeros(13)
    mean = lp.local_mean(q, k, v, Precomputed(scipy.sparse.csc_array(dense)))
    assert_close(mean, expected)


def test_a_dask_matrix_stays_lazy():
    with no_compute():
        pairs = as_pairs(da.ones((4, 6), chunks=(2, 3)), "weights")
        kernel = Precomputed(da.ones((4, 6), chunks=(2, 3)))
    assert isinstance(pairs, DaskPairs)
    assert isinstance(pairs, PairSource)
    assert kernel.pairs.shape == pairs.shape == (4, 6)
    with pytest.raises(InputError, match="read inside the tasks of a graph only"):
        pairs.tile(slice(0, 1), slice(0, 1))


def test_a_dask_matrix_has_known_chunks():
    x = da.ones((4, 6), chunks=(2, 3))
    with pytest.raises(InputError, match=r"known chunk sizes.*call compute_chunk_sizes\(\)"):
        Precomputed(x[x[:, 0] > 0])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([1.0], r"weights must be a matrix \(n_queries, n_keys\), got 1 dimension\(s\)"),
        (3.0, r"must be a matrix \(n_queries, n_keys\), got 0 dimension\(s\)"),
        ([["a"]], "weights must be real numbers, got dtype <U1"),
        ([[1j]], "weights must be real numbers, got dtype complex128"),
        ([[1.0], [1.0, 2.0]], "weights must be rows of equal length, got a ragged sequence"),
        (scipy.sparse.eye_array(2, dtype=complex), "real numbers, got dtype complex128"),
    ],
)
def test_bad_matrices(pairs, message):
    with pytest.raises(InputError, match=f"precomputed .*{message}|precomputed {message}"):
        Precomputed(pairs)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32, np.float32])
def test_weights_of_any_real_dtype(dtype):
    w = np.array([[1, 0, 1]], dtype=dtype)
    assert_close(lp.local_mean([0.0], np.zeros(3), [1.0, 5.0, 2.0], Precomputed(w)), [1.5])
    matrix = scipy.sparse.csr_array(w)
    assert_close(lp.local_mean([0.0], np.zeros(3), [1.0, 5.0, 2.0], Precomputed(matrix)), [1.5])


def test_kernels_are_equal_that_share_their_pairs():
    pairs = ArrayPairs(np.ones((2, 2)))
    assert Precomputed(pairs) == Precomputed(pairs)
    assert hash(Precomputed(pairs)) == hash(Precomputed(pairs))
    assert Precomputed(np.ones((2, 2))) != Precomputed(np.ones((2, 2)))
    assert Precomputed(np.ones((2, 2))) * ExcludeSelf() != Precomputed(np.ones((2, 2)))


def test_pair_sources_are_found_and_changed_anywhere():
    a, b = ArrayPairs(np.ones((2, 2))), ArrayPairs(np.full((2, 2), 3.0))
    kernel = Normalized((Gaussian() * Precomputed(a)).on("values", "values") * Precomputed(a))
    assert kernel.pair_sources() == (a, a)
    changed = kernel.with_pair_sources(lambda source: b if source is a else source)
    assert changed.pair_sources() == (b, b)
    assert kernel.pair_sources() == (a, a)
    assert Gaussian().pair_sources() == ()
    assert Gaussian().with_pair_sources(lambda source: b) == Gaussian()


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array, da.from_array])
def test_weights_are_finite_and_not_negative(weight, make):
    kernel = Precomputed(make(np.array([[weight, 1.0]])))
    message = "weights must be finite non-negative numbers, and some are negative, infinite or NaN;"
    with pytest.raises(InputError, match=message):
        np.asarray(lp.local_mean([0.0], [0.0, 0.0], [1.0, 2.0], kernel))


MASKED = np.ma.masked_array(np.ones((2, 4)), mask=np.eye(2, 4) > 0)
WHOLE = np.ma.masked_array(np.full((2, 4), 3.0))
Y = [1.0, 2.0, 3.0, 6.0]


def test_masked_cells_are_refused():
    with pytest.raises(
        InputError, match=r"^precomputed weights must not be masked, got masked num"
    ):
        Precomputed(MASKED)
    with pytest.raises(InputError, match="must not be masked, got masked numbers; give 0 where"):
        lp.local_mean([0.0, 0.0], np.zeros(4), Y, Precomputed(ArrayPairs(MASKED)))
    for chunks in ((2, 4), (1, 3)):
        lazy = Precomputed(da.from_array(MASKED, chunks=chunks))
        late = lp.local_mean([0.0, 0.0], np.zeros(4), Y, lazy)
        with pytest.raises(InputError, match="pairs must not be masked, got masked numbers; fill"):
            late.compute(scheduler="sync")


def test_masks_that_hide_nothing_are_no_masks():
    for weights in (WHOLE, da.from_array(WHOLE, chunks=(1, 3))):
        mean = lp.local_mean([0.0, 0.0], np.zeros(4), Y, Precomputed(weights))
        assert np.asarray(mean).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("chunks", [4, 2])
@pytest.mark.parametrize("name", ["data", "values", "sample_weight", "bandwidth", "ids", "time"])
def test_masked_rows_in_dask_are_refused(name, chunks):
    given = {n: np.arange(1.0, 5.0) for n in ("data", "values", "sample_weight", name)}
    given[name] = da.from_array(np.ma.masked_array(given[name], [0, 0, 1, 0]), chunks=chunks)
    what = "keys" if name == "data" else f"{name} of the keys"
    late = lp.local_mean([1.0], lp.Keys(**given), kernel=Gaussian())
    with pytest.raises(
        InputError, match=f"^{what} must not be masked, got masked numbers; drop or"
    ):
        late.compute(scheduler="sync")
