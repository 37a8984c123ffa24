"""Log of the total weight: densities, normalisers, effective number of neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.errors import InputError
from locpipe.reductions.base import Reduction, full, merge_shifts, weights_and_shift

__all__ = ["LogMass", "LogMassState"]


class LogMassState(NamedTuple):
    """Sums at ``exp(shift)``: of weights, and of squared weights at ``exp(2 shift)``.

    `key_weight` is the plain sum of the sample weights of the keys seen: what turns a mass
    into a density without a pass of its own.
    """

    shift: Array
    mass: Array
    mass_of_squares: Array
    key_weight: Array


@dataclass(frozen=True)
class LogMass(Reduction):
    """``log sum_i w_i`` per query, and the effective number of neighbours.

    Finalizes to ``(log_mass, n_effective, key_weight)``, each (n_queries,), with
    ``n_effective = (sum w)^2 / sum w^2`` (Kish 1965).  No neighbour: ``-inf`` and 0.

    Examples
    --------
    >>> import locpipe as lp
    >>> x, kernel = [0.0, 1.0, 2.0, 4.0], lp.kernels.Gaussian(1.0)
    >>> log_mass, n_effective, key_weight = lp.fold(lp.reductions.LogMass(), [1.5], x, kernel)
    >>> print(n_effective.round(6))
    [2.734153]
    """

    @property
    def tile_arrays(self) -> int:
        """Weights, and one step on the way to them."""
        return 3

    def init(self, q: QueryBlock) -> LogMassState:
        """No mass."""
        zero = full(q, (), 0.0)
        return LogMassState(full(q, (), float("-inf")), zero, zero, zero)

    def update(
        self,
        state: LogMassState,
        log_w: Array | None,
        q: QueryBlock,
        k: KeyBlock,
        pair: Tile | None = None,
    ) -> LogMassState:
        """Add a tile's weights."""
        xp = array_namespace(log_w)
        shift, scale, w = weights_and_shift(state.shift, log_w)
        mass = scale * state.mass + xp.sum(w, axis=1)
        squares = scale * scale * state.mass_of_squares + xp.sum(w * w, axis=1)
        return LogMassState(shift, mass, squares, state.key_weight + _key_weight(k))

    def merge(self, a: LogMassState, b: LogMassState) -> LogMassState:
        """Bring both to the larger shift and add."""
        shift, ca, cb = merge_shifts(a.shift, b.shift)
        squares = ca * ca * a.mass_of_squares + cb * cb * b.mass_of_squares
        mass, key_weight = ca * a.mass + cb * b.mass, a.key_weight + b.key_weight
        return LogMassState(shift, mass, squares, key_weight)

    def finalize(self, state: LogMassState, empty: float) -> tuple[Array, ...]:
        """The log mass has no empty value but -inf, so `empty` is not used."""
        xp = array_namespace(state.mass)
        if bool(xp.any(state.key_weight == 0)):
            raise InputError("sample_weight must have at least one positive entry, got all zeros")
        some = state.mass > 0
        one = xp.ones((), dtype=state.mass.dtype)
        log_mass = xp.where(some, state.shift + xp.log(xp.where(some, state.mass, one)), -xp.inf)
        squares = xp.where(some, state.mass_of_squares, one)
        return log_mass, state.mass * state.mass / squares, state.key_weight


def _key_weight(k: KeyBlock) -> Array | float:
    if k.log_sample_weight is None:
        return float(k.n_rows)
    xp = array_namespace(k.log_sample_weight)
    return xp.sum(xp.exp(k.log_sample_weight))
