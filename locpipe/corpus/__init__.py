"""Text to documents, parts, words, and directed counts of words that follow each other."""

from locpipe.corpus.counting import (
    CorpusSummary,
    PairCounting,
    Runner,
    WordCounting,
    count_corpus_pairs,
    count_corpus_words,
    describe,
    merge_counts,
    pack_counts,
    unpack_counts,
)
from locpipe.corpus.counts import count_pairs, count_words
from locpipe.corpus.documents import Document, find_documents
from locpipe.corpus.parts import PART_BYTES, Part, Span, split
from locpipe.corpus.stop_words import stop_word_set
from locpipe.corpus.tokens import Tokenizer
from locpipe.corpus.vocabulary import Vocabulary

__all__ = [
    "PART_BYTES",
    "CorpusSummary",
    "Document",
    "PairCounting",
    "Part",
    "Runner",
    "Span",
    "Tokenizer",
    "Vocabulary",
    "WordCounting",
    "count_corpus_pairs",
    "count_corpus_words",
    "count_pairs",
    "count_words",
    "describe",
    "find_documents",
    "merge_counts",
    "pack_counts",
    "split",
    "stop_word_set",
    "unpack_counts",
]
