"""Counting the words of one part, and the pairs of words within a window."""

from collections import Counter
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from locpipe.corpus.parts import Part, Span
from locpipe.corpus.tokens import Tokenizer
from locpipe.corpus.vocabulary import Vocabulary
from locpipe.errors import InputError

__all__ = ["count_pairs", "count_words"]

_UINT32_CELLS = 2**32
_OFFSETS = 8  # offsets whose pairs are sorted at once


def count_words(part: Part, tokenizer: Tokenizer) -> Counter[str]:
    """Count the words of one part.

    Raises
    ------
    InputError
        If a document is not UTF-8 text; says which, and at which byte.
    """
    counts: Counter[str] = Counter()
    for span in part.spans:
        counts.update(tokenizer(span.text()))
    return counts


def count_pairs(part: Part, tokenizer: Tokenizer, vocabulary: Vocabulary, window: int) -> csr_array:
    """Count, for each word of one part, which words follow within a window.

    Parameters
    ----------
    part : Part
    tokenizer : Tokenizer
    vocabulary : Vocabulary
        Of V words. Other words are not counted but keep their place.
    window : int
        Reach, in words. A window looks beyond the end of the part, into the next part of the same
        document, but not beyond the document. The parts of a corpus therefore sum to the same
        counts however it is split.

    Returns
    -------
    csr_array, (V, V) int64
        ``C[i, j]``: occurrences of word j at offset 1 to ``window`` after word i; columns sorted.

    Notes
    -----
    O(n window log n) for n words; memory of about 20 bytes per byte of text at a window of 5,
    bounded by about 35 for any window.

    The matrix is directed (that one word follows another is what makes a map asymmetric) and all
    offsets count alike: no distance weighting, no sub-sampling; [1]_ discusses both.

    References
    ----------
    .. [1] Levy, O., Goldberg, Y. and Dagan, I. (2015). Improving distributional similarity with
       lessons learned from word embeddings. TACL 3, 211-225, section 3.1.

    Examples
    --------
    >>> from locpipe.corpus import Document, Part, Span, Tokenizer, Vocabulary
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "abc.txt")
    ...     _ = path.write_text("a b a c a b")
    ...     part = Part((Span(Document("abc", str(path), 11), 0, 11),))
    ...     words = Vocabulary.from_counts({"a": 3, "b": 2, "c": 1}, stop_words="none")
    ...     count_pairs(part, Tokenizer(), words, window=2).toarray()
    array([[2, 2, 1],
           [1, 0, 1],
           [1, 1, 0]])
    """
    if window < 1:
        raise InputError(f"window must be at least 1, but is {window}.")
    sequences = [_encode(span, tokenizer, vocabulary, window) for span in part.spans]
    words = np.concatenate([words for words, _ in sequences] or [np.zeros(0, np.int64)])
    heads = np.concatenate([heads for _, heads in sequences] or [np.zeros(0, np.int64)])
    return _count_following(heads, words, len(vocabulary), window)


def _encode(
    span: Span, tokenizer: Tokenizer, vocabulary: Vocabulary, window: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the words of a span, those that follow it and a gap; and which of them it owns."""
    own = vocabulary.encode(tokenizer(span.text()))
    following = vocabulary.encode(_look_ahead(span, tokenizer, window))
    gap = np.full(window, -1, dtype=np.int64)
    words = np.concatenate([own, following, gap])
    heads = np.concatenate([own, np.full_like(following, -1), gap])
    return words, heads


def _look_ahead(span: Span, tokenizer: Tokenizer, window: int) -> list[str]:
    """Return the first ``window`` words after a span, fewer where the document ends."""
    n_bytes = 16 * window
    while True:
        ahead = span.next_span(n_bytes)
        tokens = tokenizer(ahead.text())
        if len(tokens) >= window or ahead.stop == span.document.n_bytes:
            return tokens[:window]
        n_bytes *= 4


def _count_following(
    heads: NDArray[np.int64], words: NDArray[np.int64], n_words: int, window: int
) -> csr_array:
    """Count pairs (head, word at offset 1..window), a few offsets at a time to bound memory."""
    firsts = range(1, window + 1, _OFFSETS)
    batches = (range(first, min(first + _OFFSETS, window + 1)) for first in firsts)
    return reduce(add, (_count_at(heads, words, n_words, offsets) for offsets in batches))


def _count_at(
    heads: NDArray[np.int64], words: NDArray[np.int64], n_words: int, offsets: range
) -> csr_array:
    """Count pairs as numbers ``head * n_words + word``."""
    # Sorting 4-byte numbers takes half the time, and nearly every vocabulary allows them.
    dtype = np.uint32 if n_words**2 <= _UINT32_CELLS else np.int64
    keys = [np.zeros(0, dtype)]
    for offset in offsets:
        head, word = heads[:-offset], words[offset:]
        known = (head >= 0) & (word >= 0)
        keys.append((head[known] * n_words + word[known]).astype(dtype))
    cells, counts = np.unique(np.concatenate(keys), return_counts=True)
    rows, columns = np.divmod(cells.astype(np.int64), n_words)
    return csr_array((counts.astype(np.int64), (rows, columns)), shape=(n_words, n_words))
