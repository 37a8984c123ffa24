"""What a fold refuses at once, in one sentence: reductions, kernels, pairs, kinds of arrays."""

import array_api_strict as strict
import dask.array as da
import numpy as np
import pytest

import locpipe as lp
from locpipe.blocks import ArrayPairs
from locpipe.errors import InputError

K, R = lp.kernels, lp.reductions
X2 = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
X, Y = X2[:, :1], np.array([1.0, 2.0, 4.0])
G = K.Gaussian(1.0)
KEYS = lp.Keys(X, values=Y)
KEYS_2 = lp.Keys(X2, values=X2)


@pytest.mark.parametrize(
    ("reduction", "keys", "message"),
    [
        (R.WeightedMean(2), KEYS, r"WeightedMean was made for n_outputs=2, got keys with 1 value"),
        (R.WeightedSum(2), KEYS, r"WeightedSum was made for n_outputs=2, got keys with 1 value"),
        (R.WeightedVariance(1), KEYS_2, "n_outputs=1, got keys with 2 value"),
        (R.LocalMoments(1, (1.0,), 2), KEYS, "n_outputs=2, got keys with 1 value"),
        (R.LocalMoments(1, (1.0,), 1), KEYS_2, "with 1 number.* in scale, got queries with 2 feat"),
        (R.Gather(1, 2, 1), KEYS, "Gather was made for n_features=2, got keys with 1 feature"),
        (R.Gather(1, 1, 2), KEYS, "n_outputs=2, got keys with 1 value"),
        (R.WeightedMean(1), X, "WeightedMean needs values, one row per key, got none"),
        (R.WeightedSum(1), X, "WeightedSum needs values"),
        (R.WeightedVariance(1), X, "WeightedVariance needs values"),
        (R.Gather(1, 1, 1), X, "Gather needs values"),
        (R.LocalMoments(1, (1.0,), 1), X, "LocalMoments needs values"),
        (R.MajorizationStep(3), KEYS_2, "n_components=3, got queries with 2 feature"),
        ("mean", KEYS, "reduction must be a reduction object .*, got 'mean'$"),
        (R.TopK, KEYS, "reduction must be a reduction object .*, got the class TopK$"),
    ],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_reductions_state_what_they_need(reduction, keys, message, lazy):
    queries = keys.data if isinstance(keys, lp.Keys) else keys
    queries = da.from_array(queries, chunks=(2, -1)) if lazy else queries
    with pytest.raises(InputError, match=message):
        lp.fold(reduction, queries, keys, G, np.ones((3, 3)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: R.TopK(2.5), r"k must be a whole number of at least 1, got 2\.5"),
        (lambda: R.TopK("a"), "k must be a whole number of at least 1, got 'a'"),
        (lambda: R.TopK(True), "k must be a whole number"),
        (lambda: R.WeightedVariance(0), "n_outputs must be a whole number of at least 1, got 0"),
        (lambda: R.WeightedMean(np.ones((2, 3))), r"got an array of shape \(2, 3\)"),
        (lambda: R.MajorizationStep(0), "n_components must be a whole number"),
        (lambda: R.Gather(1, 0), "n_features must be a whole number of at least 1"),
        (lambda: R.LocalMoments(1.5, (1.0,)), r"order must be a whole number .*, got 1\.5"),
        (lambda: R.LocalMoments(1, (0.0,)), "scale must be a tuple of positive numbers"),
        (lambda: R.LocalMoments(1, 1.0), "scale must be a tuple of positive numbers"),
        (lambda: R.LocalMoments(1, (np.nan,)), "scale must be a tuple of positive numbers"),
        (lambda: R.LocalMoments(1, ("a",)), "scale must be a tuple of positive numbers"),
        (lambda: ArrayPairs([[1.0], [1.0, 2.0]]), "rows of numbers of equal length"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_numpy_integers_are_whole_numbers():
    assert R.TopK(np.int64(2)) == R.TopK(2)
    assert R.LocalMoments(np.int8(1), np.array([1.0])) == R.LocalMoments(1, (1.0,))
    assert lp.log_mass(X, X, G, n_threads=np.int64(2)).shape == (3,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lp.fold(R.LogMass(), X, X, "gaussian"), "kernel must be .*, got 'gaussian'$"),
        (lambda: lp.fold(R.LogMass(), X, X, K.Gaussian), "kernel must be .*, got the class Gauss"),
        (lambda: lp.plan(X, X, K.Gaussian, reduction=R.LogMass()), "got the class Gaussian"),
        (lambda: lp.local_mean(X, X, G), "third argument is values, so give the kernel fourth or"),
        (lambda: lp.local_mean(X, X, G, Y), "values must be .*, got the kernel Gaussian"),
        (lambda: lp.local_mean(X, X, Y, Y), r"kernel must be .*, got an array of shape \(3,\)$"),
        (lambda: lp.local_mean(X, X, np.ones((3, 0)), G), r"at least one column, got shape \(3, 0"),
        (lambda: lp.log_mass(X, X, G, empty=X), r"empty must be .*, got an array of shape \(3, 1"),
        (lambda: lp.log_mass(X, X, G, engine=X), r"engine must be .*, got an array of shape"),
        (lambda: lp.log_mass(X, X, G, memory_limit=X), r"memory_limit .*, got an array of shape"),
        (lambda: lp.fold(R.MajorizationStep(1), X, X), "works on pairs, got pairs=None"),
        (lambda: lp.fold(R.MajorizationStep(1), X, X, pairs="no"), "pairs must be"),
    ],
)
def test_what_stands_in_the_wrong_place_is_named(call, message):
    with pytest.raises(InputError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("pairs", [np.ones((3, 3)), [[1, 1, 1]] * 3, ArrayPairs([[1, 1, 1]] * 3)])
def test_pairs_of_any_form(pairs):
    expected = lp.fold(R.MajorizationStep(1), X, X, pairs=ArrayPairs(np.ones((3, 3))))
    np.testing.assert_array_equal(lp.fold(R.MajorizationStep(1), X, X, pairs=pairs)[4], expected[4])
    lazy = lp.fold(R.MajorizationStep(1), X, X, pairs=da.ones((3, 3), chunks=2))
    np.testing.assert_array_equal(lazy[4].compute(), expected[4])


@pytest.mark.parametrize(
    ("delta", "weight", "message"),
    [
        (np.inf, 1.0, "dissimilarities must be finite, got an infinite one"),
        (1.0, np.nan, "weights of cells must be finite and non-negative"),
        (1.0, -1.0, "weights of cells must be finite and non-negative"),
        (1.0, np.inf, "weights of cells must be finite and non-negative"),
    ],
)
def test_cells_are_checked(delta, weight, message):
    cells, weights = np.ones((3, 3)), np.ones((3, 3))
    cells[1, 2], weights[1, 2] = delta, weight
    with pytest.raises(InputError, match=message):
        lp.fold(R.MajorizationStep(1), X, X, pairs=ArrayPairs(cells, weights))


def test_a_missing_cell_needs_no_weight():
    cells, weights = np.ones((3, 3)), np.ones((3, 3))
    cells[1, 2], weights[1, 2] = np.nan, np.nan
    found = lp.fold(R.MajorizationStep(1), X, X, pairs=ArrayPairs(cells, weights))
    np.testing.assert_array_equal(found.weight, [3, 2, 3])


def test_arrays_of_two_libraries_are_named():
    x = strict.asarray(X)
    lazy = da.from_array(X, chunks=2)
    cases = [(x, X, "numpy"), (X, x, "array_api_strict"), (lazy, x, "array_api_strict")]
    for queries, keys, other in cases:
        message = f"all arrays must be of one library, got .* and data of the keys of {other}"
        with pytest.raises(InputError, match=message):
            lp.log_mass(queries, keys, G)
    with pytest.raises(InputError, match="and values of the keys of numpy"):
        lp.local_mean(x, x, Y, G)
    with pytest.raises(InputError, match="and pairs number 0 of numpy"):
        lp.log_mass(x, x, K.Precomputed(np.ones((3, 3))))


def test_another_library_is_served_throughout():
    q, x, y = strict.asarray(X + 0.25), strict.asarray(X), strict.asarray(Y)
    kernel = K.Uniform(0.1)
    found = lp.local_mean(q, x, y, kernel, empty="nearest")
    np.testing.assert_array_equal(np.asarray(found), Y)
    prepared = lp.prepare(x, y, strict.asarray(np.array([1.0, 0.0, 1.0])))
    assert prepared.total_weight == 2
    found = lp.local_mean(q, prepared, kernel=K.Uniform(0.5))
    np.testing.assert_array_equal(np.asarray(found), [1.0, np.nan, 4.0])
    with pytest.raises(InputError, match="at least one positive entry, got all zeros"):
        lp.local_mean(q, x, y, kernel, sample_weight=strict.zeros(3))


@pytest.mark.parametrize("lazy", [False, True])
def test_results_that_the_dtype_cannot_hold_are_refused(lazy):
    def run(q, y):
        q = da.from_array(q, chunks=(2, -1)) if lazy else q
        return np.asarray(lp.local_mean(q, X, y, G))

    assert run(X.astype(np.float16), Y).dtype == np.float16
    with pytest.raises(InputError, match=r"must fit float16, .* got \d+[.]\d+ in row [02]; give"):
        run(X.astype(np.float16), np.full(3, 1e6))
    with pytest.raises(InputError, match="results must fit float32"):
        run(X.astype(np.float32), np.full(3, 1e60))
    assert run(X, np.full(3, 1e60))[0] == 1e60
    far = np.array([[6e4]], np.float16)
    with pytest.raises(InputError, match="results must fit float16"):
        lp.nearest(far, -far, 1)
    with pytest.raises(InputError, match="results must fit float16"):
        lp.log_mass(far, X, G)
