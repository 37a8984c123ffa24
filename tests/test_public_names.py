"""What `import locpipe as lp` reaches, and that every example runs where it is pasted."""

import doctest
import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import locpipe as lp

ROOMS = (lp, lp.config, lp.kernels, lp.masks, lp.reductions, lp.store)
FINDER = doctest.DocTestFinder(recurse=False)


def examples() -> list[doctest.DocTest]:
    """Examples of public names, each in an empty namespace."""
    names = {
        f"{room.__name__}.{name}": getattr(room, name) for room in ROOMS for name in room.__all__
    }
    found = {}
    for name, thing in names.items():
        if not isinstance(thing, ModuleType) and thing.__doc__:
            for test in FINDER.find(thing, name, module=False, globs={}):
                found[id(thing)] = test
    return [test for test in found.values() if test.examples]


@pytest.mark.parametrize("example", examples(), ids=lambda test: test.name)
def test_an_example_runs_where_it_is_pasted(example: doctest.DocTest) -> None:
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not said, "".join(said)


def test_modules_are_there_without_an_import_of_their_own() -> None:
    code = "import locpipe as lp; print(*(getattr(lp, name).__name__ for name in dir(lp)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = {
        "config",
        "errors",
        "functions",
        "kernels",
        "plots",
        "reductions",
        "store",
        "testing",
    }
    assert {f"locpipe.{name}" for name in modules} | {"locpipe.kernels.masks"} <= set(
        done.stdout.split()
    )


def test_no_other_name_is_there() -> None:
    with pytest.raises(AttributeError, match="module 'locpipe' has no attribute 'kernel'"):
        lp.kernel  # noqa: B018


def test_options_are_found_from_help() -> None:
    text = inspect.getdoc(lp.local_mean) or ""
    assert "`lp.functions.Run`" in text
    assert all(option in text for option in lp.functions.Run.__annotations__)
