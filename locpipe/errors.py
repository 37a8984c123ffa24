"""Errors raised on purpose; each message says what must hold, what came, what to do."""

__all__ = ["ConfigError", "InputError", "LocpipeError", "StoreError"]


class LocpipeError(Exception):
    """Any error that locpipe raises on purpose."""


class InputError(LocpipeError, ValueError):
    """An argument, array or file does not satisfy what a function needs."""


class ConfigError(LocpipeError, ValueError):
    """A configuration has an unknown key, a wrong type or a value out of range."""


class StoreError(LocpipeError, RuntimeError):
    """A result store is missing, locked, torn, or belongs to another run."""
