"""From a stored matrix of dissimilarities to dots: each start of the scaling is a block."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from locpipe.blocks import ArrayPairs, PairSource
from locpipe.flows.models import RunSettings
from locpipe.flows.steps.job import Work
from locpipe.methods.unfolding import start_names, unfold
from locpipe.store import ArraySpec, PartsSpec, ZarrPairs

__all__ = ["embed"]

STARTS = "starts"
CELLS_IN_MEMORY: Final = 16_000_000  # 256 MB with weights; larger matrices are read tile by tile


@dataclass(frozen=True)
class _Start:
    """One start, from the matrix in the store."""

    url: str
    weighted: bool
    names: tuple[str, ...]
    options: Mapping[str, Any]

    def __call__(self, block: int) -> Mapping[str, Any]:
        found = unfold(self._pairs(), self.names[block], **self.options)
        return {
            STARTS: {
                "embedding": found.embedding.ravel(),
                "key_embedding": found.key_embedding.ravel(),
                "stress_history": found.stress_history,
                "normalized_stress": np.array([found.normalized_stress]),
                "converged": np.array([found.converged]),
            }
        }

    def _pairs(self) -> PairSource:
        stored = ZarrPairs(self.url, "dissimilarity", "weight" if self.weighted else None)
        m, n = stored.shape
        if m * n > CELLS_IN_MEMORY:
            return stored
        cells = stored.tile(slice(0, m), slice(0, n))
        return ArrayPairs(*(np.asarray(cell, np.float64) for cell in cells))


def embed(work: Work, row: str, column: str, shape: tuple[int, int], *, weighted: bool) -> None:
    """Store the map of least stress: ``embedding``, ``key_embedding``, ``stress_history``.

    Parameters
    ----------
    work
        The running job; its store has ``dissimilarity`` and, if `weighted`, ``weight``.
    row, column
        Names of the matrix's dimensions.
    shape
        Of the matrix.
    weighted
        Whether cells have weights.
    """
    config: RunSettings = work.config
    names = start_names(config.init, config.n_init)
    options = {
        "n_components": config.n_components,
        "max_iter": config.max_iter,
        "tol": config.tol,
        "random_state": config.random_state,
    }
    work.run.ensure(PartsSpec(STARTS, len(names)))
    work.blocks("scaling", (STARTS,), _Start(work.run.url, weighted, names, options))
    starts = [work.run.read_part(STARTS, block) for block in range(len(names))]
    best = min(range(len(names)), key=lambda i: float(starts[i]["normalized_stress"][0]))
    _put_map(work, starts[best], (row, column), shape)
    work.run.set_attrs(
        stress=float(np.sqrt(starts[best]["normalized_stress"][0])),
        start=names[best],
        iterations=len(starts[best]["stress_history"]) - 1,
        converged=bool(starts[best]["converged"][0]),
    )


def _put_map(
    work: Work, start: Mapping[str, NDArray[Any]], names: tuple[str, str], shape: tuple[int, int]
) -> None:
    described = {
        "embedding": "The dots: where each row lies on the map",
        "key_embedding": "The arrows' heads: where each column lies",
    }
    for (name, description), dim, n in zip(described.items(), names, shape, strict=True):
        size = (n, work.config.n_components)
        spec = ArraySpec(name, (dim, "axis"), size, size, np.float64, "map units", description)
        work.run.put(spec, start[name].reshape(size))
    history = start["stress_history"]
    spec = ArraySpec(
        "stress_history",
        ("iteration",),
        history.shape,
        history.shape,
        np.float64,
        description="Sum of weighted squared errors before the first sweep and after each",
    )
    work.run.put(spec, history)
