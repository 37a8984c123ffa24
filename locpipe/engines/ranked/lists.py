"""Keys in lists around centres, of which a query looks through the nearest few (faiss)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from locpipe.engines.ranked.shelf import Shelf

__all__ = ["Lists", "recall", "searched"]

_log = logging.getLogger("locpipe")
_SAMPLED = 256
_FAR = 1e15
_POINTS_PER_LIST = 39
"""Keys per list below which faiss warns that centres are not well placed."""


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    """Share of the true neighbours that were found.

    Parameters
    ----------
    found, exact : integer arrays (n_queries, k)
        Indices as `locpipe.nearest` gives them, by an approximate engine and an exact one; -1 is
        no neighbour.

    Returns
    -------
    float
        1 where there are no true neighbours.

    Examples
    --------
    >>> recall(np.array([[3, 1]]), np.array([[1, 2]]))
    0.5
    """
    true = exact >= 0
    hits = (exact[:, :, None] == found[:, None, :]).any(axis=2) & true
    return float(hits.sum() / true.sum()) if true.any() else 1.0


@dataclass(frozen=True, eq=False)
class Lists:
    """An index, and how far it has to look.

    Attributes
    ----------
    search : faiss.IndexIVFFlat
    centre : float64 array (n_features,)
        Taken off all rows before they become float32.
    scale : float
        And what they are multiplied with then, a power of two that brings keys near 1.
    n_probed : int
        Lists that a query looks through.
    recall : float
        Share of the true neighbours found among a sample of the keys.
    """

    search: Any
    centre: np.ndarray
    scale: float = 1.0
    n_probed: int = 1
    recall: float = 1.0

    def near(self, x: np.ndarray, k: int) -> np.ndarray:
        """Rows of about k near keys (n_queries, k); -1 where the lists hold fewer."""
        import faiss

        probed = faiss.SearchParametersIVF()
        probed.nprobe = self.n_probed
        with np.errstate(over="ignore"):
            rows = _single((x - self.centre) * self.scale)
        column: np.ndarray = self.search.search(rows, k, params=probed)[1]
        return column


def searched(
    keys: Shelf, k: int, target: float
) -> tuple[Lists, np.ndarray, np.ndarray, np.ndarray]:
    """Lists of all keys that find so many of their k nearest; their rows, indices and ids."""
    data, index, ids = (np.concatenate(parts) for parts in (keys.data, keys.index, keys.ids))
    return _calibrated(_lists(data), data, k, target), data, index, ids


def _lists(data: np.ndarray) -> Lists:
    import faiss

    n, d = data.shape
    centre = data.mean(axis=0)
    n_lists = max(1, min(int(4 * sqrt(n)), n // _POINTS_PER_LIST))
    search = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, n_lists)
    search.cp.min_points_per_centroid = 1  # it would print a warning, of very few keys
    data = data - centre
    scale = 0.5 ** float(np.frexp(np.abs(data).max())[1])
    rows = _single(data * scale)
    search.train(rows)
    search.add(rows)
    return Lists(search, centre, scale)


def _single(rows: np.ndarray) -> np.ndarray:
    """Rows in float32, whose squares must stay numbers."""
    return np.ascontiguousarray(np.clip(rows, -_FAR, _FAR), dtype=np.float32)


def _calibrated(lists: Lists, data: np.ndarray, k: int, target: float) -> Lists:
    """The lists, looked through as far as a sample of the keys needs to find its neighbours."""
    sample = np.unique(np.linspace(0, len(data) - 1, _SAMPLED).astype(np.int64))
    exact = _without(_exact(data, sample, k + 1), sample)
    n_probed, share, n_lists = 1, 0.0, int(lists.search.nlist)
    while True:
        tried = replace(lists, n_probed=n_probed)
        share = recall(_without(tried.near(data[sample], k + 1), sample), exact)
        if share >= target or n_probed == n_lists:
            break
        n_probed = min(2 * n_probed, n_lists)
    _log.info(
        "approximate neighbours: %.4f of the true ones found for %d of the keys, looking through "
        "%d of %d lists", share, len(sample), n_probed, n_lists
    )  # fmt: skip
    return replace(lists, n_probed=n_probed, recall=share)


def _without(column: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Neighbours other than oneself; -1 in place of it."""
    return np.where(column == own[:, None], -1, column)


def _exact(data: np.ndarray, sample: np.ndarray, k: int) -> np.ndarray:
    from locpipe.blocks import KeyBlock, QueryBlock, row_slices
    from locpipe.engines.ranked.engine import Ranked
    from locpipe.kernels.nearness import Nearness
    from locpipe.reductions.top_k import TopK

    q, reduction = QueryBlock(data[sample]), TopK(k)
    state: Any = reduction.init(q)
    for part in row_slices(len(data), 2**16):
        keys = KeyBlock(data[part], start=part.start)
        state = Ranked().fold(reduction, state, q, keys, Nearness())
    exact: np.ndarray = reduction.finalize(state, np.nan)[1]
    return exact
