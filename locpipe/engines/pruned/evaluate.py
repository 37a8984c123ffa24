"""From a forest and queries to sums: every row at the least accuracy that serves it."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numba import typeof

from locpipe.engines.fused.profiles import Profile
from locpipe.engines.pruned.bounds import Rule, Tree, nearest_leaves
from locpipe.engines.pruned.entry import address_of
from locpipe.engines.pruned.far import answer_rows
from locpipe.engines.pruned.forest import Forest
from locpipe.engines.pruned.kd import order_in_blocks
from locpipe.engines.pruned.leaves import Found, Keys, Mask
from locpipe.engines.pruned.sums import Form, log_weight, rows_sums
from locpipe.engines.pruned.walk import Groups, Work, walk

__all__ = ["quantities"]

_GROUP = 64
_ERROR = 5e-7
"""Four times the error of one weight in float32; no less may be asked for where it is used."""
_RANGE = 500.0
"""Logs of weights and of values may differ by this, for float64 to hold them all at one scale."""
_LEAST_SHARE = 1e-300
"""Some part of a quantity is never taken for none."""
_LEAST_SIZE = 1e-300
_WIDEST = 16.0
"""Widest group of queries, in units of the scale, about whose centre float32 places keys well."""
_MANY = 4.0
"""Least mass that is summed in float32."""
_TINY = 1e-100
"""Least mass that is summed in float64 without a shift."""


@dataclass(frozen=True)
class _Job:
    """What all passes share.

    Attributes
    ----------
    forest : Forest
    profile : Profile
    rule : Rule
    tree : Tree
    queries : array (n, n_features)
    spans : int64 array (n, 2) or (0, 2)
        As in `Mask`, where some keys are left out.
    care : float
        A quantity must be larger than this times the square root of its doubt to be summed in
        float32; infinite where nothing is.
    """

    forest: Forest
    profile: Profile
    rule: Rule
    tree: Tree
    queries: Any
    spans: Any
    care: float


def quantities(
    forest: Forest, profile: Profile, scale: Any, queries: Any, ids: Any, rtol: float
) -> tuple[Any, Any, Any]:
    """Sums (n_queries, n_quantities) at ``exp(shift)``, over their sizes, and the shifts.

    Notes
    -----
    O(n log n) for the order of the queries, then the pairs that matter.
    """
    n, n_quantities = len(queries), forest.log_total.shape[1]
    sums, rule = np.zeros((n, n_quantities)), _rule(forest, profile, scale, rtol)
    shift = np.full(n, rule.peak)
    if n == 0 or forest.n_keys == 0:
        return sums, rule.size, shift
    job = _job(Forest(*map(_read_only, forest)), profile, rule, queries, ids, rtol)
    left = np.arange(n)
    for real in (np.float32, np.float64) if job.care < np.inf else (np.float64,):
        order, found = _summed(job, left, real)
        sums[order] = found.sums
        left = order[~_serves(job, found, real)]
        if not left.size:
            return sums, rule.size, shift
    sums[left], shift[left] = _one_by_one(job, left)
    return sums, rule.size, shift


def _rule(forest: Forest, profile: Profile, scale: Any, rtol: float) -> Rule:
    squares = forest.squares
    sizes = [_size(values) for values in forest.values]
    with np.errstate(divide="ignore"):
        log_total = np.logaddexp.reduce(forest.log_total[forest.roots], axis=0, initial=-np.inf)
    return Rule(
        scale=scale,
        power=float(profile.power),
        squares=squares,
        size=np.array([1.0, 1.0] if squares else [1.0, *sizes]),
        log_total=log_total,
        log_share=log(rtol / 8),
        peak=float(forest.log_peak[forest.roots].max(initial=-np.inf)),
        log_weight=address_of(log_weight(profile.bare)),
        compact=not profile.has_cost,
    )


def _size(values: Any) -> float:
    """The largest size, or 0; its inverse is a number, however tiny the values are."""
    largest = float(abs(values).max(initial=0.0))
    return max(largest, _LEAST_SIZE) if largest else 0.0


def _job(forest: Forest, profile: Profile, rule: Rule, queries: Any, ids: Any, rtol: float) -> _Job:
    some = np.where(forest.log_total > -np.inf, _LEAST_SHARE, 0.0)
    known = np.where(rule.log_total > -np.inf, rule.log_total, 0.0)
    peak = np.exp(forest.log_peak - rule.peak)
    tree = Tree(
        nodes=np.stack([forest.right, forest.start, forest.stop], axis=1),
        boxes=np.hstack([forest.low, forest.high]),
        shares=np.column_stack([np.maximum(np.exp(forest.log_total - known), some), peak]),
        roots=forest.roots,
    )
    named = forest.ids[forest.by_id]
    sides = [np.searchsorted(named, ids, side) for side in ("left", "right")]
    exact = rtol < _ERROR or profile.name == "uniform"
    care = np.inf if exact else _ERROR / rtol
    return _Job(forest, profile, rule, tree, queries, np.stack(sides, axis=1), care)


def _summed(job: _Job, rows: Any, real: Any) -> tuple[Any, Found]:
    """Some rows in k-d order, and what is found for them in this order."""
    forest, rule, data = job.forest, job.rule, job.forest.data
    order, groups = _groups(job, rows, real)
    weight = forest.weight if forest.weight.size else _read_only(np.ones(1))
    keys = Keys(data.view(np.uint8), forest.values, weight)
    shared = _mask(job, order), rule, _tile(job, real), _nothing(len(rows), rule.size.size)
    of_rows = keys, 0, 0, 0.0, groups, 0, np.empty(0, np.int64), 0
    kinds = tuple(typeof(argument) for argument in (*of_rows, *shared))
    masked = bool(len(job.spans))
    form = Form(job.profile.bare, len(rule.scale), real, data.dtype.type, rule.squares, masked)
    mask, _, tile, found = shared
    address = address_of(rows_sums(form, kinds))
    walk(job.tree, rule, groups, _work(job), address, keys, mask, tile, found)
    return order, found


def _groups(job: _Job, rows: Any, real: Any) -> tuple[Any, Groups]:
    """Rows in k-d order, and the groups of those that the accuracy is for."""
    scale = job.rule.scale
    blocks = order_in_blocks(job.queries[rows], scale, _GROUP)
    order, leaves = rows[blocks.order], blocks.right < 0
    if real is np.float32:
        leaves &= ((blocks.high - blocks.low) / scale <= _WIDEST).all(axis=1)
    boxes = np.hstack([blocks.low, blocks.high])[leaves]
    nearest = nearest_leaves(job.tree, boxes, scale)
    places = np.stack([blocks.start[leaves], blocks.stop[leaves], nearest], axis=1)
    return order, Groups(places, boxes, _doubles(job.queries[order]))


def _doubles(rows: Any) -> Any:
    return np.asarray(rows, np.float64, order="C")


def _mask(job: _Job, rows: Any) -> Any:
    return Mask(job.forest.by_id, job.spans[rows]) if len(job.spans) else ()


def _serves(job: _Job, found: Found, real: Any) -> Any:
    """Whether the quantities are large enough for the accuracy at hand.

    In float32 the errors of weights are independent, and no slope exceeds about 1: their sum is
    of the size of the root of the sum of slopes.
    """
    mass = found.least[:, 0]
    if real is np.float64:
        return (mass >= _TINY) | (not job.profile.has_cost and _is_tame(job.forest))
    seen = job.rule.size > 0
    if job.rule.squares:
        seen[1] = False
    needed = job.care * np.sqrt(found.least[:, -1] + mass)
    return (mass >= _MANY) & (found.least[:, :-1][:, seen] >= needed[:, None]).all(axis=1)


def _is_tame(forest: Forest) -> bool:
    """Whether weights and values are of such sizes that float64 has them all at one scale."""
    ranges = [float(np.ptp(forest.log_weight))] if forest.log_weight.size else []
    for column in forest.values:
        sizes = abs(column[column != 0])
        ranges += [float(np.ptp(np.log(sizes)))] if sizes.size else []
    return max(ranges, default=0.0) < _RANGE


def _one_by_one(job: _Job, rows: Any) -> tuple[Any, Any]:
    """Sums of rows that the others leave, and their shifts."""
    forest, rule, data = job.forest, job.rule, _doubles(job.queries[rows])
    groups = Groups(np.empty((0, 3), np.int64), np.hstack([data, data]), data)
    keys = Keys(forest.data, forest.values, forest.weight)
    found, shift = _nothing(len(rows), rule.size.size), np.empty(len(rows))
    waiting, logs = np.empty(len(job.tree.nodes), np.int64), np.empty((1, _longest(forest)))
    more = forest.log_weight, _mask(job, rows), logs, np.ones(rule.size.size), found, shift
    answer_rows(job.tree, rule, groups, waiting, keys, *more)
    return found.sums, shift


def _nothing(n: int, n_quantities: int) -> Found:
    return Found(sums=np.zeros((n, n_quantities)), least=np.zeros((n, n_quantities + 1)))


def _longest(forest: Forest) -> int:
    return int((forest.stop - forest.start)[forest.right < 0].max())


def _tile(job: _Job, real: Any) -> Any:
    """Memory for a query, the keys of a leaf, what their weights are multiplied by, and these."""
    n_rows, width = 2 + len(job.rule.scale) + job.rule.size.size, _longest(job.forest) + 63
    return np.empty((n_rows, max(width, len(job.rule.scale))), real).view(np.uint8)


def _work(job: _Job) -> Work:
    n_nodes = len(job.tree.nodes)
    return Work(
        reach=np.empty(_GROUP),
        rest=np.empty(job.rule.size.size),
        chosen=np.empty(_GROUP, np.int64),
        leaves=np.empty(n_nodes + 1, np.int64),
        gaps=np.empty(n_nodes),
    )


def _read_only(array: Any) -> Any:
    """A view that cannot be written: one kind of array, wherever it came from."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
