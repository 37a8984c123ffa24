"""The engine ``fused`` on a CUDA device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from locpipe.blocks import KeyBlock, PairSource, QueryBlock
from locpipe.engines.base import Need
from locpipe.engines.cuda import small, wide
from locpipe.engines.cuda.device import beside
from locpipe.engines.cuda.profiles import profile_of
from locpipe.engines.parts import Parts, take_apart
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction, State
from locpipe.reductions.log_mass import LogMass
from locpipe.reductions.weighted_mean import WeightedMean

__all__ = ["FusedCuda"]

# From the data sheet of a card of 2024, not measured: instructions of a pair, a second of them.
_PAIR, _FEATURE, _OUTPUT, _INSTRUCTIONS_PER_SECOND = 30.0, 3.0, 2.0, 1e13
_START_SECONDS = 1e-3


@dataclass(frozen=True)
class FusedCuda:
    """CuPy arrays in, CuPy arrays out; kernels are compiled on first use and cached by CuPy.

    Parameters
    ----------
    rtol : float
        Error allowed; float32 arithmetic is used where it keeps it, float64 elsewhere.
    """

    rtol: float
    name: ClassVar[str] = "fused"
    query_rows: ClassVar[int] = 2**18
    threads_inside: ClassVar[bool] = True

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """What no kernel serves."""
        if need.library != "cupy":
            return f"takes CuPy arrays, got {need.library}"
        if type(need.reduction) not in (LogMass, WeightedMean):
            return "serves masses and means"
        parts = take_apart(need.kernel, need.n_features)
        if parts is None or need.has_pairs or profile_of(parts.core, need.n_features) is None:
            return "serves the library's Euclidean profiles and dot products, with masks"
        if any(type(mask) not in wide.MASKS for mask in parts.masks):
            return "knows no masks of your own"
        if _needs_times(parts) and need.attributes & {"queries.time", "keys.time"}:
            return "serves masks of times only where times are the indices of the rows"
        return None

    @classmethod
    def seconds(cls, need: Need) -> float:
        """By the instructions of a pair; an estimate, made without a device."""
        pair = _PAIR + _FEATURE * need.n_features + _OUTPUT * need.n_outputs
        return _START_SECONDS + need.n_pairs * pair / _INSTRUCTIONS_PER_SECOND

    @classmethod
    def build(cls, need: Need) -> Self:
        """An engine of this accuracy."""
        return cls(need.rtol)

    def tile_bytes(self, need: Need) -> int:
        """Bytes on the device, of the larger path."""
        sizes = need.n_features, need.n_outputs
        return max(small.tile_bytes(*sizes), wide.tile_bytes(*sizes))

    def fold(
        self,
        reduction: Reduction,
        state: Any,
        q: QueryBlock,
        k: KeyBlock,
        kernel: Kernel | None = None,
        pairs: PairSource | None = None,
    ) -> State:
        """`state` with the keys of a block folded in."""
        if q.n_rows == 0 or k.n_rows == 0:
            unchanged: State = state
            return unchanged
        d = int(q.data.shape[1])
        parts = take_apart(kernel, d)
        profile = None if parts is None else profile_of(parts.core, d)
        if parts is None or profile is None:
            raise InputError(
                "the engine 'fused' serves the library's Euclidean profiles and dot products on a "
                "CUDA device; use engine='dense'"
            )
        path = small if small.suits(parts, profile, reduction, d) else wide
        with beside(q.data):
            folded: State = path.fold(parts, profile, reduction, state, q, k, self.rtol)
        return folded


def _needs_times(parts: Parts) -> bool:
    return any(isinstance(mask, wide.TIMED) for mask in parts.masks)
