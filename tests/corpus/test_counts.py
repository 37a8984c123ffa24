import math
from collections import Counter

import numpy as np
import pytest
from corpus_reference import pairs_of, words_of
from hypothesis import given
from hypothesis import strategies as st

from locpipe.corpus import (
    Document,
    Part,
    Span,
    Tokenizer,
    Vocabulary,
    count_pairs,
    count_words,
    find_documents,
    merge_counts,
    split,
)
from locpipe.errors import InputError

TEXTS = st.lists(st.text("abcé'’_1 \n、。-C\u0301", max_size=60), min_size=1, max_size=5)


def corpus(folder, texts) -> tuple[Document, ...]:
    paths = [folder / f"{i:03}.txt" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text.encode())
    return tuple(Document(path.name, str(path), path.stat().st_size) for path in paths)


def every_word(counts) -> Vocabulary:
    """Take all words, even where `from_counts` would refuse because they are too few."""
    words = sorted(counts)
    n = np.array([counts[word] for word in words], dtype=np.int64)
    return Vocabulary(tuple(words), n, np.ones(len(words), dtype=bool))


def as_dict(matrix, words):
    coo = matrix.tocoo()
    cells = zip(coo.row, coo.col, coo.data, strict=True)
    return {(words[i], words[j]): int(n) for i, j, n in cells}


def one_part(folder, text) -> Part:
    (document,) = corpus(folder, [text])
    return Part((Span(document, 0, document.n_bytes),))


@given(texts=TEXTS, part_bytes=st.integers(1, 120), window=st.integers(1, 20))
def test_counts_are_those_of_plain_python_however_the_corpus_is_split(
    tmp_path_factory, texts, part_bytes, window
):
    documents = corpus(tmp_path_factory.mktemp("corpus"), texts)
    parts = split(documents, part_bytes)
    counts = sum((count_words(part, Tokenizer()) for part in parts), Counter())
    assert counts == Counter(word for text in texts for word in words_of(text))
    if counts:
        vocabulary = every_word(counts)
        pairs = merge_counts(count_pairs(p, Tokenizer(), vocabulary, window) for p in parts)
        assert as_dict(pairs, vocabulary.words) == pairs_of(texts, window)


def test_the_example_of_the_theory(tmp_path):
    vocabulary = every_word({"a": 3, "b": 2, "c": 1})
    pairs = count_pairs(one_part(tmp_path, "a b a c a b"), Tokenizer(), vocabulary, 2)
    assert pairs.dtype == np.int64
    assert pairs.has_canonical_format
    np.testing.assert_array_equal(pairs.toarray(), [[2, 2, 1], [1, 0, 1], [1, 1, 0]])


def test_windows_stop_at_documents_and_cross_parts(tmp_path):
    first, second = corpus(tmp_path, ["a b", "c d"])
    vocabulary = every_word(dict.fromkeys("abcd", 1))
    whole = Part((Span(first, 0, 3), Span(second, 0, 3)))
    beginning = Part((Span(first, 0, 1),))
    tokenize = Tokenizer()
    expected = {("a", "b"): 1, ("c", "d"): 1}
    assert as_dict(count_pairs(whole, tokenize, vocabulary, 9), vocabulary.words) == expected
    assert as_dict(count_pairs(beginning, tokenize, vocabulary, 9), vocabulary.words) == {
        ("a", "b"): 1
    }


def test_words_outside_the_vocabulary_keep_their_place(tmp_path):
    part = one_part(tmp_path, "a rare b a b")
    pairs = count_pairs(part, Tokenizer(), every_word({"a": 2, "b": 2}), 1)
    np.testing.assert_array_equal(pairs.toarray(), [[0, 1], [1, 0]])


def test_the_look_ahead_goes_as_far_as_its_words_do(tmp_path):
    gap = " . " * 5000
    text = f"a{gap}{'x' * 9000}{gap}b{gap}c"
    (document,) = corpus(tmp_path, [text])
    vocabulary = every_word(dict.fromkeys("abc", 1))
    pairs = count_pairs(Part((Span(document, 0, 1),)), Tokenizer(), vocabulary, 2)
    assert as_dict(pairs, vocabulary.words) == {("a", "b"): 1}


def test_a_byte_order_mark_is_no_word(tmp_path):
    part = one_part(tmp_path, "\ufeffthe end")
    assert count_words(part, Tokenizer()) == {"the": 1, "end": 1}


@pytest.mark.parametrize("n_words", [math.isqrt(2**32), math.isqrt(2**32) + 1, 100_000])
def test_large_vocabularies_do_not_overflow(tmp_path, n_words):
    words = tuple(f"w{i}" for i in range(n_words))
    ones = np.ones(n_words, dtype=np.int64)
    vocabulary = Vocabulary(words, ones, ones.astype(bool))
    last = words[-1]
    pairs = count_pairs(one_part(tmp_path, f"{last} w0 {last} {last}"), Tokenizer(), vocabulary, 1)
    assert as_dict(pairs, words) == {(last, "w0"): 1, ("w0", last): 1, (last, last): 1}


def test_a_part_without_words_gives_empty_counts(tmp_path):
    vocabulary = every_word({"a": 1, "b": 1})
    pairs = count_pairs(one_part(tmp_path, " ... "), Tokenizer(), vocabulary, 5)
    assert (pairs.shape, pairs.nnz, pairs.dtype) == ((2, 2), 0, np.int64)
    assert count_words(Part(()), Tokenizer()) == {}
    assert count_pairs(Part(()), Tokenizer(), vocabulary, 5).nnz == 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"\xe9", "002.txt' must be UTF-8 text, but byte 0xe9 at offset 100000 is not"),
        (b"\0", "002.txt' must be UTF-8 text, but is binary .* at offset 100000;"),
    ],
)
def test_bad_bytes_deep_in_a_document_are_found_and_placed(tmp_path, bad, message):
    path = tmp_path / "002.txt"
    path.write_bytes(b"word " * 20_000 + bad + b" word" * 10)
    parts = split(find_documents(str(path)), 30_000)
    with pytest.raises(InputError, match=message):
        [count_words(part, Tokenizer()) for part in parts]


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_reaches_one_word_at_least(tmp_path, window):
    with pytest.raises(InputError, match=f"window must be at least 1, but is {window}"):
        count_pairs(one_part(tmp_path, "a b"), Tokenizer(), every_word({"a": 1, "b": 1}), window)


def test_a_novel_is_counted_as_by_plain_python(oliver_twist):
    text = oliver_twist.read_text(encoding="utf-8")
    parts = split(find_documents(oliver_twist), 100_000)
    assert len(parts) > 8
    counts = sum((count_words(part, Tokenizer()) for part in parts), Counter())
    assert counts == Counter(words_of(text))
    vocabulary = every_word(counts)
    pairs = merge_counts(count_pairs(part, Tokenizer(), vocabulary, 5) for part in parts)
    assert as_dict(pairs, vocabulary.words) == pairs_of([text], 5)
