"""Counting a whole corpus: parts counted anywhere, in any order, and summed."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from locpipe.corpus.counts import count_pairs, count_words
from locpipe.corpus.documents import Document
from locpipe.corpus.parts import Part
from locpipe.corpus.tokens import Tokenizer
from locpipe.corpus.vocabulary import Vocabulary
from locpipe.errors import InputError
from locpipe.graph import run_blocks

__all__ = [
    "CorpusSummary",
    "PairCounting",
    "Runner",
    "WordCounting",
    "count_corpus_pairs",
    "count_corpus_words",
    "describe",
    "merge_counts",
    "pack_counts",
    "unpack_counts",
]


class Runner(Protocol):
    """What `locpipe.graph.run_blocks` does, with whatever client a flow has bound to it."""

    def __call__(
        self,
        compute: Callable[[int], Any],
        blocks: Iterable[int],
        /,
        *,
        on_done: Callable[[int, Any], None],
    ) -> None:
        """Call ``on_done(block, compute(block))`` once for every block, in any order."""


@dataclass(frozen=True)
class WordCounting:
    """`count_words` of the part with a given number: what a worker is sent."""

    parts: tuple[Part, ...]
    tokenizer: Tokenizer

    def __call__(self, block: int) -> Counter[str]:
        """Count the words of part ``block``."""
        return count_words(self.parts[block], self.tokenizer)


@dataclass(frozen=True)
class PairCounting:
    """`count_pairs` of the part with a given number: what a worker is sent."""

    parts: tuple[Part, ...]
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    window: int

    def __call__(self, block: int) -> csr_array:
        """Count the pairs of part ``block``."""
        return count_pairs(self.parts[block], self.tokenizer, self.vocabulary, self.window)


def count_corpus_words(
    parts: Sequence[Part], tokenizer: Tokenizer, run: Runner = run_blocks
) -> Counter[str]:
    """Count the words of all parts.

    Parameters
    ----------
    parts : sequence of Part
    tokenizer : Tokenizer
    run : callable, default `run_blocks`
        How parts become work. A flow passes ``functools.partial(run_blocks, client=client)``;
        what a part gave is merged at once and dropped.

    Raises
    ------
    InputError
        If the corpus has fewer than two distinct words.

    Examples
    --------
    >>> from locpipe.corpus import find_documents, split
    >>> counts = count_corpus_words(split(find_documents()), Tokenizer())
    >>> counts["the"] > counts["generator"] > 0
    True
    """
    counts: Counter[str] = Counter()
    compute = WordCounting(tuple(parts), tokenizer)
    run(compute, range(len(parts)), on_done=lambda _, counted: counts.update(counted))
    if len(counts) < 2:
        raise InputError(_too_few(counts, parts))
    return counts


def _too_few(counts: Counter[str], parts: Sequence[Part]) -> str:
    names = list(dict.fromkeys(span.document.name for part in parts for span in part.spans))
    where = repr(names[0]) if names else "any document"
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    found = f"only the word {next(iter(counts))!r}" if counts else "no word"
    return (
        f"A corpus must have two distinct words, but {found} is in {where}{more}; give more text."
    )


def count_corpus_pairs(
    parts: Sequence[Part],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    window: int,
    run: Runner = run_blocks,
) -> csr_array:
    """Count the directed pairs of all parts; `count_pairs` says of what, `run` is as for words."""
    merger = _Merger([])
    compute = PairCounting(tuple(parts), tokenizer, vocabulary, window)
    run(compute, range(len(parts)), on_done=lambda _, counted: merger.add(counted))
    return merger.total()


def pack_counts(counts: csr_array) -> dict[str, NDArray[np.int64]]:
    """Return counts as plain arrays, for a store."""
    n_words = np.array([counts.shape[0]], dtype=np.int64)
    arrays = {"indptr": counts.indptr, "indices": counts.indices, "data": counts.data}
    packed = {name: array.astype(np.int64) for name, array in arrays.items()}
    return {"n_words": n_words, **packed}


def unpack_counts(arrays: Mapping[str, NDArray[np.int64]]) -> csr_array:
    """Return the counts that `pack_counts` took apart."""
    n_words = int(arrays["n_words"][0])
    parts = (arrays["data"], arrays["indices"], arrays["indptr"])
    return csr_array(parts, shape=(n_words, n_words))


class CorpusSummary(NamedTuple):
    """How large a corpus is."""

    documents: int
    bytes: int
    tokens: int
    distinct_words: int


def describe(documents: Sequence[Document], counts: Mapping[str, int]) -> CorpusSummary:
    """Summarise a corpus from its documents and the counts of its words."""
    n_bytes = sum(document.n_bytes for document in documents)
    return CorpusSummary(len(documents), n_bytes, sum(counts.values()), len(counts))


def merge_counts(counts: Iterable[csr_array]) -> csr_array:
    """Sum the counts of parts: exact, the same in any order.

    Parameters
    ----------
    counts : iterable of csr_array
        Of one shape; consumed one by one.

    Raises
    ------
    InputError
        If there are none.

    Notes
    -----
    Matrices of like size are added first, so that each count is copied O(log n_parts) times; at
    most O(log n_parts) matrices are held.
    """
    merger = _Merger([])
    for matrix in counts:
        merger.add(matrix)
    return merger.total()


@dataclass(frozen=True)
class _Merger:
    """Partial sums, each less than half of the one before."""

    held: list[csr_array]

    def add(self, matrix: csr_array) -> None:
        self.held.append(matrix)
        while len(self.held) > 1 and self.held[-2].nnz <= 2 * self.held[-1].nnz:
            self.held.append(self.held.pop() + self.held.pop())

    def total(self) -> csr_array:
        if not self.held:
            raise InputError("Counts must come from at least one part, but there is none.")
        while len(self.held) > 1:
            self.held.append(self.held.pop() + self.held.pop())
        return self.held[0]
