"""Local polynomials from gathered neighbours, where their moments are too many to stream.

Either in moments (`gathered_moments`) or, with many features, as the weighted least-squares
problem itself (`local_design`).  Both work row by row, so do a batch of queries at a time:
``for rows in row_slices(n_queries, 1000): local_design(Gathered(*(a[rows] for a in found)), ...)``.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array
from locpipe.reductions.base import finite
from locpipe.reductions.gather import Gathered
from locpipe.reductions.local_moments import (
    LocalMomentsState,
    differences,
    weighted_monomials,
)

__all__ = ["LocalDesign", "gathered_moments", "local_design"]


class LocalDesign(NamedTuple):
    """A weighted least-squares problem per query.

    Attributes
    ----------
    weight : array (n_queries, k)
        At most 1; 0 for a place without a key.
    design : array (n_queries, k, C(d + p, p))
        ``u^alpha`` for ``u = (key - query) / scale``, in the order of `exponents`.
    values : array (n_queries, k, n_outputs)
    """

    weight: Array
    design: Array
    values: Array


def local_design(
    found: Gathered, queries: Array, order: int, scale: tuple[float, ...]
) -> LocalDesign:
    """The least-squares problem of a local polynomial around each query.

    Parameters
    ----------
    found : Gathered
        What `Gather` finalized to for these queries.
    queries : array (n_queries, n_features)
    order : int
        Degree of the polynomial.
    scale : tuple of n_features floats

    Returns
    -------
    LocalDesign
        ``k C(d + p, p)`` numbers per query: k (d + 1) for a local linear fit.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> from locpipe.reductions import Gather, local_design
    >>> x, y, q = np.array([0.0, 1, 2, 4]), np.array([1.0, 3, 2, 5]), np.array([[1.5]])
    >>> found = lp.fold(Gather(4, 1, 1), q, lp.Keys(x, values=y), lp.kernels.Gaussian(1.0))
    >>> root = np.sqrt(local_design(found, q, 1, (1.0,)).weight)[..., None]
    >>> _, design, values = local_design(found, q, 1, (1.0,))
    >>> print((np.linalg.pinv(root * design) @ (root * values))[0, 0].round(6))
    [2.386934]
    """
    xp = array_namespace(found.data)
    _, weight, u, values = _around(found, queries, scale)
    one = xp.ones_like(weight)
    design = xp.stack(list(weighted_monomials(one, u, order)), axis=2)
    return LocalDesign(weight, design, values)


def gathered_moments(
    found: Gathered, queries: Array, order: int, scale: tuple[float, ...]
) -> LocalMomentsState:
    """What `LocalMoments` streams, over the gathered keys alone and without its bound.

    Parameters
    ----------
    found, queries, order, scale
        As in `local_design`.

    Returns
    -------
    LocalMomentsState
        ``C(d + 2p, 2p) + n_outputs C(d + p, p)`` numbers per query.
    """
    xp = array_namespace(found.data)
    shift, weight, u, values = _around(found, queries, scale)
    n_valued = comb(len(scale) + order, order)
    moments, value_moments = [], []
    for i, weighted in enumerate(weighted_monomials(weight, u, 2 * order)):
        moments.append(xp.sum(weighted, axis=1))
        if i < n_valued:
            value_moments.append(xp.sum(weighted[:, :, None] * values, axis=1))
    return LocalMomentsState(shift, xp.stack(moments, axis=1), xp.stack(value_moments, axis=1))


def _around(
    found: Gathered, queries: Array, scale: tuple[float, ...]
) -> tuple[Array, Array, list[Array], Array]:
    """Shift, weights, scaled differences and values, with 0 in the places without a key."""
    xp = array_namespace(found.data)
    shift = xp.max(found.log_weight, axis=1)
    weight = xp.exp(found.log_weight - finite(shift)[:, None])
    missing, zero = (found.index < 0)[:, :, None], xp.zeros((), dtype=found.data.dtype)
    data, values = (xp.where(missing, zero, a) for a in (found.data, found.values))
    return shift, weight, differences(queries[:, None, :], data, scale), values
