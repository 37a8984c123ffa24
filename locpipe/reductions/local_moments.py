"""Moments of the keys around each query: local polynomials, local principal components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb, inf, nan
from numbers import Real
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.errors import InputError, shown
from locpipe.reductions.base import (
    Reduction,
    check_outputs,
    check_whole,
    full,
    merge_shifts,
    weights_and_shift,
)

__all__ = [
    "LocalMoments",
    "LocalMomentsState",
    "differences",
    "exponents",
    "weighted_monomials",
]

MAX_STREAMED = 512
"""Numbers per query up to which moments are streamed; beyond, gather neighbours instead."""


def exponents(n_features: int, order: int) -> tuple[tuple[int, ...], ...]:
    """Multi-indices of total degree 0 .. `order`, by degree: the order of all moments.

    Examples
    --------
    >>> exponents(2, 2)
    ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))
    """
    return tuple(
        tuple(chosen.count(j) for j in range(n_features))
        for degree in range(order + 1)
        for chosen in combinations_with_replacement(range(n_features), degree)
    )


class LocalMomentsState(NamedTuple):
    """Sums at ``exp(shift)``.

    Attributes
    ----------
    shift : array (n_queries,)
    moments : array (n_queries, C(d + 2p, 2p))
        ``sum w u^alpha`` for ``u = (key - query) / scale``, in the order of `exponents`.
    value_moments : array (n_queries, C(d + p, p), n_outputs)
        ``sum w u^alpha v`` up to degree p.
    """

    shift: Array
    moments: Array
    value_moments: Array


@dataclass(frozen=True)
class LocalMoments(Reduction):
    """Weighted moments about each query, and with the values.

    Finalizes to `LocalMomentsState`; every ratio of moments is free of the shift.

    Parameters
    ----------
    order : int
        Degree p of the local polynomial; moments run to 2p.
    scale : tuple of n_features floats
        Divides the differences, so that the sums are well conditioned; the bandwidth.
    n_outputs : int
        Columns of the values; 0 without values.

    Raises
    ------
    InputError
        If the moments are more than 512 numbers per query, or a parameter is out of range.

    References
    ----------
    Fan and Gijbels (1996), *Local Polynomial Modelling*, section 3.1.
    """

    order: int
    scale: tuple[float, ...]
    n_outputs: int = 0

    def __post_init__(self) -> None:
        check_whole(self, "order", 0)
        check_whole(self, "n_outputs", 0)
        object.__setattr__(self, "scale", _positive(self.scale))
        d, p = len(self.scale), self.order
        size = comb(d + 2 * p, d) + comb(d + p, d) * self.n_outputs
        if size > MAX_STREAMED:
            raise InputError(
                f"moments up to degree {2 * p} of {d} features and {self.n_outputs} outputs are "
                f"{size} numbers per query, more than {MAX_STREAMED}; use Gather(k, ...) with "
                "gathered_moments or local_design instead, or a lower degree"
            )

    @property
    def tile_arrays(self) -> int:
        """The differences, and the monomials of two degrees."""
        d, degree = len(self.scale), 2 * self.order
        sizes = [comb(d + n - 1, n) for n in range(degree + 1)]
        return d + 2 + max(a + b for a, b in zip([0, *sizes], sizes, strict=False))

    def check(self, *, query_features: int, key_features: int, n_outputs: int) -> None:
        """One number of `scale` per feature, and as many values as outputs."""
        for rows, d in (("queries", query_features), ("keys", key_features)):
            if d != len(self.scale):
                raise InputError(
                    f"LocalMoments was made with {len(self.scale)} number(s) in scale, got {rows} "
                    f"with {d} feature(s); give one number per feature"
                )
        if self.n_outputs:
            check_outputs(self, self.n_outputs, n_outputs)

    def init(self, q: QueryBlock) -> LocalMomentsState:
        """No mass."""
        d, p = len(self.scale), self.order
        moments = full(q, (comb(d + 2 * p, d),), 0.0)
        value_moments = full(q, (comb(d + p, d), self.n_outputs), 0.0)
        return LocalMomentsState(full(q, (), float("-inf")), moments, value_moments)

    def update(
        self, state: Any, log_w: Any, q: QueryBlock, k: KeyBlock, pair: Tile | None = None
    ) -> LocalMomentsState:
        """Add a tile's moments."""
        xp = array_namespace(log_w)
        shift, scale, w = weights_and_shift(state.shift, log_w)
        n_valued = state.value_moments.shape[1] if self.n_outputs else 0
        moments, value_moments = [], []
        u = differences(q.data[:, None, :], k.data[None, :, :], self.scale)
        for i, weighted in enumerate(weighted_monomials(w, u, 2 * self.order)):
            moments.append(xp.sum(weighted, axis=1))
            if i < n_valued:
                value_moments.append(weighted @ k.values)
        added = xp.stack(moments, axis=1)
        total = state.value_moments * scale[:, None, None]
        if value_moments:
            total = total + xp.stack(value_moments, axis=1)
        return LocalMomentsState(shift, scale[:, None] * state.moments + added, total)

    def merge(self, a: Any, b: Any) -> LocalMomentsState:
        """Bring both to the larger shift and add."""
        shift, ca, cb = merge_shifts(a.shift, b.shift)
        moments = ca[:, None] * a.moments + cb[:, None] * b.moments
        values = ca[:, None, None] * a.value_moments + cb[:, None, None] * b.value_moments
        return LocalMomentsState(shift, moments, values)

    def finalize(self, state: Any, empty: float) -> LocalMomentsState:
        """The sums as they are; a query with no neighbour has a zeroth moment of 0."""
        return LocalMomentsState(*state)


def _positive(scale: Any) -> tuple[float, ...]:
    """A scale as a tuple of floats, each of which can be divided by."""
    numbers = scale if isinstance(scale, Iterable) and not isinstance(scale, str) else ()
    found = tuple(float(h) if isinstance(h, Real) else nan for h in numbers)
    if not found or not all(0 < h < inf for h in found):
        raise InputError(
            f"scale must be a tuple of positive numbers, one per feature, got {shown(scale)}"
        )
    return found


def differences(q: Array, k: Array, scale: tuple[float, ...]) -> list[Array]:
    """``u = (key - query) / scale`` of each feature, the last axis of both."""
    return [(k[..., j] - q[..., j]) / h for j, h in enumerate(scale)]


def weighted_monomials(w: Array, u: list[Array], order: int) -> Iterator[Array]:
    """``w u^alpha`` in the order of `exponents`, each from one of a degree less."""
    last: dict[tuple[int, ...], Array] = {}
    of_degree: dict[tuple[int, ...], Array] = {}
    for alpha in exponents(len(u), order):
        if of_degree and sum(alpha) > sum(next(iter(of_degree))):
            last, of_degree = of_degree, {}
        of_degree[alpha] = w if not any(alpha) else _times(last, u, alpha)
        yield of_degree[alpha]


def _times(previous: dict[tuple[int, ...], Array], u: list[Array], alpha: tuple[int, ...]) -> Array:
    j = next(i for i, power in enumerate(alpha) if power)
    lower = (*alpha[:j], alpha[j] - 1, *alpha[j + 1 :])
    return previous[lower] * u[j]
