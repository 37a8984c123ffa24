"""Measures anew and writes it into the page: `python benchmarks/page.py [NAME ...]`.

Each section of `docs/benchmarks.md` holds what one benchmark printed, between two comments that
bear its name; without names all sections are measured, which takes about an hour.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
OPTIONS = {"spectral": ["--large"], "scale": ["--picture", str(PAGE.with_suffix(".png"))]}
SECTION = re.compile(r"<!-- (?P<name>\w+) -->\n(?P<text>.*?)<!-- end -->", re.DOTALL)


def measured(name: str) -> str:
    """What a benchmark prints; it is shown as it comes."""
    command = [sys.executable, str(HERE / f"{name}.py"), *OPTIONS.get(name, [])]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        sys.exit(f"{name} failed; its section is as it was")
    return "".join(lines)


def replaced(page: str, name: str, text: str) -> str:
    """The page with the text of one section."""

    def section(found: re.Match[str]) -> str:
        same = found["name"] == name
        return f"<!-- {name} -->\n{text.strip()}\n<!-- end -->" if same else found[0]

    return SECTION.sub(section, page)


def main(argv=None) -> None:
    """Measure, and write every section as soon as it is measured."""
    known = [found["name"] for found in SECTION.finditer(PAGE.read_text(encoding="utf-8"))]
    names = sys.argv[1:] if argv is None else argv
    if unknown := set(names) - set(known):
        sys.exit(f"no section {sorted(unknown)} in {PAGE}; it has {known}")
    for name in names or known:
        text = measured(name)
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")


if __name__ == "__main__":
    main()
