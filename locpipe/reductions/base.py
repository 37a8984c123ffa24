"""What a reduction is: a monoid over keys, one state per query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, ClassVar

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, Tile
from locpipe.errors import InputError, shown

__all__ = [
    "Reduction",
    "State",
    "check_outputs",
    "check_whole",
    "fill_empty",
    "full",
    "merge_shifts",
    "weights_and_shift",
]

State = tuple[Array, ...]
"""A named tuple of arrays whose first axis runs over the queries; it never holds NaN."""


NO_KEY = 2**63 - 1
"""Index of an empty place: it sorts after every key."""


class Reduction(ABC):
    """What is kept.  Concrete reductions are frozen dataclasses of scalars.

    The laws, up to rounding: ``merge`` is associative and commutative with ``init`` as its
    neutral element, and ``update(s, tile) == merge(s, update(init, tile))``.
    """

    reads_kernel: ClassVar[bool] = True
    """Whether `update` needs log weights; False: it works on the pairs alone."""

    ranks: ClassVar[bool] = False
    """Whether it picks keys by their log weights, so that those of equal rows must tie exactly."""

    @property
    def tile_arrays(self) -> int:
        """Arrays of the tile's size that `update` holds at once, log weights not counted."""
        return 6

    def check(self, *, query_features: int, key_features: int, n_outputs: int) -> None:
        """Refuse rows that do not fit the reduction's parameters; a fold asks before it begins.

        `n_outputs` is the number of values per key, 0 without values.

        Raises
        ------
        InputError
            Naming both numbers that should be equal.
        """
        return

    def no_neighbour(self, state: Any) -> Array:
        """Which queries have met no key of positive weight, bool (n_queries,).

        Only for reductions that know an empty neighbourhood by their state.
        """
        raise InputError(f"{type(self).__name__} has no value to take from the nearest key")

    @abstractmethod
    def init(self, q: QueryBlock) -> State:
        """State of `q` before any key."""

    @abstractmethod
    def update(
        self, state: Any, log_w: Array | None, q: QueryBlock, k: KeyBlock, pair: Tile | None = None
    ) -> State:
        """State with the keys of one tile folded in; `log_w` is (n_queries, n_keys) float64."""

    @abstractmethod
    def merge(self, a: Any, b: Any) -> State:
        """State of the keys of both."""

    @abstractmethod
    def finalize(self, state: Any, empty: float) -> tuple[Array, ...]:
        """Results; a query with no neighbour gets `empty`."""


def check_whole(reduction: Reduction, name: str, least: int) -> None:
    """Refuse a parameter that is no whole number of at least `least`; keep it as an int.

    Raises
    ------
    InputError
        Naming the parameter.
    """
    value = getattr(reduction, name)
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number of at least {least}, got {shown(value)}")
    object.__setattr__(reduction, name, int(value))


def check_outputs(reduction: Reduction, expected: int, n_outputs: int) -> None:
    """Refuse keys whose values have another number of columns than the reduction.

    Raises
    ------
    InputError
        Naming both numbers.
    """
    name = type(reduction).__name__
    if n_outputs == 0:
        raise InputError(f"{name} needs values, one row per key, got none; give lp.Keys(x, values)")
    if n_outputs != expected:
        raise InputError(
            f"{name} was made for n_outputs={expected}, got keys with {n_outputs} value(s) each; "
            "the two must be equal"
        )


def weights_and_shift(shift: Array, log_w: Array) -> tuple[Array, Array, Array]:
    """One step of online softmax (Milakov and Gimelshein 2018).

    Returns
    -------
    new_shift : array (n_queries,)
        Largest log weight so far.
    old_scale : array (n_queries,)
        Factor that brings the old sums to the new shift.
    weights : array (n_queries, n_keys)
        Weights of the tile at the new shift.

    Notes
    -----
    ``(m, s) + (m', s') = (M, exp(m - M) s + exp(m' - M) s')`` with ``M = max(m, m')``.
    """
    xp = array_namespace(log_w)
    new_shift = xp.maximum(shift, xp.max(log_w, axis=1))
    guard = finite(new_shift)
    return new_shift, xp.exp(shift - guard), xp.exp(log_w - guard[:, None])


def merge_shifts(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Common shift of two states, and the factor that brings each one there."""
    xp = array_namespace(a)
    shift = xp.maximum(a, b)
    guard = finite(shift)
    return shift, xp.exp(a - guard), xp.exp(b - guard)


def finite(shift: Array) -> Array:
    """The shift, with 0 in place of -inf: ``-inf - (-inf)`` would be NaN."""
    xp = array_namespace(shift)
    return xp.where(xp.isfinite(shift), shift, xp.zeros((), dtype=shift.dtype))


def full(q: QueryBlock, shape: tuple[int, ...], value: float) -> Array:
    """A float64 array of one row per query, beside the queries."""
    xp = array_namespace(q.data)
    return xp.full((q.n_rows, *shape), value, dtype=xp.float64)


def fill_empty(result: Array, mass: Array, empty: float) -> Array:
    """`result` with `empty` where the mass is 0."""
    xp = array_namespace(result)
    mask = mass == 0
    if not bool(xp.any(mask)):
        return result
    mask = mask if result.ndim == 1 else mask[:, None]
    return xp.where(mask, xp.asarray(empty, dtype=result.dtype), result)
