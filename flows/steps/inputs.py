"""What a run reads: not where it writes, and the same from its start to its end."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from locpipe.errors import InputError
from locpipe.store import InputDigest, digest_inputs

__all__ = ["Inputs"]

Item = Path | tuple[str, bytes]


@dataclass(frozen=True)
class Inputs:
    """The inputs of a run and what they held when it was prepared.

    Attributes
    ----------
    items : tuple of path or (name, content)
    digests : tuple of InputDigest
    """

    items: tuple[Item, ...]
    digests: tuple[InputDigest, ...]

    @classmethod
    def take(cls, items: Sequence[Item], output: str) -> "Inputs":
        """Digest the inputs of a run that goes to an output.

        Raises
        ------
        InputError
            If one cannot be read, or is part of the output or the other way round.
        """
        for item in items:
            if isinstance(item, Path):
                _refuse_overlap(item, output)
        return cls(tuple(items), digest_inputs(items))

    def check(self) -> None:
        """Look whether the inputs hold what they held.

        Raises
        ------
        InputError
            If one does not.
        """
        for before, now in zip(self.digests, digest_inputs(self.items), strict=True):
            if before != now:
                raise _changed(now.name)

    def check_listing(self, items: Sequence[Item]) -> None:
        """Look whether the inputs begin with those that are about to be read.

        Raises
        ------
        InputError
            If files came or went.
        """
        others = (item for item in items if item not in self.items)
        gone = (item for item in self.items[: len(items)] if item not in items)
        for item in (*others, *gone):
            raise _changed(item if isinstance(item, Path) else item[0])


def _changed(name: object) -> InputError:
    return InputError(f"the input changed while it was read: {name}; run again.")


def _refuse_overlap(item: Path, output: str) -> None:
    """Refuse what `if_exists=replace` would delete, and results that become part of an input."""
    read = Path(os.path.realpath(item))
    written = Path(os.path.realpath(os.path.expanduser(output.removeprefix("file://"))))
    if read.is_relative_to(written) or written.is_relative_to(read):
        raise InputError(
            f"The output {output!r} must not hold an input, nor lie inside one, and the input is"
            f" {str(item)!r}; choose another output."
        )
