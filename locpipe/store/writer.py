"""The part of a run that workers hold: it writes blocks, and knows of nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from locpipe.store import arrays, parts
from locpipe.store.folder import Folder
from locpipe.store.schema import PartsSpec, Spec, check_block

__all__ = ["BlockWriter"]


@dataclass(frozen=True)
class BlockWriter:
    """Writes one block or part of a result; small, so that it rides in a graph to the workers.

    Parameters
    ----------
    url : str
        Absolute path of the store.
    spec : ArraySpec or PartsSpec
    """

    url: str
    spec: Spec

    def __call__(self, block: int, data: object) -> None:
        """Write one whole block, durably, but do not record it: that is the driver's part.

        Parameters
        ----------
        block : int
        data : array of the block's shape, or mapping of names to 1-d arrays for a part

        Raises
        ------
        InputError
            If there is no such block, or the data do not fit it.
        StoreError
            If the disk refuses.
        """
        check_block(self.spec, block)
        folder = Folder.at(self.url)
        if isinstance(self.spec, PartsSpec):
            parts.write_part(folder, self.spec.name, block, data)
        else:
            arrays.write_block(folder, self.spec.name, self.spec, block, data)
