"""Parts: the pieces of a corpus that workers read, cut where no word is cut."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from locpipe.corpus.documents import Document, check_text
from locpipe.errors import InputError

__all__ = ["PART_BYTES", "Part", "Span", "split"]

PART_BYTES = 4 * 2**20  # about 0.4 s and 80 MiB of work for a window of 5

# A cut goes before white space, or before an ideographic space, comma or full stop: bytes that no
# word contains, in UTF-8 never part of another character, and that no letter case or
# normalisation rule looks across. So the words of the pieces are the words of the whole.
_BREAK = re.compile(rb"[\t-\r ]|\xe3\x80[\x80-\x82]")
_LOOK = 4096


@dataclass(frozen=True)
class Span:
    """Bytes ``start`` to ``stop`` of one document; both ends are between words."""

    document: Document
    start: int
    stop: int

    @property
    def n_bytes(self) -> int:
        """Length in bytes."""
        return self.stop - self.start

    def text(self) -> str:
        """Read and decode the span."""
        return check_text(self.document.read(self.start, self.stop), self.document, self.start)

    def next_span(self, n_bytes: int) -> "Span":
        """Return the span that follows, at least ``n_bytes`` long where the document goes on."""
        return Span(self.document, self.stop, find_break(self.document, self.stop + n_bytes))


@dataclass(frozen=True)
class Part:
    """The unit of work: a piece of one long document, or several short documents together."""

    spans: tuple[Span, ...]

    @property
    def n_bytes(self) -> int:
        """Length in bytes of all spans."""
        return sum(span.n_bytes for span in self.spans)


def split(documents: Sequence[Document], part_bytes: int = PART_BYTES) -> tuple[Part, ...]:
    """Cut documents into parts of about ``part_bytes`` bytes, never inside a word.

    Long documents are cut, short ones share a part. Counts do not depend on the split.

    Parameters
    ----------
    documents : sequence of Document
    part_bytes : int, default 4 MiB
        A part is longer only by the way to the next white space (or CJK space, comma, full stop):
        a text that has none of them for long cannot be cut there, and its parts grow accordingly.

    Returns
    -------
    tuple of Part
        In the order of the documents, which they cover exactly; empty documents have no part.

    Raises
    ------
    InputError
        If ``part_bytes`` is below 1, or a document cannot be read.

    Notes
    -----
    Reads a few bytes around each cut, no more.

    Examples
    --------
    >>> from locpipe.corpus import find_documents
    >>> documents = find_documents()
    >>> parts = split(documents, part_bytes=100_000)
    >>> sum(part.n_bytes for part in parts) == sum(doc.n_bytes for doc in documents)
    True
    >>> max(part.n_bytes for part in parts) < 101_000
    True
    """
    if part_bytes < 1:
        raise InputError(f"part_bytes must be at least 1, but is {part_bytes}.")
    parts: list[Part] = []
    spans: list[Span] = []
    room = part_bytes
    for span in _cut(documents, part_bytes):
        if spans and span.n_bytes > room:
            parts.append(Part(tuple(spans)))
            spans, room = [], part_bytes
        spans.append(span)
        room -= span.n_bytes
    return (*parts, Part(tuple(spans))) if spans else ()


def _cut(documents: Sequence[Document], size: int) -> Iterator[Span]:
    for document in documents:
        span = Span(document, 0, 0)
        while span.stop < document.n_bytes:
            span = span.next_span(size)
            yield span


def find_break(document: Document, position: int) -> int:
    """Return the first place at or after byte ``position`` where a cut is safe."""
    look = _LOOK
    while position < document.n_bytes:
        stop = min(position + look, document.n_bytes)
        match = _BREAK.search(document.read(position, stop))
        if match:
            return position + match.start()
        if stop == document.n_bytes:
            break
        look *= 2
    return document.n_bytes
