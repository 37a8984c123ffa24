"""The engine itself: what it serves, how keys are summed and queries answered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import ClassVar, Self

import numpy as np

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.engines.base import Need
from locpipe.engines.parts import take_apart
from locpipe.engines.spectral import costs
from locpipe.engines.spectral.channels import Sums, WeightedKeys, pairs_of, powers_of
from locpipe.engines.spectral.grid import Grid, lay_out
from locpipe.engines.spectral.summary import Summary, merge
from locpipe.engines.spectral.transform import Transform, stretched, unpacked
from locpipe.kernels.gaussian import Gaussian
from locpipe.reductions.base import Reduction, State

__all__ = ["Spectral"]

MAX_FEATURES = 3
FINEST_RTOL = 2e-11
"""Sums of a block of keys in one cell lose as much to rounding, at worst."""
_ROUNDING = 2.0**-48
"""Error of a weight by itself, per bandwidth of the period: ``u L 2^-51`` with u up to 8."""


@dataclass(frozen=True)
class Spectral:
    """Masses and means from Fourier coefficients of the keys.

    Parameters
    ----------
    reduction : LogMass or WeightedMean
    grid : Grid
    log_factor : float
        Log of a constant factor of all weights.
    rtol : float
        Relative error allowed; queries that it cannot be promised to are named doubtful.
    n_threads : int
        Threads of a transform of keys; blocks of queries are answered side by side instead.
    transforms : str
        Module whose ``Plan`` makes the transforms, called as that of FINUFFT is.
    """

    reduction: Reduction
    grid: Grid
    log_factor: float
    rtol: float
    n_threads: int = 1
    transforms: str = "finufft"
    name: ClassVar[str] = "spectral"
    query_rows: ClassVar[int] = 2**20
    """Queries to ask about at a time: each time costs a transform of the whole grid."""

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """What is not smooth, has too many features or needs too fine a grid."""
        return _refused_kind(need) or _refused_grid(need)

    @classmethod
    def seconds(cls, need: Need) -> float:
        """Those of the transforms, and of the rows that may need repair."""
        return costs.seconds(need, _grid(need), len(_pairs(need.reduction)))

    @classmethod
    def build(cls, need: Need) -> Self:
        """An engine whose grid covers the box of the keys."""
        parts = take_apart(need.kernel, need.n_features)
        factor = 0.0 if parts is None else parts.log_factor
        return cls(need.reduction, _grid(need), factor, need.rtol, need.n_threads)

    def tile_bytes(self, need: Need) -> int:
        """Those of a transform, whatever the number of queries, and of a block of keys."""
        n_pairs = len(_pairs(self.reduction))
        return costs.grid_bytes(self.grid, n_pairs) + costs.key_block_bytes(need)

    def query_bytes(self, need: Need) -> int:
        """Bytes per query of the temporaries."""
        return costs.query_bytes(need, len(_pairs(self.reduction)))

    def summary_bytes(self, need: Need) -> int:
        """Those of a summary, with the sizes of values."""
        return costs.summary_bytes(self.grid, len(_pairs(self.reduction)))

    def summarise(self, k: KeyBlock) -> Summary:
        """Coefficients of one key block.

        Notes
        -----
        ``O(n w^d + m log m)`` time per pair of sums, with m modes and w about 15.
        """
        keys = WeightedKeys.of(k, self.reduction)
        scales = keys.scales()
        return Summary(
            modes=self._modes(keys, keys.strengths(scales)),
            sizes=self._sizes(keys.some(), scales) if keys.signed else None,
            log_scale=keys.log_scale,
            scales=scales,
            totals=keys.totals(scales),
            key_weight=keys.key_weight,
        )

    def merge(self, a: Summary, b: Summary) -> Summary:
        """Summary of the keys of both."""
        return merge(a, b, powers_of(self.reduction) or ())

    def evaluate(self, summary: Summary, q: QueryBlock) -> tuple[State, Array]:
        """State of each query, and which are doubtful: theirs is that of no key.

        Notes
        -----
        ``O(n w^d + m log m)`` time per pair of sums, as `summarise`.
        """
        if summary.log_scale == -inf or q.n_rows == 0:
            return self.reduction.init(q), np.zeros(q.n_rows, dtype=bool)
        angles, inside = self.grid.angles(q.data)
        sums = self._at(angles, summary.modes, summary)
        certain = inside & self._certain(sums, angles, summary)
        known = Sums(np.where(certain, sums.sums, 0.0), sums.errors)
        shift = summary.log_scale + self.log_factor
        state = known.state(self.reduction, shift, summary.key_weight, summary.scales)
        return state, ~certain

    def _sizes(self, keys: WeightedKeys, scales: Array) -> Array:
        return self._modes(keys, keys.strengths(scales, sizes=True))

    def _modes(self, keys: WeightedKeys, strengths: Iterable[Array]) -> Array:
        return self._transform(self.grid.angles(keys.data)[0], 1).sums(strengths)

    def _certain(self, sums: Sums, angles: list[Array], summary: Summary) -> Array:
        """Queries whose sums are all right to `rtol`."""
        certain = sums.right(sums.least(), self.rtol)
        again = sums.right(sums.least()[:1], self.rtol) & ~certain
        if summary.sizes is None or not again.any():
            return certain
        sizes = self._at([angle[again] for angle in angles], summary.sizes, summary)
        certain[again] = sums.chosen(again).right(sizes.least(), self.rtol)
        return certain

    def _at(self, angles: list[Array], modes: Array, summary: Summary) -> Sums:
        """Sums at the angles, from the coefficients over the keys."""
        powers = _pairs(self.reduction)
        values, sizes = self._transform(angles, 2).values(
            self._filtered(mode, *pair) for mode, pair in zip(modes, powers, strict=True)
        )
        totals = summary.totals
        sums = unpacked(values, len(totals))
        pair_totals = np.add.reduceat(totals, range(0, len(totals), 2))
        errors = self.grid.tolerance * sizes + self.grid.tail * pair_totals
        # Without anything to sum the sum is 0, and certain.
        nothing = totals == 0
        sums[nothing] = 0.0
        return Sums(sums, np.where(nothing, 0.0, np.repeat(errors, 2)[: len(totals)]))

    def _filtered(self, modes: Array, real: int, imaginary: int) -> Array:
        """Coefficients over the keys times those of the kernel, to the power of each channel."""
        if real != imaginary:
            return stretched(modes, self.grid.kernel(real), self.grid.kernel(imaginary))
        return modes * self.grid.kernel(real)

    def _transform(self, angles: list[Array], kind: int) -> Transform:
        grid, threads = self.grid, self.n_threads if kind == 1 else 1
        return Transform(kind, angles, grid.modes, grid.eps, grid.fine, threads, self.transforms)


def _pairs(reduction: Reduction) -> list[tuple[int, int]]:
    return pairs_of(powers_of(reduction) or ())


def _grid(need: Need) -> Grid:
    grid = _laid_out(need)
    if grid is None:
        raise ValueError("the grid was refused")
    return grid


def _laid_out(need: Need) -> Grid | None:
    parts, powers = take_apart(need.kernel, need.n_features), powers_of(need.reduction)
    if parts is None or powers is None or type(parts.core) is not Gaussian:
        return None
    return lay_out(need, parts.core.scale(need.n_features), max(powers))


def _refused_kind(need: Need) -> str | None:
    parts = take_apart(need.kernel, need.n_features)
    if need.library != "numpy":
        return f"takes NumPy arrays, got {need.library}"
    if powers_of(need.reduction) is None:
        return f"sums masses and means, got {type(need.reduction).__name__}"
    if parts is None or type(parts.core) is not Gaussian or parts.core.metric != "euclidean":
        return "serves the Gaussian kernel of Euclidean distances"
    if parts.masks or need.has_pairs:
        return "takes no masks and no data per pair"
    if need.attributes & {"queries.bandwidth", "keys.bandwidth"}:
        return "takes no bandwidths per row"
    if not 1 <= need.n_features <= MAX_FEATURES:
        return f"takes at most {MAX_FEATURES} features, got {need.n_features}"
    return None


def _refused_grid(need: Need) -> str | None:
    if need.spread is None:
        return "needs the box of the keys: call lp.prepare(keys)"
    if need.rtol < FINEST_RTOL:
        return f"keeps an rtol of {FINEST_RTOL:g} at best, got {need.rtol:g}"
    grid = _laid_out(need)
    if grid is None or grid.cells > costs.MOST_CELLS:
        return (
            "would need too fine a grid, since the box of the keys is wide for the bandwidth: "
            f"at most {costs.MOST_CELLS:.0e} cells"
        )
    if max(grid.period) * _ROUNDING > need.rtol / 2:
        return "would lose rtol to rounding, since the box of the keys is wide for the bandwidth"
    return None
