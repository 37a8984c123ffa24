"""How laws are inherited: a subclass gets its own property test of every law."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import getdoc
from typing import Any, ClassVar, TypeVar

import numpy as np

from locpipe.testing.strategies import Case, cases

try:
    from hypothesis import HealthCheck, given, settings
except ImportError as error:  # pragma: no cover - the tests always have it
    raise ImportError(
        "the laws need hypothesis; install it with: pip install hypothesis"
    ) from error

__all__ = ["Laws", "law"]

Law = TypeVar("Law", bound=Callable[..., None])


def law(share: float = 1.0) -> Callable[[Law], Law]:
    """Mark a method ``(self, case)`` as a law.

    Parameters
    ----------
    share : float
        Part of the profile's `max_examples` to try: less for laws whose examples are slow.
    """

    def mark(function: Law) -> Law:
        function.share = share  # type: ignore[attr-defined]
        return function

    return mark


class Laws:
    """Base of `KernelLaws` and `ReductionLaws`.

    Attributes
    ----------
    share : float
        Factor on the number of examples of every law, for what is slow.
    kinds : tuple of str
        Array kinds to compare with NumPy; default ``("strict", "dask")``.
    fixed_sizes : (int, int), optional
        The one number of queries and of keys to try; default: up to 8 and 12.
    """

    share: ClassVar[float] = 1.0
    kinds: ClassVar[tuple[str, ...]] = ("strict", "dask")
    fixed_sizes: ClassVar[tuple[int, int] | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # hypothesis wants a test of its own per class, and per class the sizes may differ.
        for name, function in _laws(cls):
            setattr(cls, name, _property_test(cls, function))

    @classmethod
    def least_keys(cls) -> int:
        """Fewest keys to try."""
        return 1

    def shown(self, case: Case) -> dict[str, Any]:
        """What is printed of a case that breaks a law, by name."""
        return {}


def _laws(cls: type) -> Iterator[tuple[str, Callable[..., None]]]:
    for name in dir(cls):
        found = getattr(cls, name)
        function = getattr(found, "law", found)
        if hasattr(function, "share") and callable(function):
            yield name, function


def _property_test(cls: type[Laws], function: Any) -> Any:
    @wraps(function)
    def test(self: Laws, case: Case) -> None:
        try:
            function(self, case)
        except Exception as error:
            error.add_note(_story(self, function, case))
            raise

    n_examples = settings().max_examples * function.share * cls.share
    tried: Any = given(case=cases(cls.fixed_sizes, cls.least_keys()))(test)
    tried = settings(
        max_examples=max(1, round(n_examples)),
        deadline=None,  # a first import, or a busy machine, is no failure
        suppress_health_check=[HealthCheck.too_slow],
        report_multiple_bugs=False,  # one clear failure is worth more than a group of them
    )(tried)
    tried.law = function
    return tried


def _story(laws: Laws, function: Any, case: Case) -> str:
    """The law in words, and the rows that break it."""
    lines = [f"The law: {' '.join((getdoc(function) or '').split())}"]
    try:
        shown = laws.shown(case)
    except Exception:  # what cannot be computed for the story is what failed in the law
        shown = {}
    for name, array in shown.items():
        if array is not None:
            text = np.array2string(np.asarray(array), precision=4, threshold=60, edgeitems=3)
            lines.append(f"{name} =\n{text}")
    return "\n".join(lines)


def assert_equal(
    actual: Any, expected: Any, violated: str, rtol: float = 1e-11, atol: float = 1e-12
) -> None:
    """Equal shapes, NaN and infinities, and close elsewhere; or else say what is `violated`."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (
        f"{violated}: the shape is {actual.shape}, not {expected.shape}"
    )
    near = np.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True)
    if not near.all():
        at = tuple(int(i) for i in np.argwhere(~near)[0])
        raise AssertionError(
            f"{violated}: {(~near).sum()} of {near.size} entries differ, the first at {at}, "
            f"{actual[at]!s} instead of {expected[at]!s}"
        )


def assert_same(
    actual: Any, expected: Any, violated: str, rtol: float, atol: float = 1e-300
) -> None:
    """`assert_equal` for each of two results."""
    n, m = len(actual), len(expected)
    assert n == m, f"{violated}: {n} results, not {m}"
    for i, (x, y) in enumerate(zip(actual, expected, strict=True)):
        assert_equal(x, y, f"{violated}: result {i}", rtol, atol)


def assert_value(value: Any, what: str) -> None:
    """A dataclass that equals its copy and hashes as it; or else name the field that cannot."""
    assert is_dataclass(value), f"the {what} must be a dataclass: @dataclass(frozen=True)"
    for field in fields(value):
        held = getattr(value, field.name)
        try:
            hash(held)
        except TypeError:
            raise AssertionError(
                f"the {what} must be hashable, and its field {field.name!r} holds a "
                f"{type(held).__name__}; use a tuple"
            ) from None
    twin = copy(value)
    assert (value, hash(value)) == (twin, hash(twin)), (
        f"the {what} must equal its copy, hash included; leave both to @dataclass(frozen=True)"
    )


@contextmanager
def strict_arrays(what: str) -> Iterator[None]:
    """Inside the block, what array-api-strict refuses is told as what it is."""
    try:
        yield
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(
            f"the {what} fails on array-api-strict ({type(error).__name__}: {error}), so it uses "
            "what NumPy alone has; take all functions from array_namespace(...) of its arrays, "
            'or say kinds = ("dask",)'
        ) from error


def peak_bytes(function: Callable[[], Any]) -> int:
    """Bytes that a call holds at most, beyond what there was."""
    function()  # what is imported or cached at the first call is not counted
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        result = function()
        del result
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
