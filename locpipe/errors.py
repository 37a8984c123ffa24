"""Errors raised on purpose; each message says what must hold, what came, what to do."""

__all__ = ["ConfigError", "InputError", "LocpipeError", "StoreError", "shown"]


class LocpipeError(Exception):
    """Any error that locpipe raises on purpose."""


class InputError(LocpipeError, ValueError):
    """An argument, array or file does not satisfy what a function needs."""


class ConfigError(LocpipeError, ValueError):
    """A configuration has an unknown key, a wrong type or a value out of range."""


class StoreError(LocpipeError, RuntimeError):
    """A result store is missing, locked, torn, or belongs to another run."""


def shown(value: object) -> str:
    """What came, in a few words: an array by its shape, a class by its name.

    Examples
    --------
    >>> from locpipe.errors import shown
    >>> shown(2.5), shown("gauss"), shown(int), shown(range(99))
    ('2.5', "'gauss'", 'the class int', 'range(0, 99)')
    """
    shape = getattr(value, "shape", None)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(shape, tuple) and shape:
        return f"an array of shape {shape}"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


_LONGEST = 100
"""Characters of a value that a message shows."""
