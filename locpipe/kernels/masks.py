"""Masks: kernels whose log weight is 0 (neighbour) or -inf (none)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from array_api_compat import array_namespace

from locpipe.blocks import Array, KeyBlock, QueryBlock, row_ids, row_times
from locpipe.errors import InputError, shown
from locpipe.kernels.base import Kernel, KernelSpec, as_number
from locpipe.kernels.times import at_most

__all__ = ["Causal", "ExcludeSelf", "Window"]


def _log(mask: Array, like: Array) -> Array:
    xp = array_namespace(like)
    return xp.where(mask, xp.zeros((), dtype=xp.float64), xp.asarray(-xp.inf, dtype=xp.float64))


class Mask(Kernel):
    """What all masks share."""

    is_mask: ClassVar[bool] = True
    tile_arrays = 3

    @property
    def allows_missing(self) -> bool:
        """Coordinates are not looked at."""
        return True

    def nearness(self) -> Kernel:
        """Itself: who may be a neighbour."""
        return self

    def lower(self, n_features: int) -> KernelSpec:
        """At most 1."""
        return KernelSpec(log_bound=0.0)


@dataclass(frozen=True)
class ExcludeSelf(Mask):
    """No row is its own neighbour: pairs with equal ids get no weight.

    Rows are told apart by their ids, which are their indices unless `locpipe.Queries` and
    `locpipe.Keys` bring others: so for some of the rows, or a shuffled copy, give
    ``lp.Queries(x[rows], ids=rows)``.  Without ids, ``x[rows][0]`` would leave out ``x[0]``.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> x = np.array([[0.0], [1.0], [9.0]])
    >>> kernel = lp.kernels.Gaussian(1.0) * lp.masks.ExcludeSelf()
    >>> lp.local_mean(x, x, np.array([5.0, 7.0, 9.0]), kernel)[0].round(6)
    np.float64(7.0)

    The same for the last two rows alone, as in cross-validation:

    >>> rows = np.array([1, 2])
    >>> queries = lp.Queries(x[rows], ids=rows)
    >>> print(lp.local_mean(queries, x, np.array([5.0, 7.0, 9.0]), kernel).round(3))
    [5. 7.]
    """

    @property
    def symmetric(self) -> bool:
        """Equal ids are equal both ways."""
        return True

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """``-inf`` where the ids agree."""
        return _log(row_ids(q)[:, None] != row_ids(k)[None, :], q.data)


@dataclass(frozen=True)
class Causal(Mask):
    """A query sees the keys whose time is at most its own plus `offset`.

    Parameters
    ----------
    offset : float
        Units of `time`, which is the row's index unless `locpipe.Queries` and `locpipe.Keys`
        bring another.  0 is the causal mask of torch's attention; a decoder with a cache needs
        ``n_keys - n_queries``.

    Raises
    ------
    InputError
        If `offset` is not a finite number.

    Examples
    --------
    A mean of all rows so far:

    >>> import locpipe as lp
    >>> print(lp.local_mean([0.0] * 3, [0.0] * 3, [1.0, 2.0, 6.0], lp.masks.Causal()))
    [1.  1.5 3. ]
    """

    offset: float = 0

    def __post_init__(self) -> None:
        if as_number(self.offset) is None:
            raise InputError(f"offset must be a finite number, got {shown(self.offset)}")

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """``-inf`` for keys in the future."""
        return _log(at_most(row_times(k), row_times(q), self.offset), q.data)


@dataclass(frozen=True)
class Window(Mask):
    """A query sees the keys of the last `width` units of time: ``0 <= t - s < width``.

    It is causal as it stands: a query of time t sees no key of a later time s.

    Parameters
    ----------
    width : float
        At least 1, in units of `time`, which is the row's index unless `locpipe.Queries` and
        `locpipe.Keys` bring another.

    Raises
    ------
    InputError
        If `width` is not a finite number of at least 1.

    Examples
    --------
    A mean of each row and the one before:

    >>> import locpipe as lp
    >>> print(lp.local_mean([0.0] * 3, [0.0] * 3, [1.0, 2.0, 6.0], lp.masks.Window(2)))
    [1.  1.5 4. ]
    """

    width: float

    def __post_init__(self) -> None:
        width = as_number(self.width)
        if width is None or width < 1:
            raise InputError(f"a window must have width 1 or more, got {shown(self.width)}")

    def log_weights(self, q: QueryBlock, k: KeyBlock) -> Array:
        """``-inf`` outside the window."""
        t, s = row_times(q), row_times(k)
        return _log(at_most(s, t, 0) & ~at_most(s, t, -self.width), q.data)
