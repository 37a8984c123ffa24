"""Counts what the laws tried: property tests, examples, seconds."""

import re
from collections import Counter

import pytest

_counted = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Add up one test after its call."""
    report = yield
    if call.when == "call" and item.path.parent.name == "laws":
        text = getattr(item, "hypothesis_statistics", "")
        examples = sum(map(int, re.findall(r"(\d+) passing,", text)))
        _counted.update(tests=bool(text), plain=not text, examples=examples, seconds=call.duration)
    return report


def pytest_terminal_summary(terminalreporter):
    """Print one line."""
    if _counted:
        terminalreporter.write_line(
            "Laws: {tests} property tests, {examples} examples, and {plain} other tests "
            "in {seconds:.0f} s".format(**_counted)
        )
