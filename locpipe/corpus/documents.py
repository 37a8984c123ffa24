"""Documents: what a corpus is made of, found from paths, folders, globs, or Python itself."""

import codecs
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from locpipe.errors import InputError

__all__ = ["Document", "find_documents"]

SUFFIX = ".txt"
_HEAD_BYTES = 65_536  # enough to recognise a binary file before any work starts


@dataclass(frozen=True)
class Document:
    """One text: a window of words never reaches from one document into another.

    A document is only named here, its bytes are read when a worker asks for them, so that it is
    small and cheap to send.

    Parameters
    ----------
    name : str
        What to call it in messages: the path as found, or the topic of the default corpus.
    path : str or None
        Absolute path of the file; None for a topic of the Python language reference.
    n_bytes : int
        Size in bytes when it was found.
    """

    name: str
    path: str | None
    n_bytes: int

    @property
    def source(self) -> Path | tuple[str, bytes]:
        """What a digest of the content needs: the path, or (name, bytes) for the default corpus."""
        return Path(self.path) if self.path is not None else (self.name, self.read())

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Read bytes ``start`` to ``stop`` (default: all), and nothing else.

        Raises
        ------
        InputError
            If the file cannot be read, or is shorter than when it was found.
        """
        stop = self.n_bytes if stop is None else stop
        if self.path is None:
            data = _reference_topics().get(self.name, b"")[start:stop]
        else:
            data = _read_file(self.path, start, stop - start)
        if len(data) != stop - start:
            raise InputError(
                f"The document {self.name!r} must not change during a run, but it is shorter than "
                f"the {self.n_bytes} bytes found at the start; run again."
            )
        return data


def find_documents(
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
) -> tuple[Document, ...]:
    """Find the documents that one or several inputs name.

    Parameters
    ----------
    inputs : str, path, sequence of them, or None
        Each one is a ``.txt`` file, a folder (all ``.txt`` files in it and its sub-folders, hidden
        ones and linked folders left out) or a glob pattern (``**`` allowed; a folder that it
        matches is searched). Files are UTF-8, with or without a byte order mark. None or ``""``:
        the Python language reference that every interpreter ships (`pydoc_data.topics`), one
        document a topic.

    Returns
    -------
    tuple of Document
        In the order of the inputs, sorted by path within each; a file that is reached twice counts
        once.

    Raises
    ------
    InputError
        For a path where nothing is, a file of another kind, a folder or glob without ``.txt``
        files, a file that begins like a binary one, or nothing but empty files.

    Examples
    --------
    >>> documents = find_documents()
    >>> [document.name for document in documents[:2]]
    ['assert', 'assignment']
    """
    if inputs is None or inputs == "":
        topics = sorted(_reference_topics().items())
        return tuple(Document(name, None, len(data)) for name, data in topics)
    items = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    if not items or any(not os.fspath(item) for item in items):
        raise InputError(f"The input must name files, folders or globs, but got {inputs!r}.")
    names: dict[str, str] = {}  # real path -> name as first found
    for item in items:
        for name in _expand(os.path.expanduser(item)):
            names.setdefault(os.path.realpath(name), name)
    documents = tuple(_open_document(name, path) for path, name in names.items())
    if not any(document.n_bytes for document in documents):
        raise InputError(
            f"The corpus must hold words, but every file is empty (the first: "
            f"{documents[0].name!r}); give files with text."
        )
    return documents


@cache
def _reference_topics() -> dict[str, bytes]:
    from pydoc_data.topics import topics  # half a megabyte: only when it is the corpus

    return {name: text.encode() for name, text in topics.items()}


def _expand(item: str) -> list[str]:
    """Turn one input into the names of its files; an existing path is never read as a glob."""
    if os.path.lexists(item):
        return _expand_path(item)
    if not glob.has_magic(item):
        raise InputError(
            f"The input {item!r} must be a .txt file, a folder or a glob, but nothing is there; "
            f"check the path."
        )
    matches = sorted(glob.glob(item, recursive=True))
    names = [name for match in matches for name in _texts_at(match)]
    if not names:
        raise InputError(
            f"The glob {item!r} must match at least one {SUFFIX} file, but matches none; "
            f"check the pattern."
        )
    return names


def _expand_path(path: str) -> list[str]:
    names = list(_texts_at(path))
    if names:
        return names
    if os.path.isdir(path):
        raise InputError(
            f"The folder {path!r} must hold at least one {SUFFIX} file, here or in sub-folders, "
            f"but holds none; check the path."
        )
    raise InputError(
        f"The input {path!r} must be a {SUFFIX} file, but is something else; "
        f"save it as UTF-8 text with the ending {SUFFIX}, or leave it out."
    )


def _texts_at(path: str) -> Iterator[str]:
    if _is_text(path):
        yield path
    elif os.path.isdir(path):
        yield from _texts_below(path)


def _texts_below(folder: str) -> Iterator[str]:
    for root, folders, files in os.walk(folder, onerror=_refuse_folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (os.path.join(root, name) for name in sorted(files) if not name.startswith("."))
        yield from filter(_is_text, paths)


def _is_text(path: str) -> bool:
    return path.lower().endswith(SUFFIX) and os.path.isfile(path)


def _refuse_folder(error: OSError) -> None:
    raise InputError(
        f"The folder {error.filename!r} must be readable, but: {error.strerror}; "
        f"check its permissions."
    ) from error


def _open_document(name: str, path: str) -> Document:
    document = Document(name, path, os.stat(path).st_size)
    head = document.read(0, min(document.n_bytes, _HEAD_BYTES))
    check_text(head, document, 0, final=len(head) == document.n_bytes)
    return document


def check_text(data: bytes, document: Document, start: int, *, final: bool = True) -> str:
    """Decode UTF-8 bytes that begin at byte ``start`` of a document, or say where they are not.

    ``final=False`` allows a character to be cut at the end.
    """
    nul = data.find(b"\0")
    if nul >= 0:
        raise InputError(
            f"The document {document.name!r} must be UTF-8 text, but is binary or UTF-16: a NUL "
            f"byte at offset {start + nul}; convert it to UTF-8 or leave it out."
        )
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final)
    except UnicodeDecodeError as error:
        raise InputError(
            f"The document {document.name!r} must be UTF-8 text, but byte "
            f"0x{data[error.start]:02x} at offset {start + error.start} is not; "
            f"convert it to UTF-8 or leave it out."
        ) from error


def _read_file(path: str, start: int, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            file.seek(start)
            return file.read(size)
    except OSError as error:
        raise InputError(
            f"The document {path!r} must be readable, but: {error.strerror}; "
            f"check the path and its permissions."
        ) from error
