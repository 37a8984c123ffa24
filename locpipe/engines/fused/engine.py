"""The engine ``fused``: compiled loops where features are few, two products where they are many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from locpipe.blocks import KeyBlock, PairSource, QueryBlock
from locpipe.engines.base import Need
from locpipe.engines.fused import small, wide
from locpipe.engines.parts import Parts, take_apart
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction, State

__all__ = ["Fused"]


@dataclass(frozen=True)
class Fused:
    """Compiled on first use, and cached on disk for the processes after it.

    Parameters
    ----------
    rtol : float
        Error allowed; float32 arithmetic is used where it keeps it, float64 elsewhere.
    """

    rtol: float
    name: ClassVar[str] = "fused"

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """What neither path serves."""
        parts = take_apart(need.kernel, need.n_features)
        if need.library != "numpy":
            return f"takes NumPy arrays, got {need.library}"
        if parts is None or need.has_pairs:
            return "serves one radial or dot-product kernel, with masks"
        reason: str | None = _path(parts, need.n_features).refusal(parts, need)
        return reason

    @classmethod
    def seconds(cls, need: Need) -> float:
        """Those of the path that is taken."""
        parts = _parts(need.kernel, need.n_features)
        return float(_path(parts, need.n_features).seconds(parts, need))

    @classmethod
    def build(cls, need: Need) -> Self:
        """An engine of this accuracy."""
        return cls(need.rtol)

    def tile_bytes(self, need: Need) -> int:
        """Those of the path that is taken."""
        parts = _parts(need.kernel, need.n_features)
        return int(_path(parts, need.n_features).tile_bytes(parts, need))

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
        d = int(q.data.shape[1])
        parts = _parts(kernel, d)
        fold: Callable[..., State] = _path(parts, d).fold
        return fold(parts, reduction, state, q, k, self.rtol) if q.n_rows and k.n_rows else state


def _path(parts: Parts, n_features: int) -> Any:
    path: Any = small
    return path if path.suits(parts, n_features) else wide


def _parts(kernel: Kernel | None, n_features: int) -> Parts:
    parts = take_apart(kernel, n_features)
    if parts is None:
        raise InputError("the engine 'fused' serves one radial or dot-product kernel, with masks")
    return parts
