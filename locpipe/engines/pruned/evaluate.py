"""From a forest and queries to sums: the queries in groups, the memory, the loops."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from locpipe.engines.fused.profiles import Profile
from locpipe.engines.pruned.bounds import Rule
from locpipe.engines.pruned.entry import address_of
from locpipe.engines.pruned.forest import Forest
from locpipe.engines.pruned.kd import order_in_blocks
from locpipe.engines.pruned.leaves import Work
from locpipe.engines.pruned.loops import Queries, answer
from locpipe.engines.pruned.sums import log_weight, rows_sums

__all__ = ["quantities"]

_GROUP = 64
_ERROR = 5e-7
"""Four times the error of one weight in float32; no less may be asked for where it is used."""
_RANGE = 500.0
"""Logs of weights and of values may differ by this, for float64 to hold them all at one scale."""


def quantities(
    forest: Forest, profile: Profile, scale: Any, queries: Any, ids: Any, rtol: float
) -> tuple[Any, Any, Any]:
    """Sums (n_queries, n_quantities) at ``exp(shift)``, over their sizes, and the shifts.

    Notes
    -----
    O(n log n) for the order of the queries, then the pairs that matter.
    """
    n, n_quantities = len(queries), forest.log_total.shape[1]
    sums, shift = np.zeros((n, n_quantities)), np.zeros(n)
    rule = _rule(forest, profile, scale, rtol)
    if n == 0 or forest.n_keys == 0:
        return sums, rule.size, shift
    groups = order_in_blocks(queries, scale, _GROUP)
    leaves, order = groups.right < 0, groups.order
    ordered = Queries(
        data=np.asarray(queries, np.float64)[order],
        ids=np.asarray(ids, np.int64)[order] if ids.size else np.empty(0, np.int64),
        start=groups.start[leaves],
        stop=groups.stop[leaves],
    )
    found = sums.copy(), shift.copy()
    answer(_read_only(forest), rule, ordered, _work(forest, n_quantities), *found)
    sums[order], shift[order] = found
    return sums, rule.size, shift


def _rule(forest: Forest, profile: Profile, scale: Any, rtol: float) -> Rule:
    squares = forest.squares
    sizes = [float(abs(v).max(initial=0.0)) for v in forest.values]
    return Rule(
        scale=scale,
        power=float(profile.power),
        squares=squares,
        size=np.array([1.0, 1.0] if squares else [1.0, *sizes]),
        log_share=log(rtol / 8),
        peak=float(forest.log_peak[forest.roots].max(initial=-np.inf)),
        care=_ERROR / rtol if rtol >= _ERROR and profile.name != "uniform" else np.inf,
        log_weight=address_of(log_weight(profile.bare)),
        sums=address_of(rows_sums(profile.bare, len(scale), np.float64)),
        sums32=address_of(rows_sums(profile.bare, len(scale), np.float32)),
        compact=not profile.has_cost,
        closed=not profile.has_cost and _is_tame(forest),
    )


def _is_tame(forest: Forest) -> bool:
    """Whether weights and values are of such sizes that float64 has them all at one scale."""
    ranges = [float(np.ptp(forest.log_weight))] if forest.log_weight.size else []
    for column in forest.values:
        sizes = abs(column[column != 0])
        ranges += [float(np.ptp(np.log(sizes)))] if sizes.size else []
    return max(ranges, default=0.0) < _RANGE


def _work(forest: Forest, n_quantities: int) -> Work:
    leaves = forest.right < 0
    d, n_leaves = len(forest.data), int(np.count_nonzero(leaves))
    longest = int((forest.stop - forest.start)[leaves].max())
    width = longest + 63
    shapes = {"q": (_GROUP, d), "x": (d, width), "out": (n_quantities, width), "u": (width,)}
    double = {name: np.empty(shape) for name, shape in shapes.items()}
    single = {f"{name}32": np.empty(shape, np.float32) for name, shape in shapes.items()}
    return Work(
        **double,
        **single,
        sums=np.empty((_GROUP, n_quantities)),
        least=np.empty((_GROUP, n_quantities)),
        doubt=np.empty(_GROUP),
        reach=np.empty(_GROUP),
        span=np.empty((_GROUP, 2), np.int64),
        chosen=np.empty(_GROUP, np.int64),
        skipped=np.empty(_GROUP * longest, np.int64),
        skip_range=np.empty((_GROUP, 2), np.int64),
        low=np.empty(d),
        high=np.empty(d),
        leaves=np.empty(n_leaves, np.int64),
        gaps=np.empty(n_leaves),
    )


def _read_only(forest: Forest) -> Forest:
    """Views that cannot be written: one kind of arrays, wherever the forest came from."""
    views = [array.view() for array in forest]
    for view in views:
        view.flags.writeable = False
    return Forest(*views)
