"""The default map of a novel puts together what belongs together."""

import pytest

from benchmarks.word_map import NAMES, SPEECH, lift
from locpipe.blocks import ArrayPairs
from locpipe.corpus import (
    Tokenizer,
    Vocabulary,
    count_corpus_pairs,
    count_corpus_words,
    find_documents,
    split,
)
from locpipe.corpus.dissimilarity import context_profiles, map_quality, rank_dissimilarity
from locpipe.methods.unfolding import unfold


@pytest.fixture(scope="module")
def novel(oliver_twist):
    parts, tokenizer = split(find_documents(str(oliver_twist)), 2**18), Tokenizer()
    counts = count_corpus_words(parts, tokenizer)
    vocabulary = Vocabulary.from_counts(counts, min_count=5, max_words=1000)
    pairs = count_corpus_pairs(parts, tokenizer, vocabulary, window=2)
    profiles = context_profiles(pairs, vocabulary.targets)
    words = [vocabulary.words[i] for i in vocabulary.targets]
    return words, profiles, ArrayPairs(*rank_dissimilarity(profiles, slice(0, len(words))))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_people_are_together_and_so_are_verbs_of_speech(novel, seed):
    words, profiles, cells = novel
    found = unfold(cells, "random-0", random_state=seed)
    assert len(words) == 1000
    assert lift(found.embedding, words, NAMES) >= 15
    assert lift(found.embedding, words, SPEECH) >= 15
    quality = map_quality(found.embedding, profiles)
    assert quality.lift > 8
    assert quality.warning is None
