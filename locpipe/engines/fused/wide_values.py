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
_LEAST_SIZE = 1 / 4
"""Of the largest value."""
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
    def largest(self) -> Numbers:
        """The largest size of each output's values (n_outputs,)."""
        return self._sizes[0]

    @cached_property
    def sizes(self) -> Numbers:
        """The usual size of each output's values (n_outputs,).

        The root of their mean square, but no less than a share of the largest: rounding is
        independent of values unless few of these are large.
        """
        largest, _, squares = self._sizes
        return np.maximum(np.sqrt(squares / len(self.array)), _LEAST_SIZE * largest)

    @cached_property
    def _sizes(self) -> tuple[Numbers, Numbers, Numbers]:
        """The largest size of each output, and the sums of sizes and squares (n_outputs,)."""
        real: Any = np.float32 if self.array.dtype == np.float32 else np.float64
        n_outputs = self.array.shape[1]
        largest, total = np.zeros(n_outputs, dtype=real), np.zeros(n_outputs)
        squares = np.zeros(n_outputs)
        for part in row_slices(len(self.array), _ROWS):
            values = np.ascontiguousarray(self.array[part], dtype=real)
            loops.sizes_by_column(real)(values, largest, total, squares)
        return largest, total, squares

    @cached_property
    def usual(self) -> float:
        """How much larger the mean share of any output is than that of each key's least one."""
        total, some = self._sizes[1], self.largest > 0
        shares = float(np.sum(self.shares))
        if not some.any() or shares == 0:
            return 0.0
        usual = float(np.min(total[some] / self.sizes[some])) / shares
        # Shares of outputs that have nothing to do with each other are no further apart.
        return min(usual, float(len(total)))

    @property
    def fit_single(self) -> bool:
        """Whether float32 may keep them."""
        sizes = self.largest
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
        # Float64 sees enough of them.
        shares = self.shares if small is np.float32 else np.zeros(n)
        return Packed(out, shares, panel)

    @cached_property
    def shares(self) -> Numbers:
        """Of each key's values in the usual sizes, the least share, float32 (n_keys,).

        Outputs without values do not count, nor do shares above 1.
        """
        none, real = self.largest == 0, cast(Any, self.largest.dtype.type)
        factors = (1 / np.where(none, 1, self.sizes)).astype(real)
        shares = np.empty(len(self.array), dtype=np.float32)
        for part in row_slices(len(shares), _ROWS):
            values = np.ascontiguousarray(self.array[part], dtype=real)
            loops.least_shares(real)(values, factors, none.astype(real), shares[part])
        return shares
