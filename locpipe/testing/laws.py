"""How laws are inherited: a subclass gets its own property test of every law."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
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


def _laws(cls: type) -> Iterator[tuple[str, Callable[..., None]]]:
    for name in dir(cls):
        found = getattr(cls, name)
        function = getattr(found, "law", found)
        if hasattr(function, "share") and callable(function):
            yield name, function


def _property_test(cls: type[Laws], function: Any) -> Any:
    @wraps(function)
    def test(self: Laws, case: Case) -> None:
        function(self, case)

    n_examples = settings().max_examples * function.share * cls.share
    tried: Any = given(case=cases(cls.fixed_sizes))(test)
    tried = settings(
        max_examples=max(1, round(n_examples)),
        deadline=None,  # a first import, or a busy machine, is no failure
        suppress_health_check=[HealthCheck.too_slow],
        report_multiple_bugs=False,  # one clear failure is worth more than a group of them
    )(tried)
    tried.law = function
    return tried


def assert_same(actual: Any, expected: Any, rtol: float, atol: float = 1e-300) -> None:
    """Equal shapes, equal NaN and infinities, and close elsewhere, for each of two results."""
    assert len(actual) == len(expected), f"{len(actual)} results, not {len(expected)}"
    for x, y in zip(actual, expected, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=atol)
