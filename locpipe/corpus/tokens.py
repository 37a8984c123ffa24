"""From text to words."""

import unicodedata
from dataclasses import dataclass

__all__ = ["Tokenizer"]

_APOSTROPHES = "\u2019\u02bc\uff07"  # typographic, modifier letter, full width: all become '
_INVISIBLE = "\u00ad\u2060\ufeff"  # soft hyphen, word joiner, byte order mark: removed
_ZERO_WIDTH = "\u200c\u200d"  # non-joiner and joiner belong to words of Persian and Indic scripts
_JOINERS = "'_"  # part of a word where one of them stands between two of its characters
_JOINER_RUNS = tuple(a + b for a in _JOINERS for b in _JOINERS)
_JOINER_EDGES = tuple(edge for a in _JOINERS for edge in (" " + a, a + " "))
_MANY = 100  # distinct separators beyond which one slow pass beats a quick pass for each


def _ascii_table(lowercase: bool) -> bytes:
    kept = (chr(i) if chr(i).isalnum() or chr(i) in _JOINERS else " " for i in range(128))
    table = "".join(kept)
    return (table.lower() if lowercase else table).encode() + bytes(range(128, 256))


_ASCII = {lowercase: _ascii_table(lowercase) for lowercase in (False, True)}


@dataclass(frozen=True)
class Tokenizer:
    """Split text into words, for any script that puts something between its words.

    A word is a run of letters, digits and combining marks, beginning with a letter or digit. One
    apostrophe or underscore between two of its characters belongs to it: *don't*, *o'clock*,
    *exc_info*; *'tis* gives *tis*, *__init__* gives *init*. A typographic apostrophe is the plain
    one. Everything else separates: *well-known* gives two words, *3.14* and *1,000* too. Digits
    are kept (*1837*, *2nd*): a number is a word like any other. Soft hyphens vanish. Words are
    normalised to NFC, so that a composed and a decomposed accent are the same.

    Scripts without spaces between words (Chinese, Japanese, Thai) are not segmented: whatever
    stands between two punctuation marks is one long "word". Counts are right but of little use;
    segment such text first, with spaces.

    Parameters
    ----------
    lowercase : bool, default True

    Examples
    --------
    >>> Tokenizer()("Don\N{RIGHT SINGLE QUOTATION MARK}t ask Oliver Twist at 8 o'clock!")
    ["don't", 'ask', 'oliver', 'twist', 'at', '8', "o'clock"]
    """

    lowercase: bool = True

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text, in order; O(length)."""
        if text.isascii():
            return _words(text.encode().translate(_ASCII[self.lowercase]).decode())
        for character in _INVISIBLE:
            text = text.replace(character, "")
        text = unicodedata.normalize("NFC", text.lower() if self.lowercase else text)
        for character in _APOSTROPHES:
            text = text.replace(character, "'")
        characters = set(text)
        marks = "".join(filter(_is_mark, characters))
        separators = {c for c in characters if not (c.isalnum() or c in _JOINERS or c in marks)}
        text = _replace(text, separators)
        return _words_with_marks(text, marks) if marks else _words(text)


def _words(spaced: str) -> list[str]:
    """Split text of letters, digits, joiners and spaces."""
    # Joiners stay only between two characters of a word. Runs of them go first, then those at an
    # edge: what is left of a run has become an edge.
    spaced = f" {spaced} "
    for joiners in _JOINER_RUNS + _JOINER_EDGES:
        spaced = spaced.replace(joiners, "  ")
    return spaced.split()


def _words_with_marks(spaced: str, marks: str) -> list[str]:
    """Split text that has marks too, and drop those with no letter or digit before them."""
    for joiner in filter(spaced.__contains__, _JOINERS):
        for mark in marks:
            spaced = spaced.replace(joiner + mark, f" {mark}")
    words = (word.lstrip(marks + _JOINERS) for word in _words(spaced))
    return [word for word in words if word]


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M") or character in _ZERO_WIDTH


def _replace(text: str, separators: set[str]) -> str:
    if len(separators) > _MANY:
        return text.translate({ord(character): " " for character in separators})
    for character in separators:
        text = text.replace(character, " ")
    return text
