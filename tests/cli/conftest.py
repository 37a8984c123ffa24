"""The command line called in this process, and inputs for it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_calls import Called

from locpipe.cli import main


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    """Call the same main function in this process, which has imported what is slow to import."""

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["locpipe", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        status = caught.value.code
        return subprocess.CompletedProcess([], status, *capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with inputs, good and bad."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "good.txt").write_text("the cat saw the dog and the dog saw the cat " * 30)
    (folder / "empty.txt").write_text("")
    (folder / "one_word.txt").write_text("word " * 100)
    (folder / "binary.txt").write_bytes(bytes(range(256)) * 10)
    np.save(folder / "nan.npy", np.array([[0, 1, np.nan], [1, 0, 1], [1, 1, 0]]))
    np.save(folder / "negative.npy", np.array([[0, 1, 2], [1, 0, -1], [1, 1, 0]]))
    np.save(folder / "good.npy", np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    (folder / "other").mkdir()
    (folder / "other" / "file").write_text("not a store")
    return folder
