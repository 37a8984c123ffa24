"""One pass of asymmetric MDS over dissimilarities."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar, NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.distance import squared_distances
from locpipe.errors import InputError
from locpipe.reductions.base import Reduction, check_whole, full

__all__ = ["MajorizationStep", "MajorizationSums"]


class MajorizationSums(NamedTuple):
    """Sums over the keys, per query; ``d`` is the distance, ``delta`` the dissimilarity.

    Attributes
    ----------
    weight : array (n_queries,)
        ``sum w``
    moment : array (n_queries, n_components)
        ``sum w y``
    ratio : array (n_queries,)
        ``sum w delta / d``; a pair at distance 0 adds 0, a subgradient
    ratio_moment : array (n_queries, n_components)
        ``sum w (delta / d) y``
    stress : array (n_queries,)
        ``sum w (delta - d)^2``
    """

    weight: Array
    moment: Array
    ratio: Array
    ratio_moment: Array
    stress: Array


@dataclass(frozen=True)
class MajorizationStep(Reduction):
    """Everything that one row update of unfolding needs, in one pass over the cells.

    The pairs' tiles are ``(delta,)`` or ``(delta, weight)``; a NaN in `delta` is a missing cell.
    Finalizes to `MajorizationSums`.

    References
    ----------
    Heiser (1987); de Leeuw and Mair (2009), section 3.
    """

    n_components: int
    reads_kernel: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_whole(self, "n_components", 1)

    def check(self, *, query_features: int, key_features: int, n_outputs: int) -> None:
        """As many features as components."""
        for rows, d in (("queries", query_features), ("keys", key_features)):
            if d != self.n_components:
                raise InputError(
                    f"MajorizationStep was made for n_components={self.n_components}, got {rows} "
                    f"with {d} feature(s); the two must be equal"
                )

    def init(self, q: QueryBlock) -> MajorizationSums:
        """Empty sums."""
        sums, moments = full(q, (), 0.0), full(q, (self.n_components,), 0.0)
        return MajorizationSums(sums, moments, sums, moments, sums)

    def update(
        self,
        state: MajorizationSums,
        log_w: Array | None,
        q: QueryBlock,
        k: KeyBlock,
        pair: Tile | None = None,
    ) -> MajorizationSums:
        """Add one tile of cells."""
        if pair is None:
            raise InputError("MajorizationStep needs the dissimilarities: give pairs=ArrayPairs(D)")
        xp = array_namespace(q.data)
        delta, w = _cells(pair)
        distance = xp.sqrt(squared_distances(q.data, k.data))
        gap = delta - distance
        # A column of ones: one product gives the sums of w and of w y.
        keys = xp.concat((k.data, xp.ones((k.n_rows, 1), dtype=k.data.dtype)), axis=1)
        moment, ratio_moment = w @ keys, (w * delta / _apart(distance)) @ keys
        tile = MajorizationSums(
            moment[:, -1],
            moment[:, :-1],
            ratio_moment[:, -1],
            ratio_moment[:, :-1],
            xp.vecdot(w * gap, gap),
        )
        return self.merge(state, tile)

    def merge(self, a: MajorizationSums, b: MajorizationSums) -> MajorizationSums:
        """Plain addition."""
        return MajorizationSums(*(x + y for x, y in zip(a, b, strict=True)))

    def finalize(self, state: MajorizationSums, empty: float) -> MajorizationSums:
        """The sums as they are."""
        return MajorizationSums(*state)


def _apart(distance: Array) -> Array:
    """Distances to divide by: infinite in place of 0, so that such a pair adds nothing."""
    xp = array_namespace(distance)
    if bool(xp.min(distance) > 0):
        return distance
    return xp.where(distance > 0, distance, xp.asarray(xp.inf, dtype=distance.dtype))


def _cells(pair: Tile) -> tuple[Array, Array]:
    """Dissimilarities and weights in float64; a missing cell has weight 0.

    Raises
    ------
    InputError
        If a dissimilarity is infinite, or the weight of a cell is negative, NaN or infinite.
    """
    xp = array_namespace(*pair)
    delta = xp.astype(pair[0], xp.float64, copy=False)
    w = xp.astype(pair[1], xp.float64, copy=False) if len(pair) > 1 else xp.ones_like(delta)
    # A sum is NaN or infinite if any term is: one quick pass, and mostly there is none.
    if not isfinite(xp.sum(delta)):
        missing, zero = xp.isnan(delta), xp.zeros((), dtype=xp.float64)
        delta, w = xp.where(missing, zero, delta), xp.where(missing, zero, w)
        if bool(xp.any(xp.isinf(delta))):
            raise InputError(
                "dissimilarities must be finite, got an infinite one; NaN marks a missing cell"
            )
    if len(pair) > 1 and not (isfinite(xp.sum(w)) and xp.min(w) >= 0):
        raise InputError(
            "weights of cells must be finite and non-negative, got one that is not; "
            "0 takes a cell out"
        )
    return delta, w
