"""The corpus in plain, slow Python: what fast code is compared with."""

import re
import unicodedata
from collections import Counter

MARKS = "".join(chr(i) for i in range(0x110000) if unicodedata.category(chr(i)).startswith("M")) + (
    "\u200c\u200d"
)
_LETTERS = rf"[^\W_][^\W_]*(?:[{MARKS}]+[^\W_]*)*"
_WORD = re.compile(rf"{_LETTERS}(?:['_]{_LETTERS})*")


def words_of(text: str, *, lowercase: bool = True) -> list[str]:
    text = re.sub("[\u00ad\u2060\ufeff]", "", text)
    text = unicodedata.normalize("NFC", text.lower() if lowercase else text)
    return _WORD.findall(re.sub("[\u2019\u02bc\uff07]", "'", text))


def pairs_of(texts: list[str], window: int) -> Counter[tuple[str, str]]:
    pairs: Counter[tuple[str, str]] = Counter()
    for text in texts:
        words = words_of(text)
        for i, head in enumerate(words):
            pairs.update((head, word) for word in words[i + 1 : i + 1 + window])
    return pairs
