import numpy as np
import pytest

from locpipe.corpus import Vocabulary
from locpipe.errors import InputError

COUNTS = {"the": 50, "said": 9, "Oliver": 9, "don't": 8, "1837": 7, "fagin": 6, "rare": 1}


def chosen(vocabulary):
    return [vocabulary.words[i] for i in vocabulary.targets]


def test_words_come_by_falling_count_then_by_code_point():
    vocabulary = Vocabulary.from_counts(dict(reversed(COUNTS.items())), min_count=2)
    assert vocabulary.words == ("the", "Oliver", "said", "don't", "1837", "fagin")
    np.testing.assert_array_equal(vocabulary.counts, [50, 9, 9, 8, 7, 6])
    assert vocabulary.counts.dtype == np.int64
    assert len(vocabulary) == 6


def test_stop_words_and_numbers_are_contexts_without_a_dot():
    vocabulary = Vocabulary.from_counts(COUNTS, min_count=2)
    assert chosen(vocabulary) == ["Oliver", "said", "fagin"]
    assert vocabulary.is_target.tolist() == [False, True, True, False, False, True]
    assert vocabulary.targets.dtype == np.int64


def test_only_the_most_frequent_content_words_get_a_dot():
    assert chosen(Vocabulary.from_counts(COUNTS, max_words=2)) == ["Oliver", "said"]


@pytest.mark.parametrize(
    ("stop_words", "dots"),
    [
        ("none", ["the", "Oliver", "said", "don't", "fagin"]),
        (["OLIVER", "The"], ["said", "don't", "fagin"]),
    ],
)
def test_stop_words_are_the_callers_choice_and_ignore_case(stop_words, dots):
    vocabulary = Vocabulary.from_counts(COUNTS, min_count=2, stop_words=stop_words)
    assert chosen(vocabulary) == dots


def test_words_become_indices_and_unknown_ones_minus_one():
    vocabulary = Vocabulary.from_counts(COUNTS, min_count=2)
    indices = vocabulary.encode(["the", "rare", "fagin", "the", "unknown"])
    np.testing.assert_array_equal(indices, [0, -1, 5, 0, -1])
    assert vocabulary.encode([]).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_count": 0}, "min_count must be at least 1, but is 0"),
        ({"max_words": 1}, "max_words must be at least 2, but is 1"),
        (
            {"min_count": 9, "stop_words": ["said"]},
            "needs at least two words that occur 9 times or more .* 1 of 7 distinct words are left",
        ),
    ],
)
def test_too_little_is_refused(arguments, message):
    counts = {word: n for word, n in COUNTS.items() if word != "the"} | {"of": 1}
    with pytest.raises(InputError, match=message):
        Vocabulary.from_counts(counts, **arguments)
