"""Numbers in words: one document, two documents, 1.3 kB."""

from typing import Final

from locpipe.flows.models import RunSettings

__all__ = ["bytes_text", "counted", "map_text"]

UNITS: Final = ("kB", "MB", "GB", "TB", "PB")


def counted(n: int, noun: str) -> str:
    """Return a number and its noun, in the plural where there is not one.

    Examples
    --------
    >>> counted(1, "part"), counted(1200, "part"), counted(0, "part")
    ('1 part', '1,200 parts', '0 parts')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def bytes_text(n: int) -> str:
    """Return an amount of bytes in the unit that suits it.

    Examples
    --------
    >>> bytes_text(1), bytes_text(999), bytes_text(1320), bytes_text(8_000_000)
    ('1 byte', '999 bytes', '1.3 kB', '8.0 MB')
    >>> bytes_text(999_999), bytes_text(123_456_789)
    ('1.0 MB', '123 MB')
    """
    if n < 1000:
        return counted(n, "byte")
    size = n / 1000
    for unit in UNITS[:-1]:
        if size < 999.5:
            return _rounded(size, unit)
        size /= 1000
    return _rounded(size, UNITS[-1])


def _rounded(size: float, unit: str) -> str:
    return f"{size:.1f} {unit}" if size < 99.95 else f"{size:,.0f} {unit}"


def map_text(config: RunSettings) -> str:
    """Return what map a run makes, and from what.

    Examples
    --------
    >>> map_text(RunSettings(n_init=1)), map_text(RunSettings(init="spectral", n_components=1))
    ('2 dimensions, starts: spectral and 1 random', '1 dimension, starts: spectral')
    """
    random = f"{config.n_init} random"
    starts = {"both": f"spectral and {random}", "spectral": "spectral", "random": random}
    return f"{counted(config.n_components, 'dimension')}, starts: {starts[config.init]}"
