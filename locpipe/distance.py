"""Squared distances that stay right far from the origin."""

from __future__ import annotations

from array_api_compat import array_namespace

from locpipe.blocks import Array

__all__ = ["bounded", "difference", "squared_distances"]

LARGEST_SQUARE = 1e305
"""Squared distances in bandwidths stop here: sums and small multiples stay within float64."""

# Below this width direct differences cost no more than a matrix product.
_DIRECT_FEATURES = 8
_EPS = 2.0**-52


def squared_distances(
    q: Array, k: Array, *, scale: Array | None = None, tolerance: float = 0.0
) -> Array:
    """Squared Euclidean distances (n_q, n_k) in float64.

    Differences are formed first, and scaled then: nothing cancels at any offset, equal rows give
    exactly 0, and equal differences equal distances.  With a `tolerance` > 0, wide data may use a
    matrix product around the tile's centre instead, wherever its absolute error is bounded by
    `tolerance`.

    Parameters
    ----------
    q, k : float64 arrays (n_q, n_features), (n_k, n_features)
    scale : float64 array (n_features,), optional
        Divides the differences.
    tolerance : float
        Absolute error allowed in a squared distance.

    Notes
    -----
    O(n_q n_k n_features) time, O(n_q n_k) memory.
    """
    xp = array_namespace(q, k)
    if tolerance > 0 and q.shape[1] > _DIRECT_FEATURES and q.shape[0] and k.shape[0]:
        centre = xp.mean(k, axis=0)
        q0, k0 = q - centre, k - centre
        q0, k0 = (q0, k0) if scale is None else (q0 / scale, k0 / scale)
        q2, k2 = xp.sum(q0 * q0, axis=1), xp.sum(k0 * k0, axis=1)
        # |fl(x.y) - x.y| <= d eps |x||y| for each of the three terms (Higham 2002, eq. 3.5).
        reach = float(xp.max(q2)) + float(xp.max(k2))
        if 2.0 * q.shape[1] * _EPS * reach <= tolerance:
            total = q0 @ xp.permute_dims(k0, (1, 0))
            total *= -2.0
            total += q2[:, None]
            total += k2[None, :]
            return xp.maximum(total, xp.zeros((), dtype=q.dtype))
    total = _squared_difference(q, k, 0, scale)
    for j in range(1, q.shape[1]):
        total += _squared_difference(q, k, j, scale)
    return total


def difference(q: Array, k: Array, j: int, scale: Array | None = None) -> Array:
    """Differences of feature j (n_q, n_k), divided by its scale."""
    gap = q[:, j][:, None] - k[:, j][None, :]
    if scale is not None:
        gap /= scale[j]
    return gap


def _squared_difference(q: Array, k: Array, j: int, scale: Array | None) -> Array:
    gap = difference(q, k, j, scale)
    gap *= gap
    return gap


def bounded(squared: Array) -> Array:
    """`squared` with `LARGEST_SQUARE` in place of what is larger: no distance is infinite."""
    xp = array_namespace(squared)
    if 0 in squared.shape or float(xp.max(squared)) <= LARGEST_SQUARE:
        return squared
    return xp.minimum(squared, xp.asarray(LARGEST_SQUARE, dtype=squared.dtype))
