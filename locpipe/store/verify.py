"""Which recorded blocks are not what was written: files that are gone, or do not decode."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from locpipe.errors import StoreError
from locpipe.store import arrays, parts
from locpipe.store.folder import Folder
from locpipe.store.schema import ArraySpec, Spec

__all__ = ["lost_blocks", "torn_blocks"]

Mask = NDArray[np.bool_]


def lost_blocks(folder: Folder, spec: Spec, mask: Mask) -> list[int]:
    """Blocks of `mask` without a file: one look-up per block, nothing is read.

    Of a part only its list of arrays is looked for, which is written last.
    """
    blocks = [int(block) for block in np.flatnonzero(mask)]
    if not isinstance(spec, ArraySpec):
        return [block for block in blocks if not folder.exists(parts.part_key(spec.name, block))]
    array = arrays.open_array(folder, spec.name)
    keys = (arrays.chunk_key(array, spec.name, spec.region(block)) for block in blocks)
    return [block for block, key in zip(blocks, keys, strict=True) if not folder.exists(key)]


def torn_blocks(folder: Folder, spec: Spec, mask: Mask) -> list[int]:
    """Blocks of `mask` that are gone or do not decode; every one is read."""
    return [int(block) for block in np.flatnonzero(mask) if _is_torn(folder, spec, int(block))]


def _is_torn(folder: Folder, spec: Spec, block: int) -> bool:
    one = np.arange(spec.n_blocks) == block
    try:
        if lost_blocks(folder, spec, one):
            return True
        if isinstance(spec, ArraySpec):
            array = arrays.open_array(folder, spec.name)
            arrays.read_region(folder, spec.name, array, spec.region(block))
        else:
            parts.read_part(folder, spec.name, block)
    except StoreError:
        return True
    return False
