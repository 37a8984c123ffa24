"""The engine ``pruned``: keys in small boxes, of which those are left out that cannot matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_ids
from locpipe.engines.base import Need
from locpipe.engines.fused.profiles import knows, profile_of
from locpipe.engines.parts import EXTREME, Parts, is_extreme, take_apart
from locpipe.engines.pruned.cost import seconds
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel
from locpipe.kernels.masks import ExcludeSelf
from locpipe.kernels.radial import Radial
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.log_mass import LogMass, LogMassState
from locpipe.reductions.weighted_mean import WeightedMean, WeightedMeanState

__all__ = ["Pruned"]

_MOST_FEATURES = 6
_LEAF = 256


@dataclass(frozen=True)
class Pruned:
    """Keys in k-d order, in leaves with boxes; leaves too far to matter at `rtol` are left out.

    What may be left out is stated and proved in ``docs/pruned.md``.

    Parameters
    ----------
    rtol : float
        Error allowed.
    kernel : Kernel
    reduction : Reduction
    """

    rtol: float
    kernel: Kernel
    reduction: Reduction
    name: ClassVar[str] = "pruned"
    leaves_doubt: ClassVar[bool] = False
    query_rows: ClassVar[int] = 2**17
    """Rows of a query block: the more, the smaller the boxes of its groups."""

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """What has no boxes, or no bound."""
        parts = take_apart(need.kernel, need.n_features)
        if need.library != "numpy":
            return f"takes NumPy arrays, got {need.library}"
        if parts is None or need.has_pairs or not knows(parts.core):
            return "serves one radial kernel of the library"
        if is_extreme(parts.core, need.n_features):
            return EXTREME
        return _refused_kernel(parts) or _refused_rows(need)

    @classmethod
    def seconds(cls, need: Need) -> float:
        """Pairs that are left and the order of both sides; all pairs where no spread is known."""
        core = _parts(need.kernel, need.n_features).core
        return seconds(need, core)

    @classmethod
    def build(cls, need: Need) -> Self:
        """An engine for this kernel and reduction."""
        if need.kernel is None:
            raise InputError("the engine 'pruned' serves one radial kernel, got None")
        return cls(need.rtol, need.kernel, need.reduction)

    def tile_bytes(self, need: Need) -> int:
        """A leaf in both accuracies, and the list of leaves."""
        numbers = need.n_features + need.n_outputs + 4
        return 12 * _LEAF * numbers + 24 * (need.n_keys // _LEAF + 1)

    def query_bytes(self, need: Need) -> int:
        """Bytes per query that `evaluate` holds, the block and its state included."""
        return 8 * (4 * need.n_features + 3 * need.n_outputs + 10)

    def summary_bytes(self, need: Need) -> int:
        """Bytes of the summary while it is made, about twice what it holds then."""
        weights = 2 if "keys.sample_weight" in need.attributes else 0
        ids = 2 if _parts(need.kernel, need.n_features).masks else 0
        return 16 * need.n_keys * (need.n_features + need.n_outputs + weights + ids + 1)

    def summarise(self, k: KeyBlock) -> Any:
        """The forest of one tree over the keys."""
        from locpipe.engines.pruned.forest import grow

        d = int(k.data.shape[1])
        squares, ids = isinstance(self.reduction, LogMass), bool(_parts(self.kernel, d).masks)
        return grow(k, self._scale(d), _LEAF, squares=squares, ids=ids)

    def merge(self, a: Any, b: Any) -> Any:
        """The trees of both."""
        from locpipe.engines.pruned.forest import join

        return join(a, b, self._scale(len(a.data)), _LEAF)

    def evaluate(self, summary: Any, q: QueryBlock) -> tuple[State, Array]:
        """State of every query; none is left to repair."""
        from locpipe.engines.pruned.evaluate import quantities

        d = int(q.data.shape[1])
        parts = _parts(self.kernel, d)
        profile = profile_of(parts.core, d)
        ids = row_ids(q) if parts.masks else np.empty(0, np.int64)
        sums, size, shift = quantities(summary, profile, self._scale(d), q.data, ids, self.rtol)
        shift = np.where(sums[:, 0] > 0, shift + parts.log_factor + profile.log_peak, -np.inf)
        return self._state(summary, shift, sums, size), np.zeros(q.n_rows, dtype=bool)

    def _state(self, summary: Any, shift: Array, sums: Array, size: Array) -> State:
        if isinstance(self.reduction, LogMass):
            weight = np.full(len(shift), summary.total_weight)
            return LogMassState(shift, sums[:, 0], sums[:, 1], weight)
        return WeightedMeanState(shift, sums[:, 0], sums[:, 1:] * size[1:])

    def _scale(self, d: int) -> Array:
        """What divides the differences, so that the profile takes the sum of their squares."""
        core: Any = _parts(self.kernel, d).core
        return np.asarray(core.scale(d)) / np.sqrt(profile_of(core, d).unit)


def _parts(kernel: Kernel | None, d: int) -> Parts:
    parts = take_apart(kernel, d)
    if parts is None or not knows(parts.core):
        raise InputError("the engine 'pruned' serves one radial kernel of the library")
    return parts


def _refused_kernel(parts: Parts) -> str | None:
    if not isinstance(parts.core, Radial) or parts.core.metric != "euclidean":
        return "needs Euclidean distances"
    if any(type(mask) is not ExcludeSelf for mask in parts.masks):
        return "knows no mask but ExcludeSelf"
    return None


def _refused_rows(need: Need) -> str | None:
    if type(need.reduction) not in (LogMass, WeightedMean):
        return f"knows LogMass and WeightedMean, got {type(need.reduction).__name__}"
    if need.n_features > _MOST_FEATURES:
        return f"prunes nothing beyond {_MOST_FEATURES} features, got {need.n_features}"
    if need.attributes & {"queries.bandwidth", "keys.bandwidth"}:
        return "takes no bandwidths of rows"
    return None
