"""From dots to their density, on the dots and on a grid, and to clusters named by dense words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from locpipe.flows.steps.job import Work
from locpipe.methods import KernelDensity, MeanShift
from locpipe.store import ArraySpec

__all__ = ["clusters", "density", "names_of_clusters"]

Floats = NDArray[np.float64]

AUTO_SHARE: Final = 0.35  # of Scott's bandwidth: Scott's suits one bump, and a map has many
GRID_BLOCKS: Final = 8
MARGIN: Final = 3.0  # bandwidths around the dots; beyond, the density of a Gaussian is nothing
NAMING_WORDS: Final = 6


def bandwidth_of(work: Work, embedding: Floats) -> float:
    """Return the bandwidth in force, in units of the map.

    Notes
    -----
    ``auto`` is `AUTO_SHARE` of Scott's ``s n^(-1/(d+4))`` with s the root mean variance.
    """
    if work.config.bandwidth != "auto":
        return float(work.config.bandwidth)
    n, d = embedding.shape
    scale = float(np.sqrt(embedding.var(axis=0).mean()))
    return AUTO_SHARE * scale * n ** (-1 / (d + 4)) or 1.0


@dataclass(frozen=True)
class _GridRows:
    """Density on some rows of the grid."""

    embedding: Floats
    kernel: str
    bandwidth: float
    x: Floats
    y: Floats
    height: int

    def __call__(self, block: int) -> Mapping[str, Any]:
        rows = self.y[block * self.height : (block + 1) * self.height]
        points = np.stack(np.meshgrid(self.x, rows), axis=-1).reshape(-1, 2)
        estimate = KernelDensity(kernel=self.kernel, bandwidth=self.bandwidth).fit(self.embedding)
        log_density = np.asarray(estimate.score_samples(points))
        return {"density_grid": np.exp(log_density).reshape(len(rows), len(self.x))}


def density(work: Work, row: str) -> None:
    """Store the density at each dot, and for a map of two dimensions on a grid.

    Parameters
    ----------
    work
        The running job; its store has ``embedding``.
    row
        Name of the dots' dimension.
    """
    embedding = work.run.read("embedding")
    h = bandwidth_of(work, embedding)
    work.run.set_attrs(bandwidth=h)
    estimate = KernelDensity(kernel=work.config.kernel, bandwidth=h).fit(embedding)
    n = (len(embedding),)
    spec = ArraySpec(
        "density", (row,), n, n, np.float64, "1 / map units^d", "Density of dots at each dot"
    )
    work.run.put(spec, np.exp(np.asarray(estimate.score_samples(embedding))))
    if embedding.shape[1] == 2:
        _density_grid(work, embedding, h)


def _density_grid(work: Work, embedding: Floats, h: float) -> None:
    size = work.config.grid_size
    low, high = embedding.min(axis=0) - MARGIN * h, embedding.max(axis=0) + MARGIN * h
    x, y = np.linspace(low, high, size, axis=1)
    for name, values in (("grid_x", x), ("grid_y", y)):
        spec = ArraySpec(
            name, (name,), (size,), (size,), np.float64, "map units", "Grid of density"
        )
        work.run.put(spec, values)
    height = -(-size // GRID_BLOCKS)
    work.run.ensure(
        ArraySpec(
            "density_grid",
            ("grid_y", "grid_x"),
            (size, size),
            (height, size),
            np.float64,
            "1 / map units^2",
            "Density of dots on a grid",
        )
    )
    rows = _GridRows(embedding, work.config.kernel, h, x, y, height)
    work.blocks("estimating density", ("density_grid",), rows)


def clusters(work: Work, row: str, labels: NDArray[Any]) -> None:
    """Store the clusters: basins of the density's modes, named by their densest members.

    Parameters
    ----------
    work
        The running job; its store has ``embedding`` and ``density``.
    row
        Name of the dots' dimension.
    labels
        What each dot is called.
    """
    with work.progress.stage("finding clusters"):
        if work.stored("cluster_name"):
            return
        embedding = work.run.read("embedding")
        found = MeanShift(kernel=work.config.kernel, bandwidth=bandwidth_of(work, embedding))
        found.fit(embedding)
        names = names_of_clusters(found.labels_, labels, work.run.read("density"))
        sizes = np.bincount(found.labels_, minlength=len(names)).astype(np.int64)
        n, k = (len(embedding),), (len(names),)
        p = (k[0], embedding.shape[1])
        one = ("cluster",)
        put = work.run.put
        put(ArraySpec("label", (row,), n, n, np.int64, "1", "Cluster of each dot"), found.labels_)
        put(
            ArraySpec("cluster_center", ("cluster", "axis"), p, p, np.float64, "map units", "Mode"),
            found.cluster_centers_,
        )
        put(
            ArraySpec(
                "cluster_density", one, k, k, np.float64, "1 / map units^d", "Density at the mode"
            ),
            found.mode_density_,
        )
        put(ArraySpec("cluster_size", one, k, k, np.int64, "1", "Dots"), sizes)
        put(
            ArraySpec("cluster_name", one, k, k, str, description="Densest members"),
            np.array(names, dtype=object),
        )


def names_of_clusters(
    members: NDArray[np.int64], labels: NDArray[Any], density: Floats
) -> list[str]:
    """Name each cluster by its densest members, densest first.

    Examples
    --------
    >>> words, density = np.array(["said", "fagin", "cried"]), np.array([2.0, 1.0, 3.0])
    >>> names_of_clusters(np.array([0, 1, 0]), words, density)
    ['cried, said', 'fagin']
    """
    order = np.argsort(-density, kind="stable")
    named = []
    for cluster in range(int(members.max()) + 1):
        inside = order[members[order] == cluster][:NAMING_WORDS]
        named.append(", ".join(str(label) for label in labels[inside]))
    return named
