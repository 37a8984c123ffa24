import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locpipe.corpus import Document, Tokenizer, documents, find_documents, split
from locpipe.errors import InputError

TEXT = st.text("ab'é、。 \n日本", max_size=80)


def corpus(folder, texts) -> tuple[Document, ...]:
    for i, text in enumerate(texts):
        (folder / f"{i:03}.txt").write_bytes(text.encode())
    paths = (folder / f"{i:03}.txt" for i in range(len(texts)))
    return tuple(Document(path.name, str(path), path.stat().st_size) for path in paths)


def spans_of(parts):
    return [span for part in parts for span in part.spans]


@given(texts=st.lists(TEXT, max_size=5), part_bytes=st.integers(1, 200))
def test_spans_cover_every_document_and_cut_no_word(tmp_path_factory, texts, part_bytes):
    found = corpus(tmp_path_factory.mktemp("corpus"), texts)
    spans = spans_of(split(found, part_bytes))
    tokenize = Tokenizer()
    for document, text in zip(found, texts, strict=True):
        own = [span for span in spans if span.document == document]
        assert "".join(span.text() for span in own) == text
        words = [word for span in own for word in tokenize(span.text())]
        assert words == tokenize(text)


@given(lengths=st.lists(st.integers(0, 50), max_size=20), part_bytes=st.integers(1, 60))
def test_parts_hold_at_most_their_bytes_and_are_filled(tmp_path_factory, lengths, part_bytes):
    texts = ["a " * (length // 2) for length in lengths]
    parts = split(corpus(tmp_path_factory.mktemp("corpus"), texts), part_bytes)
    sizes = [part.n_bytes for part in parts]
    assert all(size <= part_bytes + 1 for size in sizes)  # one letter to the next space
    firsts = [part.spans[0].n_bytes for part in parts]
    for size, following in zip(sizes, firsts[1:], strict=False):
        assert size + following > part_bytes


def test_short_documents_share_a_part(tmp_path):
    found = corpus(tmp_path, ["some words"] * 100)
    assert [len(part.spans) for part in split(found, 250)] == [25] * 4


def test_empty_documents_have_no_part(tmp_path):
    assert split(corpus(tmp_path, ["", ""]), 10) == ()


def test_text_that_cannot_be_cut_makes_a_longer_part(tmp_path):
    long = "x" * 20_000
    (found,) = corpus(tmp_path, [f"{long} {long}"])
    assert [part.n_bytes for part in split([found], 100)] == [20_000, 20_001]


def test_text_without_spaces_is_cut_at_its_stops(tmp_path):
    found = corpus(tmp_path, ["これは、本です。" * 100])
    parts = split(found, 240)
    assert len(parts) == 10
    assert all(part.spans[0].text()[0] in "、。" for part in parts[1:])


def test_only_the_bytes_around_a_cut_are_read(tmp_path, monkeypatch):
    (found,) = corpus(tmp_path, ["word " * 200_000])
    reads = []
    read_file = documents._read_file
    monkeypatch.setattr(
        documents,
        "_read_file",
        lambda path, start, size: reads.append(size) or read_file(path, start, size),
    )
    assert len(split([found], 100_000)) == 10
    assert sum(reads) <= 10 * 4096
    reads.clear()
    split([found], 100_000)[4].spans[0].text()
    assert max(reads) <= 100_004


def test_a_part_is_small_whatever_it_stands_for(tmp_path):
    (found,) = corpus(tmp_path, ["word " * 200_000])
    assert len(pickle.dumps(split([found], 500_000)[0])) < 500


def test_the_default_corpus_is_split_too():
    parts = split(find_documents(), 20_000)
    assert sum(part.n_bytes for part in parts) == sum(doc.n_bytes for doc in find_documents())


@pytest.mark.parametrize("part_bytes", [0, -5])
def test_a_part_needs_a_byte(part_bytes):
    with pytest.raises(InputError, match=f"part_bytes must be at least 1, but is {part_bytes}"):
        split(find_documents(), part_bytes)
