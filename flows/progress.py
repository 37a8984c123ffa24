"""How far a run is: shares and time left of each stage, shown by whoever listens."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TextIO

from locpipe.flows.stopping import check_stopped

__all__ = ["Progress", "Snapshot", "log_lines", "terminal"]

INTERVAL_SECONDS: Final = {True: 0.1, False: 2.0}  # a terminal is redrawn, a log file grows
LOG_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Snapshot:
    """Where a run stands.

    Attributes
    ----------
    stage, n_stages : int
        The running stage, from 1, of how many.
    title : str
        What the stage does.
    done, total : int
        Blocks of the stage.
    seconds_left : float or None
        Of the stage, from the pace so far; None where there is no pace yet.
    """

    stage: int
    n_stages: int
    title: str
    done: int
    total: int
    seconds_left: float | None

    @property
    def share(self) -> float:
        """Share of the whole run that is done, every stage counted alike."""
        return (self.stage - 1 + self.done / max(1, self.total)) / self.n_stages

    @property
    def finished(self) -> bool:
        """Whether the stage is done."""
        return self.done == self.total

    def __str__(self) -> str:
        """Return one line for a person."""
        line = f"[{self.stage}/{self.n_stages}] {self.title}"
        if self.total > 1:
            line += f": {self.done} of {self.total} ({self.done / self.total:.0%})"
        if self.seconds_left is not None and not self.finished:
            line += f", about {self.seconds_left:.0f} s left"
        return line


class Progress:
    """Counts the stages and blocks of a run and tells its listeners.

    A run that was told to stop (`check_stopped`) stops at the next of its steps.

    Parameters
    ----------
    n_stages
        Stages of the run.
    *listeners
        Called with a `Snapshot` at every change; they decide what to show.
    announce
        Called with the address of the Dask dashboard, once there is one.
    """

    def __init__(
        self,
        n_stages: int,
        *listeners: Callable[[Snapshot], None],
        announce: Callable[[str], None] = lambda link: None,
    ) -> None:
        self.n_stages = n_stages
        self.announce = announce
        self.listeners = listeners
        self._stage = 0

    @contextmanager
    def stage(self, title: str, total: int = 1, done: int = 0) -> Iterator[Callable[[], None]]:
        """Run one stage; call what it yields after each block, where there are several.

        Parameters
        ----------
        title
            What the stage does.
        total, done
            Blocks, and how many of them an earlier run has done.
        """
        self._stage += 1
        start, before = time.monotonic(), done

        def tell(now: int) -> None:
            new = now - before
            left = (time.monotonic() - start) / new * (total - now) if new else None
            shown = Snapshot(self._stage, self.n_stages, title, now, total, left)
            for listener in self.listeners:
                listener(shown)
            check_stopped()

        def advance() -> None:
            nonlocal done
            done += 1
            tell(done)

        tell(done)
        yield advance
        if done < total:
            tell(total)


def terminal(stream: TextIO = sys.stderr) -> Callable[[Snapshot], None]:
    """Return a listener that writes lines: redrawn in place on a terminal, few elsewhere.

    Parameters
    ----------
    stream
        Where to write.
    """
    redraw = stream.isatty()
    last_stage, last_time = 0, 0.0

    def show(now: Snapshot) -> None:
        nonlocal last_stage, last_time
        new_stage = now.stage != last_stage
        if now.finished:
            due = redraw or new_stage or now.total > 1
        else:
            due = new_stage or time.monotonic() - last_time >= INTERVAL_SECONDS[redraw]
        if not due:
            return
        if redraw:
            end = "\n" if now.finished else ""
            stream.write(f"\r\x1b[K{now}{end}")
        else:
            stream.write(f"{now}\n")
        stream.flush()
        last_stage, last_time = now.stage, time.monotonic()

    return show


def log_lines(
    write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
) -> Callable[[Snapshot], None]:
    """Return a listener for a log: each stage's start, then every quarter or ten seconds.

    Parameters
    ----------
    write
        Called with each line.
    clock
        Seconds.
    """
    last_place, last_time = (0, 0), 0.0

    def log(now: Snapshot) -> None:
        nonlocal last_place, last_time
        place = (now.stage, 4 * now.done // max(1, now.total))
        new_stage = now.stage != last_place[0]
        moved = place != last_place or clock() - last_time >= LOG_SECONDS
        if new_stage or (now.total > 1 and moved):
            write(str(now))
            last_place, last_time = place, clock()

    return log
