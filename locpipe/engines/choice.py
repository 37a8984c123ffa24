"""Which engine serves a fold: the one that is asked for, or the cheapest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from locpipe.engines.base import Engine, Need, PairEngine
from locpipe.engines.dense import Dense
from locpipe.errors import InputError

__all__ = ["NAMES", "choices", "engine_name", "pairwise"]


@dataclass(frozen=True)
class _Entry:
    """Where an engine is, and what it is for; loaded when it is first asked."""

    name: str
    module: str
    kind: str
    ranks: bool
    library: str = "numpy"
    auto: bool = True

    def engine(self) -> Any:
        """The engine's class."""
        return getattr(import_module(f"locpipe.engines.{self.module}"), self.kind)


_ENTRIES = (
    _Entry("fused", "fused", "Fused", ranks=False),
    _Entry("fused", "cuda", "FusedCuda", ranks=False, library="cupy"),
    _Entry("fused", "ranked", "Ranked", ranks=True),
    _Entry("pruned", "pruned", "Pruned", ranks=False),
    _Entry("pruned", "ranked", "RankedTrees", ranks=True),
    _Entry("pruned", "ranked", "RankedProjected", ranks=True),
    _Entry("spectral", "spectral", "Spectral", ranks=False),
    _Entry("spectral", "cuda", "SpectralCuda", ranks=False, library="cupy", auto=False),
    _Entry("approximate", "ranked", "Approximate", ranks=True, auto=False),
)
NAMES = ("auto", "dense", "fused", "pruned", "spectral", "approximate")
_WORTH_COMPILED_SECONDS = 0.02
"""What takes the reference engine less is not worth loading a compiler for."""


def choices(name: str, need: Need) -> list[Engine]:
    """The engine of that name, or under ``"auto"`` all that pay, that of least seconds first.

    Raises
    ------
    InputError
        If the engine cannot serve: why, and which can.
    """
    if name == "dense":
        return [Dense()]
    return _by_seconds(need) if name == "auto" else [_named(name, need)]


def _named(name: str, need: Need) -> Engine:
    reasons = []
    for kind, reason in _asked(need, name):
        if reason is None:
            engine: Engine = kind.build(need)
            return engine
        reasons.append(reason)
    why = "; ".join(reasons) or _wrong_kind(need)
    others = ", ".join(f"{other!r}" for other in _able(need))
    raise InputError(f"engine={name!r} cannot serve this: it {why}; these can: {others}")


def pairwise(need: Need) -> PairEngine:
    """The engine that goes pair by pair where a summary leaves a row in doubt."""
    for kind, reason in _asked(need, "fused"):
        if reason is None:
            engine: PairEngine = kind.build(need)
            return engine
    return Dense()


def engine_name(engine: Any) -> str:
    """The name that users know an engine by, or that of its class."""
    return str(getattr(engine, "name", type(engine).__name__.lower()))


def _by_seconds(need: Need) -> list[Engine]:
    """Engines that are faster than the reference, and the reference at last."""
    slowest = Dense.seconds(need)
    if slowest < _WORTH_COMPILED_SECONDS:
        return [Dense()]
    kinds = [entry.engine() for entry in _suited(need) if entry.auto]
    priced = [(kind.seconds(need), kind) for kind in kinds if kind.refusal(need) is None]
    faster = sorted((p for p in priced if p[0] < slowest), key=lambda p: p[0])
    return [*(kind.build(need) for _, kind in faster), Dense()]


def _suited(need: Need) -> Iterator[_Entry]:
    """Engines that are for such a reduction and such arrays."""
    for entry in _ENTRIES:
        if entry.ranks == need.reduction.ranks and entry.library in ("numpy", need.library):
            yield entry


def _asked(need: Need, name: str) -> Iterator[tuple[Any, str | None]]:
    """Engines of a name, and why they refuse."""
    for entry in _suited(need):
        if entry.name == name:
            kind = entry.engine()
            yield kind, kind.refusal(need)


def _able(need: Need) -> list[str]:
    """Names of the engines that serve."""
    names = dict.fromkeys(entry.name for entry in _ENTRIES)
    return ["dense", *(n for n in names if any(r is None for _, r in _asked(need, n)))]


def _wrong_kind(need: Need) -> str:
    ranked = "ranks keys" if not need.reduction.ranks else "sums weights, and ranks no keys"
    return f"{ranked}, got {type(need.reduction).__name__}"
