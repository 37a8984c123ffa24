"""What would run, before it runs."""

from __future__ import annotations

from typing import Any, Unpack

from locpipe.errors import InputError, shown
from locpipe.functions import best_keys, check_kernel, keys_of, outputs_of
from locpipe.graph import Keys, KeySource
from locpipe.graph.fold import plan_checked
from locpipe.graph.inputs import as_queries
from locpipe.graph.operation import Operation
from locpipe.graph.plan import Plan
from locpipe.graph.prepare import prepared_of
from locpipe.kernels import Kernel, Nearness, Normalized
from locpipe.kernels.masks import ExcludeSelf
from locpipe.metrics import check_metric
from locpipe.options import Run, check_run
from locpipe.pairs import as_pairs
from locpipe.reductions import LogMass, Reduction, WeightedMean

__all__ = ["plan"]

_NAMES = ("mean", "log_mass", "density", "nearest")


def plan(
    queries: Any,
    keys: Any,
    kernel: Kernel | None = None,
    *,
    reduction: str | Reduction = "mean",
    values: Any = None,
    sample_weight: Any = None,
    k: int | None = None,
    metric: str = "euclidean",
    exclude_self: bool = False,
    pairs: Any = None,
    **run: Unpack[Run],
) -> Plan:
    """What a call would do, and the memory and time that it would take.

    Nothing is computed on Dask arrays or stores.

    Parameters
    ----------
    queries, keys, values, sample_weight
        As in `local_mean`.
    kernel : Kernel, optional
        ``"nearest"`` needs none.
    reduction : {"mean", "log_mass", "density", "nearest"} or Reduction
        Which function it is: `local_mean`, `log_mass`, `log_density`, `nearest`, or `fold` with
        a reduction of `lp.reductions`.
    k : int, optional
        Number of neighbours, for ``"nearest"``.
    metric, exclude_self
        As in `nearest`, for ``"nearest"``.
    pairs : array (n_queries, n_keys) or PairSource, optional
        As in `fold`, for a Reduction.
    **run
        Options of all functions (`lp.functions.Run`).

    Returns
    -------
    Plan
        Its text reads like a database's EXPLAIN; the numbers are its attributes.

    Raises
    ------
    InputError
        As the function would, and if the work does not fit `memory_limit`.

    Notes
    -----
    The peak counts the libraries, arrays in memory, results, and what each thread holds; memory
    maps are the system's to take back, and are not counted.  Seconds come from costs per pair
    that were measured on one machine and ship with the release.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> x, kernel = np.zeros((20_000, 2)), lp.kernels.Gaussian(1.0)
    >>> plan = lp.plan(x, x, kernel, values=x, engine="fused", n_threads=2)
    >>> print(plan)  # doctest: +ELLIPSIS
    20,000 queries x 20,000 keys = 4.0e+08 pairs; 2 features, 2 outputs
      reduction WeightedMean(n_outputs=2)
      kernel    Gaussian(bandwidth=1.0, ...)
      engine    fused, one pass over the keys
      strategy  stream: each task folds all keys into its queries
      blocks    8 tasks; up to 2,560 queries and 20,224 keys at a time
      threads   2
      memory    ... at the peak, limit ... GiB
      time      under a second
    >>> plan.peak_bytes < plan.memory_limit
    True
    """
    options, allow_missing = check_run(run), _allow_missing(reduction, kernel, metric)
    _check_only("'nearest'", reduction, metric=metric != "euclidean", exclude_self=exclude_self)
    _check_only("a Reduction", reduction, pairs=pairs is not None)
    rows, prepared = as_queries(queries, allow_missing=allow_missing), prepared_of(keys)
    keys = keys_of(keys, values, sample_weight, allow_missing=allow_missing)
    if reduction == "nearest":
        near = Nearness(metric) if kernel is None else check_kernel(kernel)
        folded: Reduction = best_keys(k, keys, exclude_self)
        under: Kernel | None = near * ExcludeSelf() if exclude_self else near
    else:
        folded, under = _what(reduction, keys, kernel)
    matrix = None if pairs is None else as_pairs(pairs, "pairs")
    op = Operation(folded, under, matrix, empty=options["empty"])
    return plan_checked(op, rows, keys, prepared, **options)


def _allow_missing(reduction: Any, kernel: Any, metric: Any) -> bool:
    """Whether the function of that name takes NaN in the coordinates."""
    if reduction == "nearest" and kernel is None:
        return check_metric(metric).allows_missing
    return reduction != "density" and isinstance(kernel, Kernel) and kernel.allows_missing


def _check_only(what: str, reduction: Any, **given: bool) -> None:
    """Refuse an option that the function has no part for."""
    fits = reduction == "nearest" if what == "'nearest'" else isinstance(reduction, Reduction)
    for name in [name for name, is_given in given.items() if is_given and not fits]:
        raise InputError(
            f"{name} goes with reduction={what} alone, got reduction={shown(reduction)}; "
            "leave it out"
        )


def _what(
    reduction: str | Reduction, keys: Keys | KeySource, kernel: Kernel | None
) -> tuple[Reduction, Kernel | None]:
    """The reduction and the kernel that the function of that name folds with."""
    if isinstance(reduction, Reduction):
        return reduction, None if kernel is None else check_kernel(kernel)
    if reduction == "mean":
        return WeightedMean(outputs_of(keys)[0]), check_kernel(kernel)
    if reduction == "log_mass":
        return LogMass(), check_kernel(kernel)
    if reduction == "density":
        return LogMass(), Normalized(check_kernel(kernel))
    raise InputError(
        f"reduction must be one of {list(_NAMES)} or a Reduction of lp.reductions, "
        f"got {shown(reduction)}"
    )
