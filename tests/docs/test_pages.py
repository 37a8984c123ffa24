"""The code on the pages runs: each block goes into the file that its first line names."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

BLOCK = re.compile(r"```python\n# (?P<file>\w+\.py)\n(?P<code>.*?)```", re.DOTALL)

FEWER = """
from hypothesis import settings

settings.register_profile("few", max_examples=20)
settings.load_profile("few")
"""


def files_of(page: Path) -> dict[str, str]:
    """Text of every file that a page writes; blocks of one file follow each other."""
    files: dict[str, str] = defaultdict(str)
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        files[block["file"]] += block["code"] + "\n"
    return files


@pytest.fixture(scope="module")
def written(repo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    files = files_of(repo / "docs" / "your-own-kernel.md")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "conftest.py").write_text(FEWER, encoding="utf-8")
    return folder


def run(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_scripts_run(written):
    run(written, "-c", "import try_kernel, try_reduction")


def test_laws_are_inherited(written):
    tests = ("test_my_kernel.py", "test_my_reduction.py")
    passed = run(written, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert int(re.search(r"(\d+) passed", passed)[1]) >= 50


def test_every_block_was_tried(repo, written):
    text = (repo / "docs" / "your-own-kernel.md").read_text(encoding="utf-8")
    assert text.count("```python") == len(BLOCK.findall(text)) == 7
    assert len(set(written.glob("*.py")) - {written / "conftest.py"}) == 6


def test_a_kernel_is_ten_lines(repo):
    """The class itself, without its docstring and imports."""
    code = files_of(repo / "docs" / "your-own-kernel.md")["my_kernel.py"]
    body = code[code.index("@dataclass") : code.index("from locpipe.kernels import Radial")]
    lines = [line for line in body.splitlines() if line.strip() and '"""' not in line]
    assert len(lines) <= 10
