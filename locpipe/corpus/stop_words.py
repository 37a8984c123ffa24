"""Stop words: frequent words that say little, so that they get no dot on a map."""

import os
from collections.abc import Iterable

from locpipe.corpus.tokens import Tokenizer
from locpipe.errors import InputError

__all__ = ["stop_word_set"]

_ENDINGS = ("n't", "'s", "'d", "'m", "'ll", "'re", "'ve")
_VERBS = {"did", "does", "ai", "wo", "ca", "sha", "let"}  # stems that the list itself lacks


def stop_word_set(stop_words: str | os.PathLike[str] | Iterable[str]) -> frozenset[str]:
    """Return stop words in lower case, as the tokeniser writes them.

    Parameters
    ----------
    stop_words : "english", "none", path, or iterable of str
        ``"english"`` is scikit-learn's list with the contractions of its words (*don't*, *he's*,
        *they'll*), which that list lacks because its tokeniser cuts them. A path names a UTF-8
        text file of words.

    Raises
    ------
    InputError
        If a string is neither of the two names nor the path of a text file.

    Examples
    --------
    >>> sorted(stop_word_set(["The", "Don\N{RIGHT SINGLE QUOTATION MARK}t"]))
    ["don't", 'the']
    """
    if stop_words == "english":
        return _english()
    if stop_words == "none":
        return frozenset()
    if isinstance(stop_words, str | os.PathLike):
        stop_words = [_read(stop_words)]
    return frozenset(word for text in stop_words for word in Tokenizer()(text))


def _english() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    contractions = {word + ending for word in ENGLISH_STOP_WORDS | _VERBS for ending in _ENDINGS}
    return frozenset(ENGLISH_STOP_WORDS | contractions)


def _read(path: str | os.PathLike[str]) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"stop_words must be 'english', 'none', a list of words or the path of a UTF-8 text "
            f"file, but is {os.fspath(path)!r}; check the name."
        ) from error
