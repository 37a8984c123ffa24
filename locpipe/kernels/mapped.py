"""A kernel that looks at something other than the coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from locpipe.blocks import Array, Block, KeyBlock, PairSource, QueryBlock, row_ids, row_times
from locpipe.errors import InputError, shown
from locpipe.kernels.base import Kernel, KernelSpec, Ranking
from locpipe.kernels.product import Product
from locpipe.kernels.times import are_whole, around_origins
from locpipe.metrics import LARGEST_LATITUDE, METRICS

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
            if not callable(view) and not (isinstance(view, str) and view in _VIEWS):
                raise InputError(
                    f"{name} must be a function of the data or name what the rows carry, one of "
                    f"{sorted(_VIEWS)}, got {shown(view)}"
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
        missing = self.kernel.allows_missing
        seen_q = _seen(q, self.query, "queries", missing)
        seen_k = _seen(k, self.key, "keys", missing)
        n_q, n_k = int(seen_q.shape[1]), int(seen_k.shape[1])
        if n_q != n_k and self.kernel.lower(n_q).metric != "none":
            raise InputError(
                f"the views of queries and keys must have as many columns, got {n_q} and {n_k}"
            )
        one = n_q == n_k == 1 and q.n_rows > 0
        if one and are_whole(seen_q, seen_k) and _of_differences(self.kernel):
            return self._of_whole(q, k, seen_q[:, 0], seen_k[:, 0])
        if n_q == 2:
            self._check_angles(seen_q, seen_k)
        return self.kernel.log_weights(_with(q, seen_q), _with(k, seen_k))

    def _check_angles(self, *views: Array) -> None:
        factors = self.kernel.factors if isinstance(self.kernel, Product) else (self.kernel,)
        if not any(factor.lower(2).metric == "haversine" for factor in factors):
            return
        xp = array_namespace(*views)
        if any(bool(xp.any(xp.abs(view[:, 0]) > LARGEST_LATITUDE)) for view in views):
            raise InputError(
                "the first column of a view must be latitudes in radians between -pi/2 and pi/2 "
                "under haversine, got more; convert degrees with np.deg2rad"
            )

    def _of_whole(self, q: QueryBlock, k: KeyBlock, t: Array, s: Array) -> Array:
        """Log weights of whole numbers, whose differences are taken before they lose bits."""
        xp, parts, places = array_namespace(t), [], []
        for rows, near_t, near_s in around_origins(t, s):
            some = q if near_t.shape[0] == q.n_rows else q.chosen(rows)
            near = _with(some, near_t[:, None]), _with(k, near_s[:, None])
            parts.append(self.kernel.log_weights(*near))
            places.append(xp.nonzero(rows)[0])
        if len(parts) == 1:
            return parts[0]
        return xp.take(xp.concat(parts, axis=0), xp.argsort(xp.concat(places)), axis=0)

    def lower(self, n_features: int) -> KernelSpec:
        """Nothing is known through a view: it has columns of its own."""
        return KernelSpec()


def _of_differences(kernel: Kernel) -> bool:
    """Whether a kernel of one column looks at nothing but differences of the coordinates."""
    if isinstance(kernel, Product):
        return all(factor.is_mask or _of_differences(factor) for factor in kernel.factors)
    metric = METRICS.get(kernel.lower(1).metric)
    return metric is not None and metric.scales


def _with(block: Block, columns: Array) -> Block:
    """The block with float64 columns in place of the data."""
    xp = array_namespace(columns)
    return replace(block, data=xp.astype(columns, xp.float64, copy=False))


def _seen(block: Block, view: View, what: str, missing: bool) -> Array:
    """What the view sees of the block, as columns."""
    if callable(view):
        seen = _checked(view(block.data), block.n_rows, view, what, missing)
    else:
        seen = _VIEWS[view](block)
        if seen is None:
            raise InputError(
                f"the kernel looks at the {view} of the {what}, and they carry none; "
                f"give them as lp.{what.capitalize()}(data, {view}=...)"
            )
    return seen if seen.ndim == 2 else seen[:, None]


def _checked(seen: Any, n_rows: int, view: Any, what: str, missing: bool) -> Array:
    """What a function of the caller gave, once it is one row of numbers per row."""
    fault = _fault(seen, n_rows, missing)
    if fault is not None:
        name = getattr(view, "__name__", type(view).__name__)
        raise InputError(
            f"the function {name} must give an array (n_rows,) or (n_rows, n_columns) of finite "
            f"numbers for the {n_rows} rows of the {what} that it got, not {fault}"
        )
    return seen


def _fault(seen: Any, n_rows: int, missing: bool) -> str | None:
    """What is wrong with the result of a view; None if nothing is."""
    if not is_array_api_obj(seen) or isinstance(seen, np.ma.MaskedArray):
        return f"a {type(seen).__name__}"
    if seen.ndim not in (1, 2) or seen.shape[0] != n_rows:
        return shown(seen)
    xp = array_namespace(seen)
    if not xp.isdtype(seen.dtype, ("bool", "integral", "real floating")):
        return f"numbers of dtype {seen.dtype}"
    if are_whole(seen):
        return None
    size = xp.where(xp.isnan(seen), xp.zeros_like(seen), seen) if missing else seen
    if not bool(xp.all(xp.abs(size) <= _LARGEST)):
        return f"NaN or numbers beyond {_LARGEST:g}"
    return None


_LARGEST = 1e150
"""Numbers up to this size have squares within float64."""
