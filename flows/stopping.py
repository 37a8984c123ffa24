"""Signals that stop a run: remembered, because Python may lose the exception that tells of one.

A signal's handler runs wherever the main thread is. An exception that it raises inside a finalizer
or a callback of a weak reference is printed and dropped, and the run would go on to its end.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["TerminatedError", "check_stopped", "stoppable", "stopped_by"]

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
_received: list[int] = []  # a process has one set of handlers, so it is kept here


class TerminatedError(SystemExit):
    """SIGTERM came: the run ends as it does when interrupted, and leaves nothing behind."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Remember the signals that come within the block, and raise what they mean there."""
    _received.clear()
    before = {number: signal.signal(number, _stop) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _received.clear()


def stopped_by() -> int | None:
    """Return the first signal that came, or None."""
    return _received[0] if _received else None


def check_stopped() -> None:
    """Raise what a signal meant, once more: called wherever a run takes a step.

    Raises
    ------
    KeyboardInterrupt, TerminatedError
        If SIGINT or SIGTERM came.
    """
    if _received:
        raise _meaning(_received[0])


def _stop(number: int, _: object) -> None:
    _received.append(number)
    if number == signal.SIGTERM:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise _meaning(number)


def _meaning(number: int) -> BaseException:
    return TerminatedError(128 + number) if number == signal.SIGTERM else KeyboardInterrupt()
