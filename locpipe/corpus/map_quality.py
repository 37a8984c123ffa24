"""How well a map keeps neighbours, and whether it is a map at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from locpipe import functions
from locpipe.errors import InputError

__all__ = ["MapQuality", "map_quality", "neighbour_overlap", "radius_spread", "ring_warning"]

LEAST_LIFT = 3.0
LEAST_SPREAD = 0.15
# A disc of even density has spread 0.35, a normal cloud 0.52, a ring 0.
MOST_CHANCE = 0.25
SMALL_STRESS = 0.2
# Below it, a ring is the shape of the data: four towns at the corners of a square.


class MapQuality(NamedTuple):
    """How well a map keeps neighbours, and whether it is one.

    Attributes
    ----------
    overlap : float
        Mean share of each word's k nearest dots that are among its k nearest profiles.
    chance : float
        The overlap that chance gives, ``k / (n - 1)``.
    spread : float
        `radius_spread` of the dots.
    stress : float
        Root of the normalised stress: 0 for an exact map, 1 for all dots in one place.
    """

    overlap: float
    chance: float
    spread: float
    stress: float = 1.0

    @property
    def lift(self) -> float:
        """Overlap over chance."""
        return self.overlap / self.chance

    @property
    def warning(self) -> str | None:
        """What is wrong with the map, in one sentence, or None.

        A small map (chance above a quarter) is not faulted for its lift, for which it has no
        room, but for its size.
        """
        if ring := ring_warning(self.spread, self.stress):
            return f"{ring}; use dissimilarity=rank"
        if self.chance > MOST_CHANCE:
            return (
                f"there are too few dots to judge the map (chance alone keeps {self.chance:.0%} of "
                f"the neighbours); give more text, or lower min_count or raise max_words"
            )
        if self.lift < LEAST_LIFT:
            return (
                f"the map keeps neighbours of the context space hardly better than chance "
                f"({self.lift:.1f} times); give more text, or use dissimilarity=rank"
            )
        return None


def ring_warning(spread: float, stress: float) -> str | None:
    """What is wrong with a map whose dots lie on a ring, or None.

    Parameters
    ----------
    spread : float
        `radius_spread` of the dots.
    stress : float
        Root of the normalised stress; where it is small, the data are a ring and the map is right.

    Examples
    --------
    >>> ring_warning(spread=0.0, stress=0.01) is None
    True
    """
    if spread >= LEAST_SPREAD or stress <= SMALL_STRESS:
        return None
    return (
        f"the dots lie on a ring (spread of radii {spread:.2f}, a disc has 0.35; stress "
        f"{stress:.2f}), so their neighbourhoods mean little"
    )


def map_quality(
    embedding: ArrayLike, profiles: ArrayLike, k: int = 20, *, stress: float = 1.0
) -> MapQuality:
    """Judge a map by its neighbours and its shape.

    Parameters
    ----------
    embedding : (n, p)
        The dots.
    profiles : (n, n_features)
        What the dots stand for, row by row.
    k : int, default 20
        Neighbours that are compared; ``n - 1`` if there are fewer words.
    stress : float, default 1
        Root of the normalised stress, where it is known.

    Examples
    --------
    >>> profiles = np.random.default_rng(0).normal(size=(100, 2))
    >>> quality = map_quality(profiles, profiles, k=5)
    >>> quality.overlap, round(quality.lift, 1), quality.warning
    (1.0, 19.8, None)
    """
    n = len(np.asarray(embedding))
    chance = min(k, n - 1) / (n - 1)
    overlap = neighbour_overlap(embedding, profiles, k)
    return MapQuality(overlap, chance, radius_spread(embedding), stress)


def neighbour_overlap(embedding: ArrayLike, profiles: ArrayLike, k: int = 20) -> float:
    """Mean share of each row's k nearest rows that two spaces have in common.

    Parameters
    ----------
    embedding, profiles : (n, p), (n, n_features)
        The same things in two spaces, row by row.
    k : int, default 20
        ``n - 1`` if there are fewer rows; then the overlap is 1.

    Returns
    -------
    float
        Between 0 and 1; chance gives ``k / (n - 1)``.

    Raises
    ------
    InputError
        If the numbers of rows differ or are below 2.

    Examples
    --------
    >>> neighbour_overlap([[0.0], [1.0], [5.0]], [[0.0], [4.0], [5.0]], k=1)
    0.6666666666666666
    """
    spaces = [np.asarray(space, dtype=np.float64) for space in (embedding, profiles)]
    n = len(spaces[0])
    if len(spaces[1]) != n or n < 2:
        raise InputError(
            f"embedding and profiles must have the same rows, at least 2, "
            f"got {n} and {len(spaces[1])}"
        )
    k = min(k, n - 1)
    near = np.zeros((2, n, n), dtype=bool)
    for space, member in zip(spaces, near, strict=True):
        np.put_along_axis(member, functions.nearest(space, space, k, exclude_self=True)[1], True, 1)
    return float(np.count_nonzero(near[0] & near[1]) / (n * k))


def radius_spread(embedding: ArrayLike) -> float:
    """Standard deviation over mean of the distances to the centre; 0 for a ring or a point.

    Parameters
    ----------
    embedding : (n, p)

    Examples
    --------
    >>> radius_spread([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    0.0
    """
    points = np.asarray(embedding, dtype=np.float64)
    radii = np.linalg.norm(points - points.mean(axis=0), axis=1)
    mean = float(radii.mean())
    return float(radii.std()) / mean if mean > 0 else 0.0
