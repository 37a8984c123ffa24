"""`amds`, step by step: a matrix of dissimilarities to a map; with or without Prefect."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from locpipe.errors import InputError
from locpipe.flows.models import Amds
from locpipe.flows.progress import Progress
from locpipe.flows.steps.inputs import Inputs
from locpipe.flows.steps.job import Job, Work, at_work
from locpipe.flows.steps.matrix import Matrix, open_matrix
from locpipe.flows.wording import map_text
from locpipe.store import ArraySpec, check_output, fingerprint

__all__ = ["STAGES", "compute", "prepare"]

STAGES: Final = 4
CHECKED_AT_ONCE: Final = 16_000_000  # cells; more are checked as they are copied


def prepare(config: Amds) -> Job[Amds]:
    """Look at the matrix and the output, before any work.

    Raises
    ------
    InputError
        If the matrix cannot be mapped, or the output cannot be written.
    StoreError
        If something else is where the output goes.
    """
    from pathlib import Path

    check_output(config.output)
    named = [config.input, *([config.weights] if config.weights else [])]
    inputs = Inputs.take([Path(name).expanduser() for name in named], config.output)
    matrix, weights = _matrices(config)
    m, n = matrix.shape
    if config.n_components >= min(m, n):
        raise InputError(
            f"n_components must be below both sides of the matrix, {m} x {n}, and is"
            f" {config.n_components}; a map of two dimensions is usual."
        )
    if m * n <= CHECKED_AT_ONCE:
        _check_whole(config, matrix, weights)
    return Job(
        config,
        fingerprint(
            {"flow": config.flow, **config.numbers(), "input": None, "weights": None},
            inputs.digests,
        ),
        {},
        {
            "input": f"{m:,} x {n:,} dissimilarities",
            "map": map_text(config),
            "cluster": config.cluster,
            "output": config.output,
        },
        inputs,
    )


def _matrices(config: Amds) -> tuple[Matrix, Matrix | None]:
    matrix = open_matrix(config.input)
    weights = open_matrix(config.weights) if config.weights else None
    if weights is not None and weights.shape != matrix.shape:
        raise InputError(
            f"weights must have the shape of the dissimilarities, {matrix.shape}, and have"
            f" {weights.shape}."
        )
    return matrix, weights


def _check_whole(config: Amds, matrix: Matrix, weights: Matrix | None) -> None:
    from locpipe.methods.dissimilarities import as_cells

    delta = matrix.read()
    _refuse_missing(config, delta)
    as_cells(delta, None if weights is None else weights.read())


def _refuse_missing(config: Amds, delta: Any, first_row: int = 0) -> None:
    if config.missing == "refuse" and np.isnan(delta).any():
        i, j = np.argwhere(np.isnan(delta))[0]
        raise InputError(
            f"dissimilarities must not be NaN, and row {i + first_row}, column {j} is; set"
            " missing=allow if such cells are unknown."
        )


def compute(job: Job[Amds], progress: Progress) -> None:
    """Do the work that the store does not have yet, and mark the store complete.

    Raises
    ------
    InputError
        If a dissimilarity is negative or not a number, or the matrix changes.
    StoreError
        If the output is another run's, or in use.
    """
    from locpipe.flows.steps import density, embedding

    with at_work(job, progress) as work:
        if work.run.complete:
            return
        with work.reading():
            matrix, weights = _matrices(job.config)
            _copy(work, matrix, weights)
        embedding.embed(work, "row", "column", matrix.shape, weighted=weights is not None)
        density.density(work, "row")
        density.clusters(work, "row", matrix.rows)
        _judge(work)
        work.finish()


@dataclass(frozen=True)
class _CopiedRows:
    """Rows of the matrix and of the weights, checked."""

    config: Amds
    sources: Mapping[str, Matrix]
    height: int

    def __call__(self, block: int) -> Mapping[str, Any]:
        start = block * self.height
        rows = {
            name: matrix.read(start, min(start + self.height, matrix.shape[0]))
            for name, matrix in self.sources.items()
        }
        _refuse_missing(self.config, rows["dissimilarity"], start)
        for name, cells in rows.items():
            if np.any(cells < 0) or np.any(np.isinf(cells)):
                raise InputError(
                    f"each {name} must be 0 or more and finite, and rows {start} to"
                    f" {start + len(cells) - 1} hold others."
                )
        return rows


def _copy(work: Work, matrix: Matrix, weights: Matrix | None) -> None:
    """Bring the matrix into the store, so that the result says what it is the result of."""
    from locpipe.flows.steps.corpus import rows_per_block

    sources = {"dissimilarity": matrix} | ({"weight": weights} if weights is not None else {})
    m, n = matrix.shape
    height = rows_per_block(m)
    described = {"dissimilarity": "From row to column", "weight": "How much each one counts"}
    work.run.ensure(
        *(
            ArraySpec(
                name, ("row", "column"), (m, n), (height, n), np.float64, "1", described[name]
            )
            for name in sources
        )
    )
    for name, labels in (("row", matrix.rows), ("column", matrix.columns)):
        size = (len(labels),)
        kind, described_as = (np.int64, "Number") if labels.dtype.kind == "i" else (str, "Name")
        work.run.put(ArraySpec(name, (name,), size, size, kind, description=described_as), labels)
    copied = _CopiedRows(work.config, sources, height)
    work.blocks("reading the matrix", tuple(sources), copied, here=True)


def _judge(work: Work) -> None:
    """Store the shape of the map, and say where it is none."""
    from locpipe.corpus.map_quality import radius_spread, ring_warning

    spread = radius_spread(work.run.read("embedding"))
    warning = ring_warning(spread, work.run.attrs["stress"])
    work.run.set_attrs(radius_spread=spread, warning=warning or "")
