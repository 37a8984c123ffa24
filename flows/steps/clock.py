"""How long a run has computed, over all its parts: it may be stopped and go on."""

import time
from typing import Final

from locpipe.store import Run

__all__ = ["Clock"]

KEEP_SECONDS: Final = 5.0  # a run that is killed loses at most so many, and a block


class Clock:
    """Adds the seconds of this part of a run to those that its store knows of earlier ones.

    Parameters
    ----------
    run
        The open store.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before = float(run.attrs.get("seconds", 0.0))
        self._start = self._kept = time.monotonic()

    def keep(self, *, seldom: bool = False) -> None:
        """Write the seconds so far to the store.

        Parameters
        ----------
        seldom
            Do nothing if they were written a moment ago.
        """
        now = time.monotonic()
        if seldom and now - self._kept < KEEP_SECONDS:
            return
        self._run.set_attrs(seconds=round(self._before + now - self._start, 2))
        self._kept = now
