"""Which labels fit on a picture, and where: plain geometry in pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["place_labels"]

Floats = NDArray[np.float64]

# Where a label's lower left corner goes: shifts in widths, heights and gaps from its dot.
_SIDES = np.array(
    [
        [0.0, -0.5, 1.0, 0.0],  # right
        [-1.0, -0.5, -1.0, 0.0],  # left
        [-0.5, 0.0, 0.0, 1.0],  # above
        [-0.5, -1.0, 0.0, -1.0],  # below
        [0.0, 0.0, 0.7, 0.7],  # the four corners
        [0.0, -1.0, 0.7, -0.7],
        [-1.0, 0.0, -0.7, 0.7],
        [-1.0, -1.0, -0.7, -0.7],
    ]
)


def place_labels(
    dots: ArrayLike, sizes: ArrayLike, canvas: tuple[float, float], *, gap: float = 4.0
) -> Floats:
    """Place labels beside their dots, first come, first served, none over another.

    Parameters
    ----------
    dots : (n, 2)
        Pixels from the lower left corner.
    sizes : (n, 2)
        Width and height of each label, in pixels.
    canvas : (width, height)
        No label reaches beyond.
    gap : float, default 4
        Pixels between dot and label.

    Returns
    -------
    (n, 2) float64
        Lower left corner of each label; NaN where it did not fit.

    Notes
    -----
    O(n n_placed) time; what fits on a page bounds the number placed.

    Examples
    --------
    >>> place_labels([[10, 10], [14, 10], [500, 10]], [[30, 8]] * 3, (80, 14), gap=2)
    array([[12.,  6.],
           [nan, nan],
           [nan, nan]])
    """
    dots, sizes = (np.asarray(array, dtype=np.float64) for array in (dots, sizes))
    corners = np.full(dots.shape, np.nan)
    taken = np.empty((0, 4))
    for i, (dot, size) in enumerate(zip(dots, sizes, strict=True)):
        low = dot + _SIDES[:, :2] * size + _SIDES[:, 2:] * gap
        boxes = np.hstack([low, low + size])
        free = _inside(boxes, canvas) & ~_overlap(boxes, taken).any(axis=1)
        if free.any():
            side = free.argmax()
            corners[i] = low[side]
            taken = np.vstack([taken, boxes[side]])
    return corners


def _inside(boxes: Floats, canvas: tuple[float, float]) -> NDArray[np.bool_]:
    inside = (boxes[:, :2] >= 0) & (boxes[:, 2:] <= canvas)
    return inside[:, 0] & inside[:, 1]


def _overlap(boxes: Floats, taken: Floats) -> NDArray[np.bool_]:
    """Which boxes (n, 4) overlap which of the taken ones (m, 4): (n, m)."""
    a, b = boxes[:, None], taken[None]
    crossing = (a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:])
    return crossing[..., 0] & crossing[..., 1]
