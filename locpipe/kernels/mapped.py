"""A kernel that looks at something other than the coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from array_api_compat import array_namespace

from locpipe.blocks import Array, Block, KeyBlock, PairSource, QueryBlock, row_ids, row_times
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel, KernelSpec, Ranking

__all__ = ["Mapped"]

View = str | Callable[[Array], Array]

_VIEWS: dict[str, Callable[[Any], Array | None]] = {
    "data": attrgetter("data"),
    "values": attrgetter("values"),
    "time": row_times,
    "ids": row_ids,
}


@dataclass(frozen=True)
class Mapped(Kernel):
    """`kernel` seen through a view of the queries and one of the keys (see `Kernel.on`)."""

    kernel: Kernel
    query: View
    key: View

    def __post_init__(self) -> None:
        for name in ("query", "key"):
            view = getattr(self, name)
            if not callable(view) and view not in _VIEWS:
                raise InputError(
                    f"{name} must be a function of the data or name what the rows carry, one of "
                    f"{sorted(_VIEWS)}, got {view!r}"
                )

    @property
    def tile_arrays(self) -> int:
        """As the inner kernel."""
        return self.kernel.tile_arrays

    @property
    def allows_missing(self) -> bool:
        """Whether the inner kernel does, or no view is of the coordinates."""
        coordinates = any(callable(view) or view == "data" for view in (self.query, self.key))
        return self.kernel.allows_missing or not coordinates

    @property
    def symmetric(self) -> bool:
        """Whether the inner kernel is, and the two views are the same."""
        return self.kernel.symmetric and self.query == self.key

    def ranking(self) -> Ranking | None:
        """The inner kernel's, its score seen through the views."""
        found = self.kernel.ranking()
        return None if found is None else replace(found, score=replace(self, kernel=found.score))

    def nearness(self) -> Kernel | None:
        """The inner kernel's, seen through the views."""
        score = self.kernel.nearness()
        return None if score is None else replace(self, kernel=score)

    def exact(self) -> Mapped:
        """The inner kernel's, seen through the views."""
        return replace(self, kernel=self.kernel.exact())

    def pair_sources(self) -> tuple[PairSource, ...]:
        """Those of the inner kernel."""
        return self.kernel.pair_sources()

    def with_pair_sources(self, change: Callable[[PairSource], PairSource]) -> Mapped:
        """The kernel with the inner one's sources changed."""
        return replace(self, kernel=self.kernel.with_pair_sources(change))

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Log weights of the inner kernel between the two views."""
        seen_q, seen_k = _seen(q, self.query, "queries"), _seen(k, self.key, "keys")
        n_q, n_k = int(seen_q.data.shape[1]), int(seen_k.data.shape[1])
        if n_q != n_k and self.kernel.lower(n_q).metric != "none":
            raise InputError(
                f"the views of queries and keys must have as many columns, got {n_q} and {n_k}"
            )
        return self.kernel.log_weights(seen_q, seen_k)

    def lower(self, n_features: int) -> KernelSpec:
        """Nothing is known through a view: it has columns of its own."""
        return KernelSpec()


def _seen(block: Block, view: View, what: str) -> Block:
    """The block with the view, as float64 columns, in place of the data."""
    seen = view(block.data) if callable(view) else _VIEWS[view](block)
    if seen is None:
        raise InputError(
            f"the kernel looks at the {view} of the {what}, and they carry none; "
            f"give them as lp.{what.capitalize()}(data, {view}=...)"
        )
    xp = array_namespace(seen)
    columns = seen if seen.ndim == 2 else seen[:, None]
    return replace(block, data=xp.astype(columns, xp.float64, copy=False))
