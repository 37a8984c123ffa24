"""What an engine is: how it is asked, and the two protocols that one may follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from locpipe.blocks import Array, KeyBlock, PairSource, QueryBlock
from locpipe.kernels.base import Kernel
from locpipe.reductions.base import Reduction, State

__all__ = ["Engine", "Need", "PairEngine", "Spread", "SummaryEngine"]


@dataclass(frozen=True)
class Spread:
    """Where the keys lie, for engines whose plan needs it; feature units.

    Attributes
    ----------
    low, high : tuple of n_features floats
        The box of the keys of positive weight.
    mean, variance : tuple of n_features floats
        Weighted by the sample weights.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    mean: tuple[float, ...]
    variance: tuple[float, ...]


@dataclass(frozen=True)
class Need:
    """What a fold asks of an engine; made from metadata alone, but for `spread`.

    Attributes
    ----------
    kernel : Kernel or None
    reduction : Reduction
    n_queries, n_keys, n_features, n_outputs : int
        `n_outputs` is the number of values per key, 0 without values; an unknown number of
        queries counts as that of the keys.
    rtol : float
        Relative error allowed: of the mass by the mass, of a mean by the local mean of the
        values' sizes.
    library : str
        Name of the array library, such as ``"numpy"`` or ``"cupy"``.
    single : bool
        Whether coordinates and values all come in float32.
    attributes : frozenset of str
        What rides in the rows: ``"queries.bandwidth"``, ``"keys.bandwidth"``,
        ``"keys.sample_weight"``, ``"queries.ids"``, ``"keys.ids"``, ``"queries.time"``,
        ``"keys.time"``, ``"queries.values"``.
    has_pairs : bool
        Whether data per pair is read.
    n_threads : int
        Cores that one call has; 1 inside a task of a graph.
    n_blocks : int
        Blocks that the queries come in and are not joined beyond: chunks of Dask arrays.
    spread : Spread or None
        None where the keys have not been looked at (Dask arrays and stores, not prepared).
    """

    kernel: Kernel | None
    reduction: Reduction
    n_queries: int
    n_keys: int
    n_features: int
    n_outputs: int
    rtol: float
    library: str = "numpy"
    single: bool = False
    attributes: frozenset[str] = frozenset()
    has_pairs: bool = False
    n_threads: int = 1
    n_blocks: int = 1
    spread: Spread | None = None

    @property
    def n_pairs(self) -> int:
        """Pairs of a query and a key."""
        return self.n_queries * self.n_keys


class Engine(Protocol):
    """What all engines have; they are frozen dataclasses of scalars that pickle small."""

    name: ClassVar[str]

    @classmethod
    def refusal(cls, need: Need) -> str | None:
        """Why this engine cannot serve, as a clause after "it"; None where it can."""

    @classmethod
    def seconds(cls, need: Need) -> float:
        """Seconds of one thread that the fold takes, by shipped constants; `refusal` was None."""

    @classmethod
    def build(cls, need: Need) -> Self:
        """The engine for a fold; `refusal` was None."""

    def tile_bytes(self, need: Need) -> int:
        """Bytes of the temporaries that one thread holds, whatever the number of rows."""


@runtime_checkable
class PairEngine(Engine, Protocol):
    """Keys are folded into the queries pair by pair."""

    def fold(
        self,
        reduction: Reduction,
        state: Any,
        q: QueryBlock,
        k: KeyBlock,
        kernel: Kernel | None = None,
        pairs: PairSource | None = None,
    ) -> State:
        """`state` with the keys of a block folded in; blocks come in their own dtype."""


@runtime_checkable
class SummaryEngine(Protocol):
    """Keys become a summary, and a summary answers queries.

    A summary belongs to the keys alone and is a monoid over key blocks, so it distributes: parts
    are summarised where they are, merged in a tree and sent to every block of queries.  An engine
    that cannot answer some queries to its accuracy names them; they are computed pair by pair.
    One that names none may say so by an attribute ``leaves_doubt = False``.
    """

    def summarise(self, k: KeyBlock) -> Any:
        """Summary of one key block."""

    def merge(self, a: Any, b: Any) -> Any:
        """Summary of the keys of both; associative and commutative up to rounding."""

    def evaluate(self, summary: Any, q: QueryBlock) -> tuple[State, Array]:
        """The reduction's own state per query, and a mask of the queries to repair."""
