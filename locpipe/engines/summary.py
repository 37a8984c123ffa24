"""The protocol of engines that summarise the keys first and then look at the queries."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.reductions.base import State

__all__ = ["SummaryEngine"]


@runtime_checkable
class SummaryEngine(Protocol):
    """Keys become a summary, and a summary answers queries.

    A summary belongs to the keys alone and is a monoid over key blocks, so it distributes: parts
    are summarised where they are, merged in a tree and sent to every block of queries.  An engine
    that cannot answer some queries to its accuracy names them; they are computed pair by pair.
    """

    def summarise(self, k: KeyBlock) -> Any:
        """Summary of one key block."""

    def merge(self, a: Any, b: Any) -> Any:
        """Summary of the keys of both; associative and commutative up to rounding."""

    def evaluate(self, summary: Any, q: QueryBlock) -> tuple[State, Array]:
        """The reduction's own state per query, and a mask of the queries to repair."""
