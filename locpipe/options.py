"""Options that every function takes: how to compute."""

from __future__ import annotations

from math import nan
from numbers import Integral, Real
from typing import Any, Literal, TypedDict

from locpipe.config import parse_bytes
from locpipe.errors import ConfigError, InputError, shown

__all__ = ["Checked", "Run", "check_run"]

_EMPTY: dict[str, float | Literal["nearest"]] = {"nan": nan, "zero": 0.0, "nearest": "nearest"}
_ENGINES = ("auto", "dense", "fused", "pruned", "spectral", "approximate")


class Run(TypedDict, total=False):
    """How to compute; none of it changes a result beyond `rtol`, but for `empty`.

    Attributes
    ----------
    engine : {"auto", "dense", "fused", "pruned", "spectral", "approximate"}
        ``"auto"`` takes the cheapest that keeps `rtol`.  ``"dense"`` is the reference: every
        pair, in float64.  ``"fused"``: every pair, in compiled loops.  ``"pruned"``: no pair that
        cannot matter.  ``"spectral"``: nonuniform Fourier transforms.  ``"approximate"``: nearest
        neighbours that are mostly right, never taken by itself.
    rtol : float, optional
        Error allowed, between 0 and 1; default 1e-6 for float32 queries and 1e-10 for float64.
        For every query it bounds the error of the mass by the mass, and that of a mean by the
        local mean of the values' sizes.
    memory_limit : int or str, optional
        Bytes that the process may take, such as ``"2 GiB"``, at least 512 MiB; kept by taking
        fewer rows and threads at a time.  Default: the setting in force (`lp.config`).
    n_threads : int, optional
        Threads for arrays in memory; default: the processors granted to the process.
    empty : {"nan", "zero", "nearest"}
        Result of a query with no neighbour; ``"nearest"``: that of its nearest key.
    """

    engine: str
    rtol: float | None
    memory_limit: int | str | None
    n_threads: int | None
    empty: str


class Checked(TypedDict, total=False):
    """What a fold is told of them."""

    engine: Any
    rtol: float | None
    empty: float | Literal["nearest"]
    n_threads: int | None
    memory_limit: int | None


def check_run(run: Run) -> Checked:
    """The options as a fold takes them.

    Raises
    ------
    InputError
        Naming the first that is unknown or out of range.
    """
    if unknown := sorted(set(run) - set(Run.__annotations__)):
        raise InputError(
            f"unknown option(s) {unknown}; the options are {list(Run.__annotations__)}"
        )
    engine, empty = run.get("engine", "auto"), run.get("empty", "nan")
    if not isinstance(engine, str) or engine not in _ENGINES:
        raise InputError(f"engine must be one of {list(_ENGINES)}, got {shown(engine)}")
    if not isinstance(empty, str) or empty not in _EMPTY:
        raise InputError(f"empty must be one of {list(_EMPTY)}, got {shown(empty)}")
    return Checked(
        engine=engine,
        rtol=_check_rtol(run.get("rtol")),
        empty=_EMPTY[empty],
        n_threads=_check_threads(run.get("n_threads")),
        memory_limit=_check_memory(run.get("memory_limit")),
    )


def _check_rtol(rtol: object) -> float | None:
    if rtol is None:
        return None
    if isinstance(rtol, bool) or not isinstance(rtol, Real) or not 0 < float(rtol) < 1:
        raise InputError(f"rtol must be None or a number between 0 and 1, got {shown(rtol)}")
    return float(rtol)


def _check_threads(n_threads: object) -> int | None:
    if n_threads is None:
        return None
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise InputError(f"n_threads must be a whole number of at least 1, got {shown(n_threads)}")
    return int(n_threads)


def _check_memory(memory_limit: object) -> int | None:
    try:
        return None if memory_limit is None else parse_bytes(memory_limit)
    except ConfigError as error:
        raise InputError(str(error)) from None
