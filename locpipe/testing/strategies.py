"""Hypothesis strategies: rows with ties and offsets, blocks, chunkings, partitions, array kinds.

What is random in an array comes from a seed by NumPy: quick, and any example is told in one line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from locpipe.blocks import KeyBlock, QueryBlock

try:
    from hypothesis import strategies as st
except ImportError as error:  # pragma: no cover - the tests always have it
    raise ImportError(
        "the strategies need hypothesis; install it with: pip install hypothesis"
    ) from error

__all__ = [
    "Case",
    "array_kinds",
    "cases",
    "chunkings",
    "key_blocks",
    "partitions",
    "query_blocks",
    "random_chunks",
    "rows",
    "seeds",
]

ARRAY_KINDS = ("numpy", "strict", "dask")


@dataclass(frozen=True)
class Case:
    """Sizes and a seed: what a law makes its blocks from.

    Attributes
    ----------
    seed : int
    n_queries, n_keys : int
    ties : bool
        Whether some rows are equal, among the keys and between keys and queries.
    bandwidths : bool
        Whether bandwidths ride with the rows.
    """

    seed: int
    n_queries: int
    n_keys: int
    ties: bool = False
    bandwidths: bool = False

    def rng(self) -> np.random.Generator:
        """A generator at its start, the same one at each call."""
        return np.random.default_rng(self.seed)


def seeds() -> st.SearchStrategy[int]:
    """Seeds of NumPy generators."""
    return st.integers(0, 2**32 - 1)


def cases(sizes: tuple[int, int] | None = None, least_keys: int = 1) -> st.SearchStrategy[Case]:
    """These numbers of queries and keys, or up to 8 and 12, with and without ties, bandwidths.

    `least_keys` raises both ends of the number of keys.
    """
    return st.builds(
        Case,
        seed=seeds(),
        n_queries=st.integers(1, 8) if sizes is None else st.just(sizes[0]),
        n_keys=st.integers(least_keys, 11 + least_keys) if sizes is None else st.just(sizes[1]),
        ties=st.booleans(),
        bandwidths=st.booleans(),
    )


@st.composite
def rows(
    draw: Callable[..., Any],
    n_rows: int,
    n_features: int,
    offsets: tuple[float, ...] = (0.0, 1e3, 1e6),
) -> np.ndarray:
    """Float64 rows (n_rows, n_features): normal, on a lattice (ties) or duplicated; offset."""
    rng = np.random.default_rng(draw(seeds()))
    data = rng.normal(size=(n_rows, n_features))
    style = draw(st.sampled_from(("normal", "lattice", "duplicates")))
    if style == "lattice":
        data = np.round(data)
    elif style == "duplicates":
        data = data[rng.integers(0, max(1, n_rows // 2), n_rows)]
    moved: np.ndarray = data + draw(st.sampled_from(offsets))
    return moved


@st.composite
def query_blocks(draw: Callable[..., Any], n_rows: int, n_features: int) -> QueryBlock:
    """Queries with ids, times and values."""
    rng = np.random.default_rng(draw(seeds()))
    data = draw(rows(n_rows, n_features))
    return QueryBlock(data, **row_attributes(rng, n_rows))


@st.composite
def key_blocks(draw: Callable[..., Any], n_rows: int, n_features: int) -> KeyBlock:
    """Keys with ids, times, values and sample weights, some of them 0."""
    rng = np.random.default_rng(draw(seeds()))
    data = draw(rows(n_rows, n_features))
    log_weight = np.where(rng.random(n_rows) < 0.2, -np.inf, rng.normal(size=n_rows))
    return KeyBlock(data, log_sample_weight=log_weight, **row_attributes(rng, n_rows))


def row_attributes(rng: np.random.Generator, n_rows: int, n_outputs: int = 2) -> dict[str, Any]:
    """Ids, times (some equal) and values of so many rows."""
    return {
        "ids": rng.permutation(n_rows),
        "time": np.round(rng.uniform(0, n_rows, n_rows)),
        "values": rng.normal(size=(n_rows, n_outputs)),
    }


def chunkings(n_rows: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Chunk sizes that add up to `n_rows`, chunks of no rows among them."""
    return seeds().map(lambda seed: random_chunks(np.random.default_rng(seed), n_rows))


def random_chunks(rng: np.random.Generator, n_rows: int) -> tuple[int, ...]:
    """Chunk sizes that add up to `n_rows`; equal cuts leave chunks of no rows."""
    cuts = np.sort(rng.integers(0, n_rows + 1, rng.integers(0, 5)))
    return tuple(int(n) for n in np.diff([0, *cuts, n_rows]))


def partitions(n_rows: int) -> st.SearchStrategy[list[slice]]:
    """Slices that cover the rows, as `chunkings` but none of them empty."""
    return chunkings(n_rows).map(_as_slices)


def _as_slices(chunks: tuple[int, ...]) -> list[slice]:
    ends = np.cumsum(chunks)
    return [slice(int(b) - n, int(b)) for n, b in zip(chunks, ends, strict=True) if n]


def array_kinds() -> st.SearchStrategy[str]:
    """``"numpy"``, ``"strict"`` (array-api-strict) or ``"dask"``: what `as_kind` takes."""
    return st.sampled_from(ARRAY_KINDS)
