"""`embed-corpus`, step by step: prepare, compute, summarise; with or without Prefect."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from locpipe.errors import InputError
from locpipe.flows.models import EmbedCorpus
from locpipe.flows.progress import Progress
from locpipe.flows.steps.inputs import Inputs
from locpipe.flows.steps.job import Job, Work, at_work
from locpipe.flows.wording import bytes_text, counted, map_text
from locpipe.store import ArraySpec, check_output, fingerprint

__all__ = ["STAGES", "compute", "prepare"]

STAGES: Final = 7
PART_BYTES: Final = (64 * 2**10, 4 * 2**20)  # smallest and largest part of a corpus
CELL_BYTES: Final = 8  # a dissimilarity and its weight
PARTS: Final = 32  # what a corpus between those is cut into


def prepare(config: EmbedCorpus) -> Job[EmbedCorpus]:
    """Look at the input and the output, without work: what would be done, and whether it can be.

    Raises
    ------
    InputError
        If there is no text to be read, or the output cannot be written.
    StoreError
        If something else is where the output goes.
    """
    from locpipe.corpus import find_documents, stop_word_set

    if config.n_components >= config.max_words:
        raise InputError(
            f"n_components must be below max_words, and {config.n_components} is not below"
            f" {config.max_words}; a map of two dimensions is usual."
        )
    documents = find_documents(config.input)
    check_output(config.output)
    if stop_word_file := _stop_word_file(config):
        stop_word_set(stop_word_file[0])
    sources = [document.source for document in documents]
    inputs = Inputs.take([*sources, *stop_word_file], config.output)
    n_bytes = sum(document.n_bytes for document in documents)
    plan = {"part_bytes": part_bytes(n_bytes)}
    return Job(
        config,
        fingerprint({"flow": config.flow, **config.numbers(), "input": None}, inputs.digests),
        plan,
        _about(config, len(documents), n_bytes, plan),
        inputs,
    )


def part_bytes(n_bytes: int) -> int:
    """Return the size of the parts that a corpus is counted in.

    Examples
    --------
    >>> part_bytes(1_000), part_bytes(32_000_000), part_bytes(10**12)
    (65536, 1000000, 4194304)
    """
    least, most = PART_BYTES
    return min(max(n_bytes // PARTS, least), most)


def _stop_word_file(config: EmbedCorpus) -> list[Any]:
    """Return the stop words' file, whose content changes numbers, if there is one."""
    named = isinstance(config.stop_words, str) and config.stop_words not in ("english", "none")
    return [Path(str(config.stop_words))] if named else []


def _about(
    config: EmbedCorpus, n_documents: int, n_bytes: int, plan: Mapping[str, int]
) -> dict[str, str]:
    n, n_parts = config.max_words, max(1, -(-n_bytes // plan["part_bytes"]))
    about = "about " if n_parts > 1 else ""
    size = bytes_text(n * n * CELL_BYTES)
    return {
        "input": f"{counted(n_documents, 'document')}, {bytes_text(n_bytes)}",
        "counting": f"{about}{counted(n_parts, 'part')}, window {config.window}",
        "matrix": f"at most {n:,} x {n:,} words, {size} before compression; words are not counted"
        " yet, and fewer make it smaller",
        "map": map_text(config),
        "cluster": config.cluster,
        "output": config.output,
    }


def compute(job: Job[EmbedCorpus], progress: Progress) -> None:
    """Do the work that the store does not have yet, and mark the store complete.

    Raises
    ------
    InputError
        If the text does not hold enough words, or changes.
    StoreError
        If the output is another run's, or in use.
    """
    from locpipe.corpus import find_documents, split
    from locpipe.flows.steps import corpus, density, embedding

    with at_work(job, progress) as work:
        if work.run.complete:
            return
        with work.reading():
            documents = find_documents(job.config.input)
            job.inputs.check_listing([document.source for document in documents])
            parts = split(documents, work.run.plan["part_bytes"])
            words = corpus.vocabulary(work, parts)
            counts = corpus.count(work, parts, words)
        contexts = corpus.profiles(work, counts, words)
        corpus.dissimilarities(work, counts, words, contexts)
        n = len(words.targets)
        labels = np.array(words.words, dtype=object)[words.targets]
        _put_other_words(work, labels)
        embedding.embed(work, "word", "other_word", (n, n), weighted=True)
        density.density(work, "word")
        density.clusters(work, "word", labels)
        _judge(work, contexts)
        work.finish()


def _put_other_words(work: Work, labels: Any) -> None:
    n = (len(labels),)
    spec = ArraySpec("other_word", ("other_word",), n, n, str, description="Word of each column")
    work.run.put(spec, labels)


def _judge(work: Work, contexts: Any) -> None:
    """Store how well the map keeps the neighbours of the context space, and whether it is one."""
    from locpipe.corpus.dissimilarity import map_quality

    stress = work.run.attrs["stress"]
    quality = map_quality(work.run.read("embedding"), contexts, stress=stress)
    work.run.set_attrs(
        neighbour_overlap=quality.overlap,
        neighbour_overlap_by_chance=quality.chance,
        radius_spread=quality.spread,
        warning=quality.warning or "",
    )
