"""One start of unfolding: a pure function of the cells, for a worker or for `AsymmetricMDS`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from locpipe.blocks import ArrayPairs, PairSource, Tile
from locpipe.errors import InputError
from locpipe.graph import fold
from locpipe.methods.dissimilarities import check_whole
from locpipe.methods.unfolding_starts import random_start, spectral_start
from locpipe.methods.unfolding_units import Units, in_units
from locpipe.reductions import MajorizationStep, MajorizationSums

__all__ = [
    "Unfolding",
    "best_of",
    "half_sweep",
    "start_names",
    "unfold",
    "unfold_from",
]

Floats = NDArray[np.float64]
INITS = ("both", "spectral", "random")

EXACT = 1e-20
"""Share of ``sum w delta^2`` below which the fit is error-free: distances right to 1e-10."""


@dataclass(frozen=True, eq=False)
class Unfolding:
    """Row and column points from one start.

    Attributes
    ----------
    start : str
        Which start: ``"spectral"``, ``"random-0"``, ..., or ``"given"``.
    embedding : (m, n_components) float64
        Row points.
    key_embedding : (n, n_components) float64
        Column points.
    stress_history : (n_iter + 1,) float64
        Raw stress before the first sweep and after each one; never rises.  Where squares of
        the dissimilarities leave float64 it is 0 or infinite; the rest is right all the same.
    scale : float
        ``sum w delta^2``, the stress of all points in one place; 0 or infinite likewise.
    normalized_stress : float
        Stress as a share of ``sum w delta^2``, between 0 and 1.
    converged : bool
        Whether it stopped before `max_iter` ran out.
    """

    start: str
    embedding: Floats
    key_embedding: Floats
    stress_history: Floats
    scale: float
    normalized_stress: float
    converged: bool

    @property
    def stress(self) -> float:
        """Raw stress ``sum w (delta - d)^2``."""
        return float(self.stress_history[-1])

    @property
    def n_iter(self) -> int:
        """Number of sweeps."""
        return len(self.stress_history) - 1


def start_names(init: str = "both", n_init: int = 10) -> tuple[str, ...]:
    """Names of the starts that an `init` asks for, each to be given to `unfold`.

    Parameters
    ----------
    init : {"both", "spectral", "random"}
    n_init : int, default 10
        Number of random starts.

    Raises
    ------
    InputError
        If `init` is unknown or `n_init` is no whole number from 1.

    Examples
    --------
    >>> start_names("both", 2)
    ('spectral', 'random-0', 'random-1')
    """
    if init not in INITS:
        raise InputError(f"init must be one of {list(INITS)} or a pair of arrays, got {init!r}")
    check_whole("n_init", n_init, least=1)
    random = tuple(f"random-{i}" for i in range(n_init))
    return {"spectral": ("spectral",), "random": random, "both": ("spectral", *random)}[init]


def unfold(
    pairs: PairSource,
    start: str,
    *,
    n_components: int = 2,
    max_iter: int = 300,
    tol: float = 1e-6,
    relaxation: float = 1.9,
    random_state: int = 0,
) -> Unfolding:
    """Unfold from one start, alone: the same bits wherever and beside whatever it runs.

    Parameters
    ----------
    pairs : PairSource (m, n)
        Tiles ``(delta,)`` or ``(delta, weight)``, checked (see `as_cells`).
    start : str
        One of `start_names`.
    n_components, max_iter, tol, relaxation, random_state
        As in `AsymmetricMDS`.

    Returns
    -------
    Unfolding

    Examples
    --------
    >>> points = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0], [3.0, 1.0], [0.0, 3.0], [2.0, 2.0]])
    >>> delta = np.linalg.norm(points[:, None] - points, axis=2)
    >>> unfold(ArrayPairs(delta), "spectral").normalized_stress < 1e-20
    True
    """
    units, cells = in_units(pairs)
    if start == "spectral":
        points = spectral_start(cells, n_components)
    else:
        number = int(start.removeprefix("random-"))
        points = random_start(cells, n_components, random_state, number)
    return _sweeps(cells, *points, units, start, max_iter, tol, relaxation)


def unfold_from(
    pairs: PairSource,
    X: Floats,
    Y: Floats,
    *,
    name: str = "given",
    max_iter: int = 300,
    tol: float = 1e-6,
    relaxation: float = 1.9,
) -> Unfolding:
    """Sweep from given row and column points until the stress stands still.

    Notes
    -----
    A step to ``x + omega (x' - x)`` does not raise the majorizing parabola for omega <= 2, so
    it does not raise the stress [1]_.  What rises all the same is rounding, at the bottom: that
    sweep is dropped and the search is over.

    References
    ----------
    .. [1] de Leeuw, J. and Heiser, W. J. (1980). Multidimensional scaling with restrictions on
       the configuration. In Multivariate Analysis V, 501-522.
    """
    units, cells = in_units(pairs)
    X, Y = np.ldexp(X, -units.length), np.ldexp(Y, -units.length)
    return _sweeps(cells, X, Y, units, name, max_iter, tol, relaxation)


def _sweeps(
    pairs: PairSource,
    X: Floats,
    Y: Floats,
    units: Units,
    name: str,
    max_iter: int,
    tol: float,
    relaxation: float,
) -> Unfolding:
    """Sweep in `units`, and give the result in those of the user."""
    flipped = _transpose(pairs)
    scale = _stress(_sums(pairs, 0 * X, 0 * Y))
    sums = _sums(pairs, X, Y)
    history, converged = [_stress(sums)], False
    for _ in range(max_iter):
        new_X = _relax(X, half_sweep(X, sums), relaxation)
        new_Y = _relax(Y, half_sweep(Y, _sums(flipped, Y, new_X)), relaxation)
        new_sums = _sums(pairs, new_X, new_Y)
        gain = history[-1] - _stress(new_sums)
        converged = gain <= tol * history[-1] or _stress(new_sums) <= EXACT * scale
        if gain > 0:
            X, Y, sums = new_X, new_Y, new_sums
            history.append(_stress(sums))
        if converged:
            break
    share = history[-1] / scale if scale > 0 else 0.0
    rows, columns = (units.lengths(points) for points in _orient(X, Y))
    stresses = units.stresses(np.array([*history, scale]))
    return Unfolding(name, rows, columns, stresses[:-1], float(stresses[-1]), share, converged)


def half_sweep(points: Floats, sums: MajorizationSums) -> Floats:
    """Row points of least majorized stress, the column points held.

    Each becomes the mean, over column points y, of the place at distance delta from y on the
    line from y to it: ``x' = (sum w y + x sum(w delta/d) - sum(w (delta/d) y)) / sum w``.
    A point without any weight, such as the column of a word that is near to none, is free, and
    stays where it is.

    References
    ----------
    .. [1] Heiser, W. J. (1987). Joint ordination of species and sites: the unfolding technique.
    """
    pull = sums.moment + points * sums.ratio[:, None] - sums.ratio_moment
    weight = np.asarray(sums.weight)[:, None]
    moved: Floats = np.where(weight > 0, pull / np.where(weight > 0, weight, 1.0), points)
    return moved


def best_of(results: Iterable[Unfolding]) -> Unfolding:
    """The result of least stress, the first of equals.

    Results are asked for one by one, and no more once one is error-free.
    """
    best: Unfolding | None = None
    for result in results:
        if best is None or _rank(result) < _rank(best):
            best = result
        if best.normalized_stress <= EXACT:
            break
    if best is None:
        raise InputError("there must be at least one start to choose from, got none")
    return best


def _rank(result: Unfolding) -> tuple[float, float]:
    return result.normalized_stress, result.stress


def _relax(old: Floats, new: Floats, relaxation: float) -> Floats:
    return old + relaxation * (new - old)


def _sums(pairs: PairSource, queries: Floats, keys: Floats) -> MajorizationSums:
    return MajorizationSums(*fold(MajorizationStep(queries.shape[1]), queries, keys, pairs=pairs))


def _stress(sums: MajorizationSums) -> float:
    return float(np.sum(sums.stress))


@dataclass(frozen=True)
class _Transposed:
    """Cells with rows and columns exchanged, read from where they lie."""

    pairs: PairSource

    @property
    def shape(self) -> tuple[int, int]:
        m, n = self.pairs.shape
        return n, m

    def tile(self, rows: slice, columns: slice) -> Tile:
        return tuple(np.ascontiguousarray(cells.T) for cells in self.pairs.tile(columns, rows))


def _transpose(pairs: PairSource) -> PairSource:
    if not isinstance(pairs, ArrayPairs):
        return _Transposed(pairs)
    # In memory, one copy beats a strided read in every sweep.
    cells: Sequence[Floats] = _Transposed(pairs).tile(slice(None), slice(None))
    return ArrayPairs(*cells)


def _orient(X: Floats, Y: Floats) -> tuple[Floats, Floats]:
    """Row points centred on their principal axes, the farthest point of each axis positive.

    Distances do not change, and the same map comes out the same way up.
    """
    centre = X.mean(axis=0)
    axes = np.linalg.svd(X - centre, full_matrices=True)[2].T
    rows, columns = (X - centre) @ axes, (Y - centre) @ axes
    farthest = np.abs(rows).argmax(axis=0)
    signs = np.where(rows[farthest, np.arange(rows.shape[1])] < 0, -1.0, 1.0)
    return rows * signs, columns * signs
