"""The Prefect flow `embed-corpus`: raw text to an asymmetric map of its words, in a Zarr store."""

from typing import Any

from prefect import flow

from locpipe.flows.configuration import configure
from locpipe.flows.models import EmbedCorpus
from locpipe.flows.prefect_side import parameters_of, run_tasks

__all__ = ["embed_corpus"]


@flow(name=EmbedCorpus.flow, validate_parameters=False)
@parameters_of(EmbedCorpus)
def embed_corpus(**parameters: Any) -> str:
    """Raw text to an asymmetric map of its words, with density and clusters.

    Parameters are the keys of `EmbedCorpus`; `locpipe config embed-corpus` prints them, each with
    a comment. Returns the path of the store.
    """
    return run_tasks(configure(EmbedCorpus.flow, parameters))
