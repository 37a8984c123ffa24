"""One pass of asymmetric MDS over dissimilarities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.distance import squared_distances
from locpipe.errors import InputError
from locpipe.reductions.base import Reduction, full

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

    def init(self, q: QueryBlock) -> MajorizationSums:
        """Empty sums."""
        p = (self.n_components,)
        shapes = ((), p, (), p, ())
        return MajorizationSums(*(full(q, shape, 0.0) for shape in shapes))

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
        apart = xp.where(distance > 0, distance, xp.asarray(xp.inf, dtype=distance.dtype))
        ratio = w * delta / apart
        tile = MajorizationSums(
            xp.sum(w, axis=1),
            w @ k.data,
            xp.sum(ratio, axis=1),
            ratio @ k.data,
            xp.sum(w * gap * gap, axis=1),
        )
        return self.merge(state, tile)

    def merge(self, a: MajorizationSums, b: MajorizationSums) -> MajorizationSums:
        """Plain addition."""
        return MajorizationSums(*(x + y for x, y in zip(a, b, strict=True)))

    def finalize(self, state: MajorizationSums, empty: float) -> MajorizationSums:
        """The sums as they are."""
        return MajorizationSums(*state)


def _cells(pair: Tile) -> tuple[Array, Array]:
    """Dissimilarities and weights in float64; a missing cell has weight 0."""
    xp = array_namespace(*pair)
    delta = xp.astype(pair[0], xp.float64)
    missing = xp.isnan(delta)
    w = xp.astype(pair[1], xp.float64) if len(pair) > 1 else xp.ones_like(delta)
    if not bool(xp.any(missing)):
        return delta, w
    zero = xp.zeros((), dtype=xp.float64)
    return xp.where(missing, zero, delta), xp.where(missing, zero, w)
