"""From text to dissimilarities: counts per part, vocabulary, context profiles, rows of a matrix."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from locpipe.corpus import (
    PairCounting,
    Part,
    Tokenizer,
    Vocabulary,
    WordCounting,
    count_corpus_words,
    merge_counts,
    pack_counts,
    unpack_counts,
)
from locpipe.flows.steps.job import Work
from locpipe.store import ArraySpec, PartsSpec

__all__ = ["count", "dissimilarities", "profiles", "vocabulary"]

WORDS, PAIRS = "words_of_parts", "pairs_of_parts"
BLOCK_CELLS: Final = 4_000_000  # cells of a block of rows: 16 MB, well under a second
LEAST_BLOCKS: Final = 16  # so that small maps are cut, too: progress, and something to go on from


@dataclass(frozen=True)
class _PackedWords:
    """Words of a part as arrays."""

    count: WordCounting

    def __call__(self, block: int) -> Mapping[str, Any]:
        counts = self.count(block)
        words = np.array(list(counts), dtype=object)
        return {WORDS: {"word": words, "count": np.array(list(counts.values()), dtype=np.int64)}}


@dataclass(frozen=True)
class _PackedPairs:
    """Pairs of a part as arrays."""

    count: PairCounting

    def __call__(self, block: int) -> Mapping[str, Any]:
        return {PAIRS: pack_counts(self.count(block))}


def vocabulary(work: Work, parts: tuple[Part, ...]) -> Vocabulary:
    """Count the words of all parts and choose those that matter.

    Returns
    -------
    Vocabulary
        The same whether it was just counted or lies in the store.
    """
    tokenizer = Tokenizer(work.config.lowercase)
    work.run.ensure(PartsSpec(WORDS, len(parts)))
    work.blocks("counting words", (WORDS,), _PackedWords(WordCounting(parts, tokenizer)))
    counts = count_corpus_words(parts, tokenizer, partial(_read_words, work))
    config = work.config
    chosen = Vocabulary.from_counts(
        counts, min_count=config.min_count, max_words=config.max_words, stop_words=config.stop_words
    )
    _put_words(work, chosen)
    return chosen


def _read_words(work: Work, _: object, blocks: Any, *, on_done: Callable[[int, Any], None]) -> None:
    """Stand in for `run_blocks`: the parts are counted, and read back one by one."""
    for block in blocks:
        part = work.run.read_part(WORDS, block)
        on_done(block, dict(zip(part["word"], part["count"].tolist(), strict=True)))


def _put_words(work: Work, chosen: Vocabulary) -> None:
    targets = chosen.targets
    words = np.array(chosen.words, dtype=object)
    n, v = (len(targets),), (len(chosen),)
    put = work.run.put
    put(ArraySpec("word", ("word",), n, n, str, description="Word of each dot"), words[targets])
    put(
        ArraySpec("count", ("word",), n, n, np.int64, "1", "Occurrences in the corpus"),
        chosen.counts[targets],
    )
    put(ArraySpec("context", ("context",), v, v, str, description="All counted words"), words)
    put(
        ArraySpec("context_count", ("context",), v, v, np.int64, "1", "Occurrences in the corpus"),
        chosen.counts,
    )


def count(work: Work, parts: tuple[Part, ...], words: Vocabulary) -> Any:
    """Count the pairs of all parts.

    Returns
    -------
    csr_array (V, V) int64
        ``C[i, j]``: how often word j follows word i within the window.
    """
    tokenizer = Tokenizer(work.config.lowercase)
    counting = PairCounting(parts, tokenizer, words, work.config.window)
    work.run.ensure(PartsSpec(PAIRS, len(parts)))
    work.blocks("counting pairs", (PAIRS,), _PackedPairs(counting))
    counts = merge_counts(unpack_counts(work.run.read_part(PAIRS, i)) for i in range(len(parts)))
    _put_pairs(work, counts[words.targets][:, words.targets].tocoo())
    return counts


def _put_pairs(work: Work, pairs: Any) -> None:
    """Store the counts among the words of the map: three columns, a row for each pair seen."""
    columns = {
        "pair_word": (pairs.row, "Index of the word"),
        "pair_next": (pairs.col, "Index of the word that follows it"),
        "pair_count": (pairs.data, "How often it does, within the window"),
    }
    for name, (data, description) in columns.items():
        spec = ArraySpec(name, ("pair",), data.shape, (1_000_000,), np.int64, "1", description)
        work.run.put(spec, data.astype(np.int64))


def profiles(work: Work, counts: Any, words: Vocabulary) -> NDArray[np.float64]:
    """Describe each word by its contexts, or read what an earlier run found.

    Returns
    -------
    (n, k) float64
    """
    from locpipe.corpus.dissimilarity import context_profiles

    name = "context_profile"
    with work.progress.stage("describing contexts"):
        if not work.stored(name):
            found = context_profiles(
                counts,
                words.targets,
                n_components=work.config.context_dims,
                random_state=work.config.random_state,
            )
            description = "What stands before and after each word, reduced"
            dims = ("word", "context_axis")
            spec = ArraySpec(name, dims, found.shape, found.shape, np.float64, "1", description)
            work.run.put(spec, found)
        return np.asarray(work.run.read(name))


@dataclass(frozen=True)
class _Rows:
    """Rows of the matrix of dissimilarities and of their weights."""

    kind: str
    height: int
    contexts: Any
    counts: Any
    targets: NDArray[np.int64]
    n_near: int
    far_weight: float

    def __call__(self, block: int) -> Mapping[str, Any]:
        n = len(self.targets)
        rows = slice(block * self.height, min((block + 1) * self.height, n))
        delta, weight = self._cells(rows)
        return {"dissimilarity": delta.astype("f4"), "weight": weight.astype("f4")}

    def _cells(self, rows: slice) -> Any:
        from locpipe.corpus import dissimilarity

        if self.kind == "rank":
            return dissimilarity.rank_dissimilarity(
                self.contexts, rows, n_near=self.n_near, far_weight=self.far_weight
            )
        cells = getattr(dissimilarity, f"{self.kind}_dissimilarity")
        return cells(self.counts, self.targets, rows)


def dissimilarities(work: Work, counts: Any, words: Vocabulary, contexts: Any) -> None:
    """Store how unlike each word finds each other word, and how much that counts."""
    n = len(words.targets)
    height = rows_per_block(n)
    for name, description in (
        ("dissimilarity", "From the row's word to the column's"),
        ("weight", "How much each dissimilarity counts"),
    ):
        shape, chunks = (n, n), (height, n)
        dims = ("word", "other_word")
        work.run.ensure(ArraySpec(name, dims, shape, chunks, np.float32, "1", description))
    config = work.config
    ranked = config.dissimilarity == "rank"
    rows = _Rows(
        config.dissimilarity,
        height,
        contexts if ranked else None,
        None if ranked else counts,
        words.targets,
        config.n_near,
        config.far_weight,
    )
    work.blocks("comparing words", ("dissimilarity", "weight"), rows)


def rows_per_block(n: int) -> int:
    """Return how many rows of an (n, n) matrix make a block."""
    return max(1, min(-(-n // LEAST_BLOCKS), BLOCK_CELLS // n))
