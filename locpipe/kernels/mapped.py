"""A kernel that looks at something other than the coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.errors import InputError
from locpipe.kernels.base import Kernel, KernelSpec

__all__ = ["Mapped"]


@dataclass(frozen=True)
class Mapped(Kernel):
    """`kernel` seen through a view of the queries and one of the keys (see `Kernel.on`)."""

    kernel: Kernel
    query: str | Callable[[Array], Array]
    key: str | Callable[[Array], Array]

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """Log weights of the inner kernel between the two views."""
        seen_q = replace(q, data=_view(q, self.query, "queries"))
        seen_k = replace(k, data=_view(k, self.key, "keys"))
        return self.kernel.log_weights(seen_q, seen_k)

    def lower(self, n_features: int) -> KernelSpec:
        """Nothing is known through a view, but the bound."""
        return KernelSpec(log_bound=self.kernel.lower(n_features).log_bound)


def _view(block: QueryBlock | KeyBlock, view: str | Callable[[Array], Array], what: str) -> Array:
    if callable(view):
        return view(block.data)
    seen = getattr(block, view, None)
    if seen is None:
        raise InputError(
            f"the kernel looks at the {view} of the {what}, and they carry none; "
            f"give them as lp.{what.capitalize()}(data, {view}=...)"
        )
    return seen if seen.ndim == 2 else seen[:, None]
