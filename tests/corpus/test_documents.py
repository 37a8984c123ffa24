import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from locpipe.corpus import Document, find_documents
from locpipe.errors import InputError


def write(path: Path, content: str | bytes = "some words") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def names_below(folder: Path, documents) -> list[str]:
    return [os.path.relpath(document.name, folder) for document in documents]


@pytest.fixture
def library(tmp_path):
    for name in ("b.txt", "a.TXT", "sub/deep/c.txt", "sub/a.txt", "notes.md", ".hidden.txt"):
        write(tmp_path / name)
    write(tmp_path / ".cache" / "d.txt")
    return tmp_path


@pytest.mark.parametrize("inputs", [None, ""])
def test_the_default_corpus_is_the_language_reference_one_document_a_topic(inputs):
    from pydoc_data.topics import topics

    documents = find_documents(inputs)
    assert [document.name for document in documents] == sorted(topics)
    assert all(document.path is None for document in documents)
    assert all(document.read().decode() == topics[document.name] for document in documents)
    assert documents[3].source == (documents[3].name, documents[3].read())


def test_a_folder_gives_its_text_files_sorted_and_nothing_hidden(library):
    expected = ["a.TXT", "b.txt", "sub/a.txt", "sub/deep/c.txt"]
    assert names_below(library, find_documents(str(library))) == expected


def test_a_file_is_known_by_its_real_path_and_size(library):
    (document,) = find_documents(library / "b.txt")
    real = os.path.realpath(library / "b.txt")
    assert (document.path, document.n_bytes) == (real, len("some words"))
    assert document.source == Path(real)
    assert document.read(5, 8) == b"wor"


def test_globs_match_files_and_search_folders(library):
    assert names_below(library, find_documents(f"{library}/*.txt")) == ["b.txt"]
    expected = ["a.TXT", "b.txt", "sub/a.txt", "sub/deep/c.txt"]
    assert names_below(library, find_documents(f"{library}/*")) == expected
    assert sorted(names_below(library, find_documents(f"{library}/**/[ab].*"))) == expected[:3]


def test_inputs_keep_their_order_and_a_file_counts_once(library):
    os.symlink(library / "b.txt", library / "z.txt")
    inputs = [str(library / "z.txt"), library / "sub", str(library)]
    expected = ["z.txt", "sub/a.txt", "sub/deep/c.txt", "a.TXT"]
    assert names_below(library, find_documents(inputs)) == expected


def test_folders_that_link_to_each_other_end(library):
    os.symlink(library, library / "sub" / "loop")
    assert len(find_documents(str(library))) == 4


def test_a_path_that_looks_like_a_glob_is_a_path(tmp_path):
    path = write(tmp_path / "[draft] 1*.txt")
    assert find_documents(str(path))[0].name == str(path)


def test_home_is_expanded(library, monkeypatch):
    monkeypatch.setenv("HOME", str(library))
    assert find_documents("~/b.txt")[0].n_bytes == len("some words")


def test_a_file_on_disk_is_found_while_other_files_are_empty(tmp_path):
    write(tmp_path / "a.txt", b"")
    write(tmp_path / "b.txt")
    assert [document.n_bytes for document in find_documents(str(tmp_path))] == [0, 10]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("nowhere.txt", "nowhere.txt' must be a .txt file, a folder or a glob, but nothing is"),
        ("no*.txt", r"The glob '.*no\*.txt' must match at least one .txt file, but matches none"),
        ("image.png", "image.png' must be a .txt file, but is something else"),
        ("empty folder", "empty folder' must hold at least one .txt file, here or in sub-folders"),
        ("broken link.txt", "broken link.txt' must be a .txt file, but is something else"),
        ("pipe.txt", "pipe.txt' must be a .txt file, but is something else"),
        ("binary.txt", "binary.txt' must be UTF-8 text, but is binary .* NUL byte at offset 3;"),
        ("latin.txt", "latin.txt' must be UTF-8 text, but byte 0xe9 at offset 3 is not;"),
        ("cut.txt", "cut.txt' must be UTF-8 text, but byte 0xc3 at offset 3 is not;"),
        ("blank.txt", "must hold words, but every file is empty .the first: '.*blank.txt'"),
    ],
)
def test_bad_inputs_are_refused_in_one_sentence_that_names_them(tmp_path, inputs, message):
    write(tmp_path / "image.png", b"\x89PNG")
    write(tmp_path / "binary.txt", b"abc\0def")
    write(tmp_path / "latin.txt", "café".encode("latin-1"))
    write(tmp_path / "cut.txt", "café".encode()[:-1])
    write(tmp_path / "blank.txt", "")
    (tmp_path / "empty folder").mkdir()
    os.symlink("nothing", tmp_path / "broken link.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(InputError, match=message) as error:
        find_documents(str(tmp_path / inputs))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("inputs", [[], ["a.txt", ""]])
def test_inputs_that_name_nothing_are_refused(inputs):
    with pytest.raises(InputError, match="must name files, folders or globs, but got"):
        find_documents(inputs)


def test_a_character_across_the_end_of_the_first_look_is_fine(tmp_path):
    write(tmp_path / "a.txt", "a" * 65_535 + "é")
    assert find_documents(str(tmp_path))[0].n_bytes == 65_537


@contextmanager
def unprivileged():
    """Root may read everything, so drop to nobody while the test looks."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(("closed", "kind"), [("a.txt", "document"), ("folder", "folder")])
def test_what_may_not_be_read_is_named(tmp_path_factory, closed, kind):
    root = tmp_path_factory.mktemp("closed")
    for folder in (root, *root.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    write(root / "a.txt")
    write(root / "folder" / "b.txt")
    (root / closed).chmod(0)
    with unprivileged(), pytest.raises(InputError, match=f"The {kind} '.*{closed}' must be read"):
        find_documents(str(root))
    (root / closed).chmod(0o755)


def test_a_file_that_shrinks_during_a_run_is_noticed(tmp_path):
    path = write(tmp_path / "a.txt", "one two three")
    (document,) = find_documents(str(path))
    write(path, "one two")
    with pytest.raises(InputError, match=r"must not change during a run, .* the 13 bytes found"):
        document.read()


def test_a_file_that_goes_during_a_run_is_named(tmp_path):
    path = write(tmp_path / "a.txt")
    (document,) = find_documents(str(path))
    path.unlink()
    with pytest.raises(InputError, match=r"a.txt' must be readable, but: No such file"):
        document.read()


def test_a_topic_that_another_python_lacks_is_noticed():
    with pytest.raises(InputError, match="must not change during a run"):
        Document("no such topic", None, 10).read()
