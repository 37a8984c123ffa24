"""The code of the README runs, and its plan is the one that it prints."""

import re
import subprocess
import sys
import textwrap

CODE = re.compile(r"```python\n(?P<code>import dask\.array.*?)```", re.DOTALL)
PLAN = re.compile(r"```\n(?P<plan>1,000 queries.*?)```", re.DOTALL)

# As on the machine that the README was written on.
AROUND = """
import dask, locpipe
with dask.config.set(num_workers=2), locpipe.config.override(n_threads=2, memory_limit="16 GiB"):
"""


def lasting(plan: str) -> list[str]:
    """Lines of a plan but for what the machine has its part in: memory and time."""
    lines = plan.strip().splitlines()
    return [line for line in lines if not line.lstrip().startswith(("memory", "time"))]


def test_code_runs_and_prints_the_plan(repo):
    text = (repo / "README.md").read_text(encoding="utf-8")
    code = AROUND + textwrap.indent(CODE.search(text)["code"], "    ")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    shown = PLAN.search(text)["plan"]
    assert lasting(done.stdout) == lasting(shown)
    assert len(done.stdout.splitlines()) == len(shown.splitlines()) == len(lasting(shown)) + 2
