"""Words and how often they occur: which are counted as contexts, which get a dot on the map."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from locpipe.corpus.stop_words import stop_word_set
from locpipe.errors import InputError

__all__ = ["Vocabulary"]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words that are counted, by falling count, ties in code point order.

    Parameters
    ----------
    words : tuple of str
        All V kept words: the contexts.
    counts : (V,) int64
        Occurrences in the corpus.
    is_target : (V,) bool
        Words that get a dot. Stop words and numbers are contexts only.

    Examples
    --------
    >>> counts = {"the": 9, "thief": 4, "judge": 4, "1837": 2, "once-only": 1}
    >>> vocabulary = Vocabulary.from_counts(counts, min_count=2, max_words=100)
    >>> vocabulary.words
    ('the', 'judge', 'thief', '1837')
    >>> [vocabulary.words[i] for i in vocabulary.targets]
    ['judge', 'thief']
    """

    words: tuple[str, ...]
    counts: NDArray[np.int64]
    is_target: NDArray[np.bool_]

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        min_count: int = 1,
        max_words: int = 1000,
        stop_words: str | os.PathLike[str] | Iterable[str] = "english",
    ) -> "Vocabulary":
        """Keep the words that occur ``min_count`` times; choose those that get a dot.

        Parameters
        ----------
        counts : mapping of str to int
        min_count : int, default 1
            Rarer words are not counted, but keep their place: a window reaches no further because
            a rare word stands in it.
        max_words : int, default 1000
            At most so many words get a dot: the most frequent that are neither stop words nor
            without any letter.
        stop_words : "english", "none", path or iterable of str, default "english"
            See `stop_word_set`; compared in lower case.

        Raises
        ------
        InputError
            If an argument is out of range, or fewer than two words are left for the map.
        """
        if min_count < 1:
            raise InputError(f"min_count must be at least 1, but is {min_count}.")
        if max_words < 2:
            raise InputError(f"max_words must be at least 2, but is {max_words}.")
        kept = sorted((-n, word) for word, n in counts.items() if n >= min_count)
        words = tuple(word for _, word in kept)
        targets = _most_frequent(words, max_words, stop_word_set(stop_words))
        if len(targets) < 2:
            raise InputError(
                f"A map needs at least two words that occur {min_count} times or more and are not "
                f"stop words, but {len(targets)} of {len(counts)} distinct words are left; give "
                f"more text, or lower min_count."
            )
        is_target = np.zeros(len(words), dtype=bool)
        is_target[targets] = True
        return cls(words, np.array([-n for n, _ in kept], dtype=np.int64), is_target)

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def targets(self) -> NDArray[np.int64]:
        """Indices of the words that get a dot, ascending: the most frequent first."""
        return np.flatnonzero(self.is_target).astype(np.int64)

    @cached_property
    def index(self) -> dict[str, int]:
        """Index of each word."""
        return {word: i for i, word in enumerate(self.words)}

    def encode(self, tokens: list[str]) -> NDArray[np.int64]:
        """Return the index of each token, -1 where it is not in the vocabulary; O(n)."""
        found: Iterator[int] = map(self.index.get, tokens, repeat(-1))
        return np.fromiter(found, dtype=np.int64, count=len(tokens))


def _most_frequent(words: tuple[str, ...], n: int, stop_words: frozenset[str]) -> list[int]:
    content = [
        i
        for i, word in enumerate(words)
        if word.lower() not in stop_words and any(map(str.isalpha, word))
    ]
    return content[:n]
