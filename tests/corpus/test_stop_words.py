import pytest

from locpipe.corpus import stop_word_set
from locpipe.errors import InputError


def test_english_is_the_list_of_scikit_learn_and_its_contractions():
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    words = stop_word_set("english")
    assert words > ENGLISH_STOP_WORDS
    assert {"don't", "didn't", "can't", "won't", "i'm", "he's", "they'll", "that's"} <= words
    assert not {"oliver's", "said", "o'clock", "dog's"} & words


def test_none_is_none():
    assert stop_word_set("none") == frozenset()


def test_a_list_is_read_as_text_is():
    assert stop_word_set(["The", "DON\u2019T", "New York"]) == {"the", "don't", "new", "york"}


def test_a_file_holds_words_in_any_layout(tmp_path):
    path = tmp_path / "stop.txt"
    path.write_text("the a\nÉté,\n\nDon’t", encoding="utf-8")
    expected = {"the", "a", "été", "don't"}
    assert stop_word_set(str(path)) == stop_word_set(path) == expected


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_name_that_is_no_list_is_refused(tmp_path, content):
    path = tmp_path / "englich"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"must be 'english', 'none', .* but is '.*englich'"):
        stop_word_set(str(path))
