"""Keys looked at once: checks, box and moments, for any number of folds after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from math import inf
from typing import Any, NamedTuple, Unpack

import numpy as np
from array_api_compat import array_namespace, is_dask_array

from locpipe.blocks import KeyBlock, row_slices
from locpipe.engines import Spread
from locpipe.errors import InputError
from locpipe.graph.checked import CheckedKeys, checked_source, no_weight
from locpipe.graph.inputs import Keys, as_keys, has_dask
from locpipe.graph.layer import Layer, groups_of, row_blocks
from locpipe.graph.sources import KEY_BLOCK_ROWS, KeySource
from locpipe.options import Run, check_run

__all__ = ["PreparedKeys", "checked_keys", "prepare", "prepared_of"]

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class PreparedKeys:
    """Keys that were checked, with what one pass over them told; made by `prepare`.

    Attributes
    ----------
    rows : Keys or KeySource
        The keys, of the kind that came.
    n_keys, n_features : int
    low, high : float64 arrays (n_features,)
        The box of the keys of positive weight (feature units).
    mean, variance : float64 arrays (n_features,)
        Weighted by `sample_weight`; the variance divides by the total weight.
    total_weight : float
        Sum of the sample weights, or the number of keys.
    """

    rows: Keys | KeySource = field(repr=False)
    n_keys: int
    n_features: int
    low: Floats
    high: Floats
    mean: Floats
    variance: Floats
    total_weight: float
    summaries: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """Summaries of keys in memory, by engine: made once for any number of query sets."""

    @property
    def spread(self) -> Spread:
        """Where the keys lie, as engines take it."""
        known = (self.low, self.high, self.mean, self.variance)
        return Spread(*(tuple(map(float, row)) for row in known))


def prepare(
    keys: Any, values: Any = None, sample_weight: Any = None, **run: Unpack[Run]
) -> PreparedKeys:
    """Look at the keys once, now, so that later calls need not.

    This computes, on Dask arrays and stores too: one pass over the keys.  Dask arrays stay as
    they are; persist them first if they are dear to make.

    Parameters
    ----------
    keys : array (n_keys, n_features) or (n_keys,), NumPy or Dask, or Keys or KeySource
    values : array (n_keys, n_outputs) or (n_keys,), optional
    sample_weight : array (n_keys,), optional
    **run
        Options of all functions (`lp.functions.Run`); none changes what is prepared.

    Returns
    -------
    PreparedKeys
        Goes wherever keys go, with the same results to the bit, as long as its arrays are left
        as they are; to `abramson_bandwidths` only if
        made of arrays, as there the keys are the queries too.  Chunks of unknown size are known
        in it.

    Raises
    ------
    InputError
        If there is no key, shapes disagree, data is not finite, a weight is negative, or all
        weights are 0.

    Notes
    -----
    O(n_keys n_features) time; memory is one block of keys.  Moments of blocks are merged by
    the update of Chan, Golub and LeVeque (1983), equation 2.1, with weights.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> keys = lp.prepare(np.array([[0.0, 1.0], [4.0, 3.0]]), sample_weight=[1.0, 3.0])
    >>> print(keys.low, keys.high, keys.mean, keys.variance, keys.total_weight)
    [0. 1.] [4. 3.] [3.  2.5] [3.   0.75] 4.0
    >>> print(lp.nearest([[1.0, 1.0]], keys, k=1)[1])
    [[0]]
    """
    check_run(run)
    rows = checked_keys(keys, values, sample_weight)
    if isinstance(rows, Keys) and has_dask(rows):
        summaries = _of_chunks(rows)
        unchecked = as_keys(keys, values, sample_weight, look=False)
        rows = _with_sizes(unchecked, tuple(summary.n for summary in summaries))
    else:
        summaries = [_summary(block) for block in _blocks(rows)]
    return _prepared(rows, reduce(_merge, summaries))


def _prepared(rows: Keys | KeySource, total: _Summary) -> PreparedKeys:
    if total.n == 0:
        raise InputError("there must be at least one key, got none")
    if total.weight == 0:
        raise no_weight()
    rows = rows.source if isinstance(rows, CheckedKeys) else rows  # they have been looked at
    return PreparedKeys(
        rows,
        n_keys=total.n,
        n_features=len(total.mean),
        low=total.low,
        high=total.high,
        mean=total.mean,
        variance=total.squares / total.weight,
        total_weight=total.weight,
    )


def checked_keys(
    keys: Any,
    values: Any = None,
    sample_weight: Any = None,
    *,
    allow_missing: bool = False,
    look: bool = True,
) -> Keys | KeySource:
    """Keys as a fold takes them; those in a store, or prepared, bring all that is theirs."""
    if not isinstance(keys, KeySource | PreparedKeys):
        return as_keys(keys, values, sample_weight, allow_missing=allow_missing, look=look)
    if values is not None or sample_weight is not None:
        raise InputError(
            "keys in a store and prepared keys bring their own values and sample_weight; "
            "name them there"
        )
    return keys.rows if isinstance(keys, PreparedKeys) else checked_source(keys, allow_missing)


def prepared_of(keys: Any) -> PreparedKeys | None:
    """The keys if they have been prepared."""
    return keys if isinstance(keys, PreparedKeys) else None


class _Summary(NamedTuple):
    """What is kept of a block of keys; `n` counts all rows, the rest those of weight > 0."""

    n: int
    weight: float
    mean: Floats
    squares: Floats
    low: Floats
    high: Floats

    @classmethod
    def empty(cls, n_features: int) -> _Summary:
        """Of no keys."""
        zero = np.zeros(n_features)
        return cls(0, 0.0, zero, zero, zero + np.inf, zero - np.inf)


def _merge(a: _Summary, b: _Summary) -> _Summary:
    n, weight = a.n + b.n, a.weight + b.weight
    if a.weight == 0 or b.weight == 0:
        return (b if a.weight == 0 else a)._replace(n=n)
    shift = b.mean - a.mean
    mean = a.mean + shift * (b.weight / weight)
    squares = a.squares + b.squares + shift * shift * (a.weight * (b.weight / weight))
    low, high = np.minimum(a.low, b.low), np.maximum(a.high, b.high)
    return _Summary(n, weight, mean, squares, low, high)


def _summary(rows: Keys) -> _Summary:
    """Summary of keys in memory, which are checked on the way."""
    rows = as_keys(rows)
    data, w = np.asarray(rows.data, np.float64), rows.sample_weight
    w = np.ones(len(data)) if w is None else np.asarray(w, np.float64)
    n_rows, there = len(data), w > 0
    data, w = data[there], w[there]
    if len(data) == 0:
        return _Summary.empty(data.shape[1])._replace(n=n_rows)
    weight = float(w.sum())
    mean = w @ data / weight
    squares = w @ (data - mean) ** 2
    return _Summary(n_rows, weight, mean, squares, data.min(axis=0), data.max(axis=0))


def _blocks(keys: Keys | KeySource) -> Iterator[Keys]:
    """Keys in memory or in a store, block by block."""
    if isinstance(keys, KeySource):
        yield from map(_as_rows, keys.iter_blocks(KEY_BLOCK_ROWS))
        return
    given = {name: array for name, array in vars(keys).items() if array is not None}
    for part in row_slices(max(1, int(keys.data.shape[0])), KEY_BLOCK_ROWS):
        yield Keys(**{name: array[part, ...] for name, array in given.items()})


def _of_chunks(keys: Keys) -> list[_Summary]:
    """Summaries of all chunks of Dask arrays, computed now."""
    from dask.delayed import Delayed

    layer, data = Layer(), keys.data
    chunks = data.chunks[0] if is_dask_array(data) else data.shape[:1]
    blocks = row_blocks(layer, keys, groups_of(chunks, len(chunks), inf))
    together = layer.add(list, [layer.add(_of_block, block) for block in blocks])
    summaries: list[_Summary] = Delayed(together.key, layer.graph(), layer=layer.name).compute()
    return summaries


def _of_block(block: KeyBlock) -> _Summary:
    return _summary(_as_rows(block))


def _as_rows(block: KeyBlock) -> Keys:
    given = {f.name: getattr(block, f.name, None) for f in fields(Keys)}
    log_weight = block.log_sample_weight
    given["sample_weight"] = (
        None if log_weight is None else array_namespace(log_weight).exp(log_weight)
    )
    return Keys(**given)


def _with_sizes(keys: Keys, sizes: tuple[int, ...]) -> Keys:
    """The keys with chunk sizes that were unknown."""
    import dask.array as da

    known = {
        name: da.Array(array.dask, array.name, (sizes, *array.chunks[1:]), meta=array._meta)
        for name, array in vars(keys).items()
        if is_dask_array(array) and np.isnan(array.chunks[0]).any()
    }
    return replace(keys, **known)
