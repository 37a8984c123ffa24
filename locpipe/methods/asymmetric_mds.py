"""Asymmetric multidimensional scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from locpipe.blocks import ArrayPairs
from locpipe.errors import InputError
from locpipe.methods.dissimilarities import (
    as_cells,
    as_floats,
    check_real,
    check_seed,
    check_whole,
)
from locpipe.methods.unfolding import (
    INITS,
    Unfolding,
    best_of,
    start_names,
    unfold,
    unfold_from,
)

__all__ = ["AsymmetricMDS"]

Floats = NDArray[np.float64]
MODELS = ("unfolding",)


class AsymmetricMDS(BaseEstimator):  # type: ignore[misc]
    """Map of things whose dissimilarities differ by direction.

    Each thing gets two points: one as a row (``embedding_``: from here) and one as a column
    (``key_embedding_``: to here), such that the distance from row point i to column point j is
    near ``D[i, j]``.  One point per thing could only fit the symmetric part.

    Parameters
    ----------
    n_components : int, default 2
        Dimensions of the map, below both sides of D.
    model : {"unfolding"}
    init : {"both", "spectral", "random"} or pair of arrays, default "both"
        Where to start: a closed form that is exact for error-free distances, `n_init` random
        starts, or both; the fit of least stress wins.  A pair (m, n_components),
        (n, n_components) is one given start, such as the map of yesterday.
    n_init : int, default 10
        Number of random starts.
    max_iter : int, default 300
        Sweeps at most per start, a sweep being all rows, then all columns.
    tol : float, default 1e-6
        A start ends when a sweep lowers the stress by less than this share of it.
    relaxation : float, default 1.9
        Length of a step over that of plain majorization; from 1 to below 2, where the stress
        still cannot rise.
    random_state : int, default 0
        Seed of the random starts.

    Attributes
    ----------
    embedding_ : (m, n_components) float64
        Row points, in units of D: centred, on their principal axes, signs fixed.
    key_embedding_ : (n, n_components) float64
        Column points, in the same axes.
    stress_ : float
        Raw stress ``sum w (D - d)^2``, in squared units of D; 0 or infinite where squares of D
        leave float64 (below about 1e-162, above 1e154), the map being right all the same.
    normalized_stress_ : float
        ``stress_ / sum w D^2``, between 0 and 1.
    stress_history_ : (n_iter_ + 1,) float64
        Raw stress before the first sweep and after each; never rises.
    n_iter_ : int
        Sweeps of the start that won.
    init_ : str
        The start that won: ``"spectral"``, ``"random-3"``, ``"given"``.
    converged_ : bool
        Whether `tol` was reached before `max_iter`.

    Raises
    ------
    InputError
        From `fit`: dissimilarities that are not a matrix, complex, negative, infinite, above
        1e300 or all 0; a row or column without any; bad weights; a parameter out of range or of
        another type.

    Notes
    -----
    Alternating majorization [1]_, [2]_: O(m n n_components) time per sweep, one tile of memory
    beyond D and its transpose.  Starts run one after another and end early when one is
    error-free; to run them on a cluster see `locpipe.methods.unfolding.unfold`.

    References
    ----------
    .. [1] Heiser, W. J. (1987). Joint ordination of species and sites: the unfolding technique.
       In Developments in Numerical Ecology, 189-221.
    .. [2] de Leeuw, J. and Mair, P. (2009). Multidimensional scaling using majorization: SMACOF
       in R. Journal of Statistical Software 31(3), section 3.

    Examples
    --------
    >>> import numpy as np, locpipe as lp
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2, 20, 2))
    >>> D = np.linalg.norm(X[:, None] - Y, axis=2)
    >>> mds = lp.AsymmetricMDS().fit(D)
    >>> mds.init_, mds.normalized_stress_ < 1e-20
    ('spectral', True)
    """

    def __init__(
        self,
        *,
        n_components: int = 2,
        model: str = "unfolding",
        init: str | tuple[ArrayLike, ArrayLike] = "both",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-6,
        relaxation: float = 1.9,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.model = model
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.relaxation = relaxation
        self.random_state = random_state

    def fit(self, D: ArrayLike, y: Any = None, *, weight: ArrayLike | None = None) -> AsymmetricMDS:
        """Find the map of least stress.

        Parameters
        ----------
        D : (m, n)
            Non-negative dissimilarities from each row to each column; NaN is missing, and so is
            a masked cell.
        y : ignored
        weight : (m, n), optional
            Non-negative weight of each cell; default: 1; 0 where masked.
        """
        cells = as_cells(D, weight)
        self._check(cells.shape)
        result = self._best(cells)
        self.embedding_, self.key_embedding_ = result.embedding, result.key_embedding
        self.stress_, self.normalized_stress_ = result.stress, result.normalized_stress
        self.stress_history_, self.n_iter_ = result.stress_history, result.n_iter
        self.init_, self.converged_ = result.start, result.converged
        self.n_features_in_ = cells.shape[1]
        return self

    def fit_transform(
        self, D: ArrayLike, y: Any = None, *, weight: ArrayLike | None = None
    ) -> Floats:
        """Fit, and return the row points (m, n_components)."""
        return self.fit(D, weight=weight).embedding_

    def _best(self, cells: ArrayPairs) -> Unfolding:
        how = {name: getattr(self, name) for name in ("max_iter", "tol", "relaxation")}
        if isinstance(self.init, str):
            how |= {"n_components": self.n_components, "random_state": self.random_state}
            starts = start_names(self.init, self.n_init)
            return best_of(unfold(cells, start, **how) for start in starts)
        return unfold_from(cells, *self._given(cells.shape), **how)

    def _given(self, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        if not isinstance(self.init, list | tuple) or len(self.init) != 2:
            raise InputError(
                f"init must be one of {list(INITS)} or a pair of arrays, got {self.init!r}"
            )
        X, Y = (as_floats(points, "init") for points in self.init)
        p = self.n_components
        if X.shape != (shape[0], p) or Y.shape != (shape[1], p):
            raise InputError(
                f"init must have shapes ({shape[0]}, {p}) and ({shape[1]}, {p}), "
                f"got {X.shape} and {Y.shape}"
            )
        if not (np.isfinite(X).all() and np.isfinite(Y).all()):
            raise InputError("init must be finite, got NaN or infinity; drop those points first")
        return X, Y

    def _check(self, shape: tuple[int, int]) -> None:
        if not isinstance(self.model, str) or self.model not in MODELS:
            raise InputError(f"model must be one of {list(MODELS)}, got {self.model!r}")
        check_whole("n_components", self.n_components, least=1)
        if self.n_components >= min(shape):
            raise InputError(
                f"n_components must be at least 1 and below both sides of the dissimilarities "
                f"{shape}, got {self.n_components}"
            )
        check_whole("max_iter", self.max_iter, least=1)
        check_whole("n_init", self.n_init, least=1)
        check_real("tol", self.tol, 0)
        check_real("relaxation", self.relaxation, 1, 2)
        check_seed(self.random_state)
