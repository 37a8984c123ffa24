"""Sums over one span of keys, as they come from the device, and the states they make."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock
from locpipe.engines.parts import Parts
from locpipe.reductions.base import Reduction, State, finite
from locpipe.reductions.log_mass import LogMass, LogMassState
from locpipe.reductions.weighted_mean import WeightedMeanState

__all__ = ["KeyLogs", "Sums", "concat_sums", "key_logs", "merged"]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of weights at ``exp(shift)``, one row per query.

    Attributes
    ----------
    shift, mass : float64 arrays (n_queries,)
    moment : float64 array (n_queries, n_outputs)
        Of weight times value; for `LogMass` the one column is the sum of squared weights.
    """

    shift: Array
    mass: Array
    moment: Array


@dataclass(frozen=True, eq=False)
class KeyLogs:
    """What each key adds to its log weights, less the largest of it.

    Attributes
    ----------
    relative : float64 array (n_keys,) or None
        At most 0; None where all keys count alike.
    top : float
        What was taken off.
    """

    relative: Array | None
    top: float


def key_logs(parts: Parts, k: KeyBlock) -> KeyLogs:
    """Logs of the sample weights and of the normalisers of the keys' own bandwidths."""
    xp = array_namespace(k.data)
    total = None
    if k.log_sample_weight is not None:
        total = xp.astype(k.log_sample_weight, xp.float64)
    if parts.per_row and k.bandwidth is not None:
        own = -k.data.shape[1] * xp.log(xp.astype(k.bandwidth, xp.float64))
        total = own if total is None else total + own
    if total is None:
        return KeyLogs(None, 0.0)
    top = float(finite(xp.max(total)))
    return KeyLogs(total - top, top)


def concat_sums(pieces: list[Sums]) -> Sums:
    """Sums of consecutive queries as one."""
    if len(pieces) == 1:
        return pieces[0]
    xp = array_namespace(pieces[0].mass)
    names = [field.name for field in fields(Sums)]
    return Sums(*(xp.concat([getattr(piece, name) for piece in pieces]) for name in names))


def merged(
    parts: Parts,
    reduction: Reduction,
    state: Any,
    q: QueryBlock,
    k: KeyBlock,
    sums: Sums,
    key_top: float,
) -> State:
    """`state` and the sums, with what is constant per query in the shift."""
    xp = array_namespace(sums.mass)
    shift = sums.shift + (parts.log_factor + key_top)
    if parts.per_row and q.bandwidth is not None:
        shift = shift - q.data.shape[1] * xp.log(xp.astype(q.bandwidth, xp.float64))
    none = xp.asarray(-xp.inf, dtype=shift.dtype)
    shift = xp.where(sums.mass > 0, shift, none)
    new: State
    if isinstance(reduction, LogMass):
        weight = xp.full(shift.shape, _key_weight(k), dtype=xp.float64)
        new = LogMassState(shift, sums.mass, sums.moment[:, 0], weight)
    else:
        new = WeightedMeanState(shift, sums.mass, sums.moment)
    return reduction.merge(state, new)


def _key_weight(k: KeyBlock) -> float:
    if k.log_sample_weight is None:
        return float(k.n_rows)
    xp = array_namespace(k.log_sample_weight)
    return float(xp.sum(xp.exp(xp.astype(k.log_sample_weight, xp.float64))))
