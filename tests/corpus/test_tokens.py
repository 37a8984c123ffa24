import unicodedata

import pytest
from corpus_reference import words_of
from hypothesis import given
from hypothesis import strategies as st

from locpipe.corpus import Tokenizer

# Letters, digits, joiners, marks, invisible and separating characters that interact.
BREAKS = [" ", "\n", "\r\n", "\t", "。", "、", "\u3000"]
TRICKY = st.text("aZ1é_'’ʼ-. \n、。ΣİßिकC\u0301\u0308\u0345\u200c\u00ad\ufeff²½𝒜Ⅷ日本", max_size=40)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        (" '' -- ... ", ""),
        ("Don't, o'clock; 'tis the boys' well-known", "don't o'clock tis the boys well known"),
        ("don\u2019t o\u2019clock \u2018quoted\u2019 п\u02bcять", "don't o'clock quoted п'ять"),
        ("__init__ exc_info _emphasis_ a__b a'_b c'''d", "init exc_info emphasis a b a b c d"),
        ("1837 2nd 3.14 1,000", "1837 2nd 3 14 1 000"),
        ("caf\u00e9 cafe\u0301 CAFE\u0301", "café café café"),
        ("हिन्दी में", "हिन्दी में"),
        ("co\u00adoper\u00adate", "cooperate"),
        ("\ufeffstart", "start"),
        ("ΟΔΟΣ ΣΟΦΟΣ", "οδος σοφος"),
        ("東京は、大きい。", "東京は 大きい"),
        ("\u2764\ufe0f love \u0301stray", "love stray"),
    ],
)
def test_words_of_examples(text, words):
    assert Tokenizer()(text) == words.split()


@given(text=st.one_of(TRICKY, st.text(max_size=60)), lowercase=st.booleans())
def test_words_are_those_of_the_reference(text, lowercase):
    assert Tokenizer(lowercase=lowercase)(text) == words_of(text, lowercase=lowercase)


def test_every_character_is_classed_as_by_the_reference():
    unassigned = ("Cn", "Co", "Cs")
    every = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in unassigned]
    for start in range(0, len(every), 8192):  # most of these hold more than 100 separators
        text = " ".join(f"a{character}b" for character in every[start : start + 8192])
        assert Tokenizer()(text) == words_of(text)


def test_composed_and_decomposed_characters_give_the_same_words():
    letters = [chr(i) for i in range(0x30000) if chr(i).isalnum()]
    text = " ".join(letters)
    assert Tokenizer()(unicodedata.normalize("NFD", text)) == Tokenizer()(text)


@given(left=TRICKY, cut=st.sampled_from(BREAKS), right=TRICKY)
def test_words_never_depend_on_what_is_beyond_a_break(left, cut, right):
    tokenize = Tokenizer()
    assert tokenize(left + cut + right) == tokenize(left) + tokenize(cut + right)


def test_case_is_kept_on_request():
    assert Tokenizer(lowercase=False)("Fagin and Élan") == ["Fagin", "and", "Élan"]
