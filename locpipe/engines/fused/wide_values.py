"""Values as the loops take them, and whether float32 has seen enough of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from locpipe.blocks import row_slices
from locpipe.engines.fused import wide_compiled as loops
from locpipe.engines.fused.memory import aligned
from locpipe.engines.fused.panels import Panel
from locpipe.engines.fused.wide_meet import panel_of_values
from locpipe.engines.fused.wide_rows import Numbers

__all__ = ["Packed", "Values", "no_values"]

_ROWS = 2048
_SINGLE_RANGE = 1e15
"""Values of up to this size, and down to its inverse, may be kept in float32."""


class Packed(NamedTuple):
    """Values in panels (n_panels, n_keys, columns of a panel), and `shares` (n_keys,)."""

    array: Numbers
    shares: Numbers
    panel: Panel | None


def no_values(small: Any) -> Packed:
    """What stands for values where masses are all that is asked."""
    return Packed(np.empty((0, 0, 1), dtype=small), np.empty(0, dtype=small), None)


@dataclass(frozen=True, eq=False)
class Values:
    """Values of the keys (n_keys, n_outputs), of any floating type."""

    array: Numbers

    @cached_property
    def sizes(self) -> Numbers:
        """Of the largest value of each output (n_outputs,)."""
        return self._sizes[0]

    @cached_property
    def _sizes(self) -> tuple[Numbers, Numbers]:
        """The largest size of each output, and the sum of all (n_outputs,)."""
        real: Any = np.float32 if self.array.dtype == np.float32 else np.float64
        n_outputs = self.array.shape[1]
        largest, total = np.zeros(n_outputs, dtype=real), np.zeros(n_outputs)
        for part in row_slices(len(self.array), _ROWS):
            values = np.ascontiguousarray(self.array[part], dtype=real)
            loops.sizes_by_column(real)(values, largest, total)
        return largest, total

    @cached_property
    def usual(self) -> float:
        """How much more of any output's largest size is usual than its key's least share."""
        largest, total = self._sizes
        some, shares = largest > 0, float(np.sum(self.shares(np.float64)))
        if not some.any() or shares == 0:
            return 0.0
        return float(np.min(total[some] / largest[some])) / shares

    @property
    def fit_single(self) -> bool:
        """Whether float32 may keep them."""
        sizes = self.sizes
        return bool(np.all((sizes > 1 / _SINGLE_RANGE) & (sizes < _SINGLE_RANGE) | (sizes == 0)))

    def rows(self, small: Any) -> Numbers:
        """The values, contiguous."""
        return np.ascontiguousarray(self.array, dtype=small)

    def packed(self, small: Any) -> Packed:
        """The values in panels."""
        n, n_outputs = self.array.shape
        panel = panel_of_values(small, n_outputs)
        n_panels = -(-n_outputs // panel.columns)
        out = aligned((n_panels, n, panel.columns), small)
        for p in range(n_panels):
            columns = self.array[:, p * panel.columns : (p + 1) * panel.columns]
            out[p, :, : columns.shape[1]] = columns
        return Packed(out, self.shares(small), panel)

    def shares(self, small: Any) -> Numbers:
        """Of each key's values in the largest ones, the least share (n_keys,).

        Outputs without values do not count.
        """
        none, real = self.sizes == 0, cast(Any, self.sizes.dtype.type)
        factors = (1 / np.where(none, 1, self.sizes.astype(np.float64))).astype(real)
        shares = np.empty(len(self.array), dtype=small)
        look: Any = loops.least_shares(real, small)
        for part in row_slices(len(shares), _ROWS):
            values = np.ascontiguousarray(self.array[part], dtype=real)
            look(values, factors, none.astype(real), shares[part])
        return shares
