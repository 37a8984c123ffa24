"""The house rules of the imports, as data and one checker over the syntax trees of `locpipe/`.

Imports go down only; heavy or optional libraries are named only in the rooms that own them. Lazy
imports inside functions count, and so do `importlib.import_module("...")` and `TYPE_CHECKING`.
"""

import ast
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

# A module may import only what stands on a lower line; rooms on one line do not know each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("config",),
    ("shared", "options"),
    ("blocks",),
    ("distance",),
    ("metrics", "pairs"),
    ("kernels", "reductions"),
    ("engines",),
    ("graph",),
    ("store",),
    ("functions",),
    ("planning",),
    ("bandwidths",),
    ("cluster", "plots", "corpus", "methods"),
    ("",),  # locpipe/__init__.py
    ("testing",),
    ("flows",),
    ("cli",),
    ("__main__",),
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}

# Libraries that may be named only in these modules (a room, or a module of it).
DASK_ROOMS = ("graph", "store", "corpus", "cluster", "flows", "testing")
LIBRARIES: dict[str, tuple[str, ...]] = {
    "dask": DASK_ROOMS,
    "distributed": DASK_ROOMS,
    "prefect": ("flows.embed_corpus", "flows.amds", "flows.prefect_side"),
    "cupy": ("engines", "cluster"),
    "cupyx": ("engines", "cluster"),
    "xarray": (),
    "pickle": ("testing",),
    "cloudpickle": (),
    "dill": (),
    "joblib": (),
    "typer": ("cli",),
    "pydantic": ("flows",),
    "matplotlib": ("plots",),
    "bokeh": ("plots", "cluster"),
    "hypothesis": ("testing",),
    "pytest": ("testing",),
}
# Top-level folders of the repository that are installed as `locpipe.<name>`.
INSTALLED_FOLDERS = ("flows", "cluster", "configs")
CALLS = ("eval", "exec")


@dataclass(frozen=True)
class Name:
    """One dotted name that a module imports, and where."""

    target: str
    line: int
    level: int = 0


def imported_names(tree: ast.AST) -> Iterator[Name]:
    """Yield every module name that a syntax tree imports, lazily or not."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Name(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = (f"{base}.{alias.name}" for alias in node.names)
            yield from (Name(name, node.lineno, node.level) for name in names)
        elif isinstance(node, ast.Call) and (target := dynamic_import(node)):
            yield Name(target, node.lineno)


def dynamic_import(call: ast.Call) -> str | None:
    """Return the module that ``import_module("...")`` or ``__import__("...")`` names, or None."""
    named = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if named not in ("import_module", "__import__") or not call.args:
        return None
    return str(call.args[0].value) if isinstance(call.args[0], ast.Constant) else None


def module_of(path: Path, root: Path) -> str:
    """Return a file's name below `locpipe.`, such as ``store.schema``; empty for the package."""
    parts = path.relative_to(root / "locpipe").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def python_files(root: Path) -> list[Path]:
    """Return the package's files; `locpipe/flows` and its like are links and are followed."""
    found = []
    for folder, _, names in os.walk(root / "locpipe", followlinks=True):
        found += [Path(folder, name) for name in names if name.endswith(".py")]
    return sorted(found)


def room_of(module: str) -> str:
    return module.split(".")[0]


def target_room(target: str) -> str:
    """Return the room that ``locpipe.x.y`` lies in; the package's own names have room ``""``."""
    room = room_of(target.removeprefix("locpipe").removeprefix("."))
    return room if room in RANK else ""


