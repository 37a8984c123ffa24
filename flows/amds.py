"""The Prefect flow `amds`: a matrix of dissimilarities to a map, in a Zarr store."""

from typing import Any

from prefect import flow

from locpipe.flows.configuration import configure
from locpipe.flows.models import Amds
from locpipe.flows.prefect_side import parameters_of, run_tasks

__all__ = ["amds"]


@flow(name=Amds.flow, validate_parameters=False)
@parameters_of(Amds)
def amds(**parameters: Any) -> str:
    """Map a matrix of dissimilarities, by asymmetric multidimensional scaling.

    Parameters are the keys of `Amds`; `locpipe config amds` prints them, each with a comment.
    Returns the path of the store.
    """
    return run_tasks(configure(Amds.flow, parameters))
