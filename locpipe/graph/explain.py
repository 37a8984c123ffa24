"""A plan as a few lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locpipe.engines import engine_name

if TYPE_CHECKING:
    from locpipe.graph.plan import Plan
    from locpipe.graph.room import Blocks, Room

__all__ = ["explain", "human_bytes", "too_much"]

_STRATEGIES = {
    "stream": "each task folds all keys into its queries",
    "tree": "a task per group of queries and of keys; states merge in a tree",
    "symmetric": "the queries are the keys, and each pair is weighed once",
    "summary": "keys are summarised, and queries ask the summary",
}


def explain(plan: Plan) -> str:
    """The plan in words and human units, like a database's EXPLAIN."""
    passes = "one pass" if plan.n_passes == 1 else f"{plan.n_passes} passes"
    lines = {
        "reduction": repr(plan.reduction),
        "kernel": repr(plan.kernel),
        "engine": f"{_engines(plan)}, {passes} over the keys",
        "strategy": f"{plan.strategy}: {_STRATEGIES[plan.strategy]}",
        "blocks": (
            f"{_tasks(plan.n_tasks)}; up to {plan.query_rows:,} queries and {plan.key_rows:,} keys "
            "at a time"
        ),
        "threads": _threads(plan),
        "memory": (
            f"{human_bytes(plan.peak_bytes)} at the peak, limit {human_bytes(plan.memory_limit)}"
            + (" per process" if plan.n_workers > 1 else "")
        ),
        "time": _time(plan.seconds),
    }
    return "\n".join([_title(plan), *(f"  {name:<10}{text}" for name, text in lines.items())])


def human_bytes(n_bytes: int) -> str:
    """Bytes in MiB or GiB.

    Examples
    --------
    >>> human_bytes(3 * 2**29), human_bytes(2**27)
    ('1.50 GiB', '128 MiB')
    """
    return f"{n_bytes / 2**30:.2f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"


_SPARE = 1 / 32
"""A process grows a little from one call to the next."""


def too_much(room: Room, least: Blocks) -> str:
    """What to say where not even the least blocks fit: the limit that would do, and a remedy."""
    peak, limit = room.peak(least), human_bytes(room.place.memory_limit)
    needed, remedy = human_bytes(round_up(peak + int(_SPARE * peak))), _remedy(room, least)
    if room.place.is_cluster and not room.place.is_given:
        return (
            f"a worker needs up to {needed}, and Dask pauses it at {limit} (80% of its limit); "
            f"{remedy}, or give each worker more memory"
        )
    return (
        f"memory_limit must be at least {needed} for these arrays, {human_bytes(room.base)} of it "
        f"for libraries, inputs and results, got {limit}; {remedy}, or raise the limit"
    )


def _remedy(room: Room, least: Blocks) -> str:
    parts = room.parts(least)
    what = max(parts, key=lambda name: parts[name])
    if room.sizes.is_lazy and what != "base":
        return f"take smaller chunks of the {what}"
    if what in ("pairs", "keys"):
        return f"store the {what} in smaller chunks"
    return "hand large arrays over as a store, a memory map or Dask arrays"


def round_up(n_bytes: int) -> int:
    """Bytes that `human_bytes` writes without rounding down.

    Examples
    --------
    >>> round_up(1), human_bytes(round_up(2**30 + 1))
    (1048576, '1.01 GiB')
    """
    step = 2**30 // 100 if n_bytes >= 2**30 else 2**20
    return -(-n_bytes // step) * step


def _engines(plan: Plan) -> str:
    """The engine, what repairs its rows in doubt, and what answers the first pass."""
    repair, ranker = engine_name(plan.op.pairwise), engine_name(plan.op.ranker)
    text = plan.engine
    if plan.op.engine is not None and getattr(plan.op.engine, "leaves_doubt", True):
        text += f", rows in doubt by {repair}"
    return text if plan.n_passes == 1 else f"{text}, ranking by {ranker}"


def _title(plan: Plan) -> str:
    sizes = f"{plan.n_features} feature{'s' * (plan.n_features != 1)}"
    if plan.n_outputs:
        sizes += f", {plan.n_outputs} output{'s' * (plan.n_outputs != 1)}"
    if plan.n_queries is None:
        return f"queries of unknown number x {plan.n_keys:,} keys; {sizes}"
    pairs = plan.n_queries * plan.n_keys
    return f"{plan.n_queries:,} queries x {plan.n_keys:,} keys = {pairs:.1e} pairs; {sizes}"


def _tasks(n_tasks: int) -> str:
    return f"{n_tasks:,} task{'s' * (n_tasks != 1)}"


def _threads(plan: Plan) -> str:
    if plan.n_workers == 1:
        return f"{plan.n_threads}"
    return f"{plan.n_threads} in each of {plan.n_workers} processes"


def _time(seconds: float) -> str:
    if seconds < 1:
        return "under a second"
    if seconds < 120:
        return f"about {seconds:.0f} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} min" if minutes < 120 else f"about {minutes / 60:.0f} h"
