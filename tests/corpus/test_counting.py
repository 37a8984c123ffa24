from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from locpipe.corpus import (
    PairCounting,
    Tokenizer,
    Vocabulary,
    WordCounting,
    count_corpus_pairs,
    count_corpus_words,
    describe,
    find_documents,
    merge_counts,
    pack_counts,
    split,
    unpack_counts,
)
from locpipe.errors import InputError
from locpipe.graph import run_blocks


def backwards(compute, blocks, *, on_done):
    run_blocks(compute, reversed(list(blocks)), on_done=on_done)


def in_processes(pool, compute, blocks, *, on_done):
    for block, result in enumerate(pool.map(compute, blocks)):
        on_done(block, result)


@pytest.fixture(scope="module")
def novel():
    documents = find_documents()
    parts = split(documents, 30_000)
    counts = count_corpus_words(parts, Tokenizer())
    return documents, parts, counts, Vocabulary.from_counts(counts, min_count=2)


def same(a: csr_array, b: csr_array) -> bool:
    names = ("indptr", "indices", "data")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


@pytest.mark.parametrize("part_bytes", [7_000, 10**9])
def test_a_corpus_gives_one_answer_in_any_split_and_order(novel, part_bytes):
    documents, parts, counts, vocabulary = novel
    others = split(documents, part_bytes)
    assert len(others) != len(parts)
    assert count_corpus_words(others, Tokenizer(), run=backwards) == counts
    expected = count_corpus_pairs(parts, Tokenizer(), vocabulary, 3)
    assert same(count_corpus_pairs(others, Tokenizer(), vocabulary, 3, run=backwards), expected)
    assert expected.sum() > counts.total()


def test_counting_runs_in_other_processes(novel):
    _, parts, counts, vocabulary = novel
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        run = partial(in_processes, pool)
        assert count_corpus_words(parts, Tokenizer(), run=run) == counts
        pairs = count_corpus_pairs(parts, Tokenizer(), vocabulary, 2, run=run)
    assert same(pairs, count_corpus_pairs(parts, Tokenizer(), vocabulary, 2))


def test_counting_runs_on_dask(novel):
    from distributed import Client

    _, parts, counts, vocabulary = novel
    two = {"n_workers": 1, "threads_per_worker": 2, "dashboard_address": "127.0.0.1:0"}
    with Client(processes=False, **two) as c:
        run = partial(run_blocks, client=c)
        assert count_corpus_words(parts, Tokenizer(), run=run) == counts
        pairs = count_corpus_pairs(parts, Tokenizer(), vocabulary, 2, run=run)
    assert same(pairs, count_corpus_pairs(parts, Tokenizer(), vocabulary, 2))


def test_blocks_are_parts(novel):
    _, parts, _, vocabulary = novel
    words = [WordCounting(parts, Tokenizer())(i) for i in range(len(parts))]
    pairs = [PairCounting(parts, Tokenizer(), vocabulary, 2)(i) for i in range(len(parts))]
    assert sum(words, Counter()) == count_corpus_words(parts, Tokenizer())
    assert same(merge_counts(pairs), count_corpus_pairs(parts, Tokenizer(), vocabulary, 2))


@given(seeds=st.lists(st.integers(0, 99), min_size=1, max_size=9), data=st.data())
def test_merging_is_the_exact_sum_in_any_order(seeds, data):
    def counts(seed):
        rng = np.random.default_rng(seed)
        return csr_array(rng.integers(0, 5, (6, 6)) * (rng.random((6, 6)) < seed / 200))

    matrices = [counts(seed) for seed in seeds]
    merged = merge_counts(iter(matrices))
    assert merged.dtype == np.int64
    np.testing.assert_array_equal(merged.toarray(), sum(m.toarray() for m in matrices))
    assert same(merge_counts(data.draw(st.permutations(matrices))), merged)


def test_nothing_to_merge_is_refused():
    with pytest.raises(InputError, match="must come from at least one part, but there is none"):
        merge_counts([])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["..."], "two distinct words, but no word is in '.*/0.txt'; give more text"),
        (["- -", "?", ";"], "but no word is in '.*/0.txt' and 2 more; give more text"),
        (["Hello, hello!"], "but only the word 'hello' is in '.*/0.txt'; give more text"),
    ],
)
def test_a_corpus_without_two_words_is_refused(tmp_path, texts, message):
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        count_corpus_words(split(find_documents(str(tmp_path))), Tokenizer())


def test_a_corpus_without_documents_is_refused():
    with pytest.raises(InputError, match="but no word is in any document; give"):
        count_corpus_words((), Tokenizer())


def test_packed_counts_are_plain_arrays_and_come_back(novel):
    _, parts, _, vocabulary = novel
    counts = PairCounting(parts, Tokenizer(), vocabulary, 2)(0)
    arrays = pack_counts(counts)
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.int64)}
    back = unpack_counts(arrays)
    assert back.shape == counts.shape
    assert same(back, counts)


def test_a_corpus_is_described(tmp_path):
    (tmp_path / "a.txt").write_text("One two, two.")
    (tmp_path / "b.txt").write_text("three")
    documents = find_documents(str(tmp_path))
    counts = count_corpus_words(split(documents), Tokenizer())
    assert describe(documents, counts)._asdict() == {
        "documents": 2,
        "bytes": 18,
        "tokens": 4,
        "distinct_words": 3,
    }
