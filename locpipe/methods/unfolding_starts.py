"""Where unfolding starts: a closed form that error-free data solves at once, and random points."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, svds

from locpipe.blocks import PairSource
from locpipe.engines import single_threaded_libraries
from locpipe.graph import fold
from locpipe.reductions import MajorizationStep

__all__ = ["random_start", "spectral_start"]

Floats = NDArray[np.float64]
Points = tuple[Floats, Floats]

TINY = 0.01
"""Spread of random starts, in units of the typical dissimilarity: from nearly one place the
points unfold in order.  A third to a half of such starts reach the best fit of 120 + 90 points,
so of ten hardly ever none does."""

_FLAT = 1e-9
"""Least eigenvalue of T T^T beside 1 or the largest; below it there is only rounding."""

_ALIKE = 1e-13
"""Largest doubly centred square beside the largest square; below it there is only rounding."""


def random_start(pairs: PairSource, n_components: int, seed: int, number: int) -> Points:
    """Row and column points nearly in one place, different for each `number`."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    return _tiny(pairs, n_components, rng)


def _tiny(pairs: PairSource, n_components: int, rng: np.random.Generator) -> Points:
    m, n = pairs.shape
    points = rng.standard_normal((m + n, n_components))
    total_weight = fold(MajorizationStep(1), np.zeros((m, 1)), np.zeros((n, 1)), pairs=pairs)[0]
    typical = np.sqrt(_stress_at(pairs, 0 * points, 0.0) / total_weight.sum())
    points *= TINY * typical
    return points[:m], points[m:]


def spectral_start(pairs: PairSource, n_components: int) -> Points:
    """Metric unfolding in closed form.

    Notes
    -----
    ``-1/2 H D^2 H = P Q^T`` gives the centred points up to a linear map T: ``X = P T``,
    ``Y = Q T^-T + c``.  The row means of ``D^2`` are linear in ``T T^T`` and ``T c``, and least
    squares gives both [1]_, [2]_.  Exact for error-free distances.  Where the squares have no
    positive definite T T^T (ranks: all rows have the same mean), T is the identity.  Where they
    are a row part plus a column part (all dissimilarities alike), ``P Q^T`` is 0 and says
    nothing: then the points are random, nearly in one place.  Missing cells are filled from row
    and column means; weights play no part.  O(m n n_components).

    References
    ----------
    .. [1] Schoenemann, P. H. (1970). On metric multidimensional unfolding. Psychometrika 35,
       349-366.
    .. [2] Gold, E. M. (1973). Metric unfolding: data requirement for unique solution and
       clarification of Schoenemann's algorithm. Psychometrika 38, 555-569.
    """
    delta = np.asarray(pairs.tile(slice(None), slice(None))[0], dtype=np.float64)
    # Near 1, so that the least squares weigh P^2, P and 1 alike whatever the unit.
    exponent = int(np.frexp(np.nanmax(delta))[1])
    squares = _filled(np.ldexp(delta, -exponent)) ** 2
    inner = _centred(squares)
    if np.abs(inner).max() <= _ALIKE * squares.max():
        return _tiny(pairs, n_components, np.random.default_rng(0))
    with single_threaded_libraries():
        P, Q = _factors(inner, n_components)
        T, shift = _metric(P, squares.mean(axis=1))
        X, Y = P @ T, Q @ np.linalg.inv(T).T + shift
    return _scaled(pairs, np.ldexp(X, exponent), np.ldexp(Y, exponent))


def _filled(delta: Floats) -> Floats:
    """Missing cells from the additive fit of row and column means."""
    missing = np.isnan(delta)
    if not missing.any():
        return delta
    row = np.nanmean(delta, axis=1, keepdims=True)
    column = np.nanmean(delta - row, axis=0, keepdims=True)
    return np.where(missing, np.maximum(row + column, 0.0), delta)


def _centred(squares: Floats) -> Floats:
    rows, columns = squares.mean(axis=1, keepdims=True), squares.mean(axis=0, keepdims=True)
    inner: Floats = -0.5 * (squares - rows - columns + squares.mean())
    return inner


def _factors(inner: Floats, p: int) -> Points:
    """P and Q of rank p with ``P Q^T`` nearest to the doubly centred squares."""
    u, s, vt = _largest(inner, p)
    order = np.argsort(-s, kind="stable")[:p]
    root = np.sqrt(s[order])
    return u[:, order] * root, vt[order].T * root


def _largest(inner: Floats, p: int) -> tuple[Floats, Floats, Floats]:
    if p < min(inner.shape) - 1:
        # A fixed start vector, in no special position: the same points every time.
        start = np.random.default_rng(0).standard_normal(min(inner.shape))
        # ARPACK gives up on some matrices of low rank; LAPACK, slower, does not.
        with suppress(ArpackError):
            u, s, vt = (np.asarray(part, np.float64) for part in svds(inner, k=p, v0=start))
            return u, s, vt
    u, s, vt = np.linalg.svd(inner, full_matrices=False)
    return u, s, vt


def _metric(P: Floats, means: Floats) -> tuple[Floats, Floats]:
    """T and c of least squares: ``means = p T T^T p - 2 p (T c) + constant``."""
    p = P.shape[1]
    upper = np.triu_indices(p)
    twice = np.where(upper[0] == upper[1], 1.0, 2.0)
    quadratic = P[:, upper[0]] * P[:, upper[1]] * twice
    solution = _least_squares(np.column_stack([quadratic, -2 * P, np.ones(len(P))]), means)
    metric = np.zeros((p, p))
    metric[upper] = solution[: len(twice)]
    values, vectors = np.linalg.eigh(metric + np.triu(metric, 1).T)
    if values[0] > _FLAT * max(1.0, values[-1]):
        T = vectors * np.sqrt(values)
        shift: Floats = np.linalg.solve(T, solution[len(twice) : -1]).astype(np.float64)
        return T, shift
    rest = means - np.sum(P * P, axis=1)
    return np.eye(p), _least_squares(np.column_stack([-2 * P, np.ones(len(P))]), rest)[:-1]


def _least_squares(columns: Floats, target: Floats) -> Floats:
    return np.linalg.lstsq(columns, target, rcond=None)[0].astype(np.float64)


def _scaled(pairs: PairSource, X: Floats, Y: Floats) -> Points:
    """The points, stretched to least stress: along a scale s stress is a parabola.

    ``stress(s) = A - 2 s B + s^2 C`` with ``B = sum w delta d``, ``C = sum w d^2``.
    """
    points = np.concatenate([X, Y])
    at_0, at_1, at_2 = (_stress_at(pairs, points, scale) for scale in (0.0, 1.0, 2.0))
    C = (at_2 - 2 * at_1 + at_0) / 2
    B = (C + at_0 - at_1) / 2
    best = B / C if C > 0 else 1.0
    return best * X, best * Y


def _stress_at(pairs: PairSource, points: Floats, scale: float) -> float:
    X, Y = np.split(scale * points, [pairs.shape[0]])
    return float(np.sum(fold(MajorizationStep(X.shape[1]), X, Y, pairs=pairs)[4]))
