"""k-d trees of blocks of keys, and what a query may conclude from each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

__all__ = ["Forest", "Tree", "merge", "query"]

_JOINED = 2**20
"""Keys up to which two trees of about the same size become one."""
_LEAST = 1e-290
"""Surrogates below it have lost digits, and bound nothing."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Keys of one tree.

    Attributes
    ----------
    data : float64 array (n, n_features)
    index : int64 array (n,)
        Global index of each key.
    ids : array (n,)
    search : scipy.spatial.cKDTree
    """

    data: np.ndarray
    index: np.ndarray
    ids: np.ndarray
    search: Any

    @classmethod
    def of(cls, data: np.ndarray, index: np.ndarray, ids: np.ndarray) -> Self:
        """The tree of some keys; splits in the middle stay quick where keys repeat."""
        from scipy.spatial import cKDTree

        return cls(data, index, ids, cKDTree(data, balanced_tree=False))


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of all keys, large ones first.

    Attributes
    ----------
    trees : tuple of Tree
    graded : bool
        Whether some keys have weights that take part in the score, which no tree knows of.
    """

    trees: tuple[Tree, ...]
    graded: bool = False


def merge(a: Forest, b: Forest) -> Forest:
    """The trees of both; while the two smallest are alike in size and small, they become one.

    So a key is built into O(log n) trees, whatever the order of merges.
    """
    trees = sorted(a.trees + b.trees, key=lambda tree: -len(tree.data))
    while len(trees) > 1 and _alike(*trees[-2:]):
        trees.append(_joined(trees.pop(), trees.pop()))
        trees.sort(key=lambda tree: -len(tree.data))
    return Forest(tuple(trees), a.graded or b.graded)


def _alike(large: Tree, small: Tree) -> bool:
    n, m = len(large.data), len(small.data)
    return n <= 2 * m and n + m <= _JOINED


def _joined(a: Tree, b: Tree) -> Tree:
    pairs = ((a.data, b.data), (a.index, b.index), (a.ids, b.ids))
    return Tree.of(*(np.concatenate(pair) for pair in pairs))


def query(tree: Tree, x: np.ndarray, k: int, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Columns (n_queries, up to k) of near keys, and a bound that no other surrogate undercuts.

    The surrogate is the distance of order `power`, to that power.  Its error here and in the
    reference is at most ``(d + 4)`` roundings each; infinite where no other key is left.
    """
    n, d = tree.data.shape
    distance, column = tree.search.query(x, min(k, n), p=power)
    column = column.reshape(len(x), -1)
    if k >= n:
        return column, np.full(len(x), np.inf)
    last = distance.reshape(len(x), -1)[:, -1] ** power * (1.0 - (4 * d + 32) * 2.0**-53)
    return column, np.where(last < _LEAST, 0.0, last)
