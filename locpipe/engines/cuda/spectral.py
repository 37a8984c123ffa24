"""The engine ``spectral`` for CuPy arrays: the same grids and bounds, transforms on the device."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from typing import Any, ClassVar, Self, TypeVar

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.engines.base import Need
from locpipe.engines.cuda.device import beside
from locpipe.engines.spectral import Spectral
from locpipe.engines.spectral.summary import Summary
from locpipe.reductions.base import State

__all__ = ["SpectralCuda"]

_TRANSFORMS = "locpipe.engines.cuda.nufft"
_FASTER = 10.0
"""What a device makes of the CPU's seconds; an estimate, made without one."""

Block = TypeVar("Block", QueryBlock, KeyBlock)


@dataclass(frozen=True)
class SpectralCuda:
    """Rows go to the host, transforms run on the device, states come back to it.

    Summaries are those of `Spectral`, so they merge and travel alike.

    Parameters
    ----------
    inner : Spectral
        Lays out the grid and bounds the errors; its transforms are cuFINUFFT's.
    """

    inner: Spectral
    name: ClassVar[str] = "spectral"
    query_rows: ClassVar[int] = Spectral.query_rows

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """As `Spectral`, for CuPy arrays and with the package at hand."""
        if need.library != "cupy":
            return f"takes CuPy arrays, got {need.library}"
        if find_spec("cufinufft") is None:
            return "needs the package cufinufft"
        return Spectral.refusal(replace(need, library="numpy"))

    @classmethod
    def seconds(cls, need: Need) -> float:
        """Those of the CPU, by a factor."""
        return Spectral.seconds(need) / _FASTER

    @classmethod
    def build(cls, need: Need) -> Self:
        """An engine whose grid covers the box of the keys."""
        return cls(replace(Spectral.build(need), transforms=_TRANSFORMS))

    def tile_bytes(self, need: Need) -> int:
        """As `Spectral`."""
        return self.inner.tile_bytes(need)

    def summarise(self, k: KeyBlock) -> Summary:
        """Coefficients of one key block, on the host."""
        with beside(k.data):
            return self.inner.summarise(_on_host(k))

    def merge(self, a: Summary, b: Summary) -> Summary:
        """Summary of the keys of both."""
        return self.inner.merge(a, b)

    def evaluate(self, summary: Summary, q: QueryBlock) -> tuple[State, Array]:
        """State of each query, and which are doubtful, on the device of the queries."""
        xp = array_namespace(q.data)
        with beside(q.data):
            state, doubtful = self.inner.evaluate(summary, _on_host(q))
            moved: Any = type(state)(*(xp.asarray(array) for array in state))
            return moved, xp.asarray(doubtful)


def _on_host(block: Block) -> Block:
    """The block in NumPy arrays."""
    import cupy

    moved = {
        field.name: cupy.asnumpy(value)
        for field in fields(block)
        if isinstance(value := getattr(block, field.name), cupy.ndarray)
    }
    return replace(block, **moved)