def allowed(module: str, rooms: tuple[str, ...]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def judge_import(module: str, name: Name) -> str | None:
    """Return which rule an import breaks, or None."""
    top = name.target.split(".")[0]
    room, here = target_room(name.target), room_of(module)
    if name.level:
        return f"relative import of {name.target!r}: write locpipe.x"
    if top in INSTALLED_FOLDERS:
        return f"{top!r} is installed as locpipe.{top}: import that name"
    if top in LIBRARIES and not allowed(module, LIBRARIES[top]):
        return f"{top} may be named only in {list(LIBRARIES[top]) or 'no room'}"
    if top != "locpipe" or (room == here and room):
        return None
    if room == "testing":
        return "only tests import locpipe.testing"
    if here not in RANK:
        return f"room {here!r} has no place in LAYERS"
    if RANK[room] >= RANK[here]:
        return f"{here or 'locpipe'} imports {room or 'locpipe'}: imports go down only"
    return None


def violations(root: Path) -> list[str]:
    """Return every broken rule below ``root/locpipe`` as ``file:line: rule``."""
    found = []
    for path in python_files(root):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        module = module_of(path, root)
        found += [
            f"{path.relative_to(root)}:{name.line}: {broken}"
            for name in imported_names(tree)
            if (broken := judge_import(module, name))
        ]
        found += [
            f"{path.relative_to(root)}:{node.lineno}: eval and exec are not used"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CALLS
        ]
    return found


def test_the_house_keeps_its_rules(repo: Path) -> None:
    assert python_files(repo)
    assert violations(repo) == []


def test_every_room_has_a_place(repo: Path) -> None:
    rooms = {room_of(module_of(path, repo)) for path in python_files(repo)}
    assert rooms <= set(RANK)


PLANTED = {
    "up: a kernel imports the store": (
        "kernels/gaussian.py", "import locpipe.store", "imports go down only"),
    "up: from-import of a room": (
        "store/zarr_io.py", "from locpipe import flows", "imports go down only"),
    "up: lazily, inside a function": (
        "engines/dense.py", "def f():\n    from locpipe.graph import fold", "imports go down only"),
    "up: only for types": (
        "blocks.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from locpipe.kernels"
        " import Gaussian", "imports go down only"),
    "up: by importlib": (
        "graph/plan.py", "import importlib\nimportlib.import_module('locpipe.store')",
        "imports go down only"),
    "up: a room imports the public package": (
        "methods/kde.py", "import locpipe as lp", "imports go down only"),
    "up: flows import the command line": (
        "flows/embed_corpus.py", "from locpipe.cli import main", "imports go down only"),
    "sideways: corpus and methods": (
        "corpus/count.py", "from locpipe.methods import KernelDensity", "imports go down only"),
    "sideways: kernels and reductions": (
        "reductions/mass.py", "from locpipe.kernels import Gaussian", "imports go down only"),
    "store and functions": (
        "store/keys.py", "from locpipe.functions import nearest", "imports go down only"),
    "testing in the product": (
        "methods/kde.py", "from locpipe.testing import reference", "only tests import"),
    "testing from the command line": (
        "cli.py", "import locpipe.testing.laws", "only tests import"),
    "dask in a kernel": ("kernels/k.py", "import dask.array as da", "dask may be named only"),
    "dask in methods, lazily": (
        "methods/m.py", "def f():\n    import dask", "dask may be named only"),
    "distributed in an engine": (
        "engines/e.py", "from distributed import Client", "distributed may be named only"),
    "prefect in a step": (
        "flows/steps/count.py", "from prefect import task", "prefect may be named only"),
    "prefect in the command line": (
        "cli.py", "def f():\n    import prefect", "prefect may be named only"),
    "cupy in a kernel": ("kernels/k.py", "import cupy as cp", "cupy may be named only"),
    "xarray anywhere": ("store/s.py", "import xarray as xr", "xarray may be named only in no room"),
    "pickle": ("store/s.py", "import pickle", "pickle may be named only in"),
    "matplotlib outside plots": (
        "flows/report.py", "import matplotlib.pyplot as plt", "matplotlib may be named only"),
    "relative import": ("store/s.py", "from . import schema", "relative import"),
    "bare name of an installed folder": (
        "cli.py", "from flows.embed_corpus import embed_corpus", "installed as locpipe.flows"),
    "bare cluster": ("flows/a.py", "import cluster", "installed as locpipe.cluster"),
    "a room without a place": (
        "extras/e.py", "import locpipe.errors", "has no place in LAYERS"),
    "eval": ("config.py", "eval('1')", "eval and exec are not used"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "source", "rule"), PLANTED.values(), ids=PLANTED.keys())
def test_planted_violation_is_caught(tmp_path: Path, file: str, source: str, rule: str) -> None:
    path = tmp_path / "locpipe" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    found = violations(tmp_path)
    assert len(found) == 1, found
    assert rule in found[0]
    assert found[0].startswith(f"locpipe/{file}:{source.count(chr(10)) + 1}:")


def test_planted_violation_is_caught_through_the_link(tmp_path: Path) -> None:
    (tmp_path / "locpipe").mkdir()
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "local.py").write_text("import prefect")
    (tmp_path / "locpipe" / "cluster").symlink_to("../cluster")
    assert violations(tmp_path) == [
        "locpipe/cluster/local.py:1: prefect may be named only in"
        " ['flows.embed_corpus', 'flows.amds', 'flows.prefect_side']"
    ]


def test_allowed_imports_pass(tmp_path: Path) -> None:
    package = tmp_path / "locpipe"
    sources = {
        "cli.py": "import typer\nfrom locpipe.flows import models\nimport locpipe as lp",
        "flows/embed_corpus.py": "import prefect\nimport dask\nfrom locpipe.store import open_run",
        "corpus/dissimilarity.py": "from locpipe.functions import nearest",
        "store/source.py": "from locpipe.graph import KeySource\nfrom locpipe.store import schema",
        "testing/laws.py": "import dask\nimport hypothesis\nfrom locpipe.kernels import Gaussian",
        "engines/gpu.py": "def f():\n    import cupy",
    }
    for file, source in sources.items():
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(source)
    assert violations(tmp_path) == []


def modules_after(statement: str) -> set[str]:
    """Return the modules that are loaded after a statement in a fresh interpreter."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


HEAVY = ("prefect", "dask", "distributed", "sklearn", "matplotlib", "zarr", "cupy", "pandas")
COMPILERS = ("numba", "finufft", "faiss", "scipy.spatial", "torch")


@pytest.mark.parametrize("statement", ["import locpipe", "import locpipe.cli"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    assert modules_after(statement).isdisjoint(HEAVY + COMPILERS)


SMALL_CALLS = """
import numpy as np, locpipe as lp
x = np.random.default_rng(0).normal(size=(100, 100))
kernel = lp.kernels.Gaussian(3.0)
lp.local_mean(x, x, x, kernel), lp.log_density(x, x, kernel), lp.nearest(x, x, 5)
many = np.zeros((100_000, 100))
lp.plan(many, x, kernel, reduction="log_mass")
"""


def test_a_small_call_loads_no_compiler() -> None:
    loaded = modules_after(SMALL_CALLS)
    assert loaded.isdisjoint(HEAVY + COMPILERS)


@pytest.mark.parametrize("module", ["locpipe.cluster", "locpipe.flows", "locpipe.flows.models"])
def test_prefect_stays_out(module: str) -> None:
    assert "prefect" not in modules_after(f"import {module}")
