"""Whether a few directions would rule out most keys: tried on a sample of them."""

from __future__ import annotations

import numpy as np

from locpipe.engines.ranked.projection import Frame, Shadow

__all__ = ["GATHERED", "would_pay"]

GATHERED = 10
"""What a feature of a single pair costs, in features of a matrix product."""
_SCANNED = 60
"""What a look at a pair's score costs, in the same unit."""
_ROWS = 64
_LOOSE = 1.1
"""Squared limits on the way, by those in the end."""
_WORTH = 0.6
"""Share of the cost of all products that a projection may cost."""


def would_pay(frame: Frame, sample: np.ndarray, widths: tuple[int, int], k: int, n: int) -> bool:
    """Whether sifting by shadows of some widths is expected to be much cheaper than products.

    Parameters
    ----------
    frame : Frame
    sample : array (n_sample, n_features)
        Of the keys, evenly.
    widths : pair of int
    k, n : int
        Neighbours wanted, and keys in all.

    Notes
    -----
    Of a sample, the neighbour whose rank is in proportion is about as near as the k-th of all.
    """
    if not frame.in_range or len(sample) <= _ROWS:
        return False
    coarse, fine = frame.shadows(sample, widths)
    moved = ((sample - frame.centre) * frame.scale).astype(np.float32)
    whole = Shadow(moved, np.square(moved).sum(axis=1), np.zeros(len(moved)))
    squares = _from_first(whole)
    rank = max(1, round(k * len(sample) / n))
    limit = np.partition(squares, rank, axis=1)[:, rank, None] * _LOOSE  # each is its own first
    shares = [float((_from_first(shadow) <= limit).mean()) for shadow in (coarse, fine)]
    d = sample.shape[1]
    singles = shares[0] * fine.rows.shape[1] + shares[1] * d
    return bool(coarse.rows.shape[1] + _SCANNED + GATHERED * singles < _WORTH * d)


def _from_first(shadow: Shadow) -> np.ndarray:
    """Squared distances of some rows from all, roughly."""
    rows = shadow.rows[:_ROWS], shadow.squares[:_ROWS, None]
    squares: np.ndarray = rows[1] + shadow.squares - 2.0 * (rows[0] @ shadow.rows.T)
    return squares
