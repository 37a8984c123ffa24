"""What each flow may be told: flat, typed keys; unknown ones are refused.

These models are the one place of names, types, ranges and defaults. The YAML files, the command
line and the parameters of the Prefect flows follow them (tests keep them equal).
"""

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from locpipe.errors import ConfigError

__all__ = ["FLOWS", "Amds", "EmbedCorpus", "RunSettings"]

Positive = Annotated[int, Field(ge=1)]
UpTo1000 = Annotated[int, Field(ge=1, le=1000)]
# Powers of these, one for each dimension of a map, are numbers still.
Width = Annotated[float, Field(ge=1e-9, le=1e9)]
Memory = Annotated[str, Field(pattern=r"^\d+(\.\d+)? ?[kMGT]?i?B$")]


def _plain(value: Any) -> Any:
    """Take a NumPy scalar as the number it is; refuse arrays, which no configuration can hold."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return value.item()
    if hasattr(value, "__array__") or hasattr(value, "__dask_graph__"):
        raise ConfigError(
            "A parameter must be a number, a text or a path, and this is an array; write it with"
            " numpy.save or zarr and give the path."
        )
    return value


class RunSettings(BaseModel):
    """Keys that every flow has: where results go, how a map is made and on what it runs."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    flow: ClassVar[str]
    # These say where and how a run happens; they change no number and no fingerprint.
    neutral: ClassVar[frozenset[str]] = frozenset(
        {
            "output",
            "if_exists",
            "cluster",
            "n_workers",
            "threads_per_worker",
            "memory_limit",
            "address",
            "dashboard",
        }
    )

    output: str = Field("output/run/map.zarr", min_length=1, description="Zarr store to write")
    if_exists: Literal["default", "fail", "resume", "replace"] = Field(
        "default", description="What to do where the output exists"
    )

    n_components: Positive = Field(2, description="Dimensions of the map")
    init: Literal["both", "spectral", "random"] = Field("both", description="How the map starts")
    n_init: UpTo1000 = Field(3, description="Random starts; the least stress of all is kept")
    max_iter: Positive = Field(300, description="Iterations of one start at most")
    tol: float = Field(1e-6, ge=0, description="Stop when stress falls by less than this share")
    random_state: int = Field(0, ge=0, le=2**32 - 1, description="Seed")

    kernel: Literal["gaussian"] = Field("gaussian", description="Kernel of the density")
    bandwidth: Width | Literal["auto"] = Field(
        "auto", description="Width of density and clusters, in units of the map"
    )
    grid_size: Annotated[int, Field(ge=2, le=4096)] = Field(
        128, description="Points of the density grid per axis"
    )

    cluster: Literal["threads", "processes", "address"] = Field(
        "threads", description="Where blocks are computed"
    )
    n_workers: Positive | None = Field(None, description="Workers; null: as the machine allows")
    threads_per_worker: Positive | None = Field(None, description="Threads of one worker")
    memory_limit: Positive | Memory | None = Field(
        None, description="Memory of one worker: bytes, or text such as 2 GiB"
    )
    address: str | None = Field(None, description="Dask scheduler, for cluster: address")
    dashboard: bool | Annotated[int, Field(ge=1, le=65535)] = Field(
        True, description="Serve the Dask dashboard on this machine"
    )

    @model_validator(mode="before")
    @classmethod
    def _plain_values(cls, values: Any) -> Any:
        return {k: _plain(v) for k, v in values.items()} if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _address_fits(self) -> "RunSettings":
        if (self.cluster == "address") != (self.address is not None):
            raise ConfigError("address must be set with cluster: address, and only with it")
        return self

    def numbers(self) -> dict[str, Any]:
        """Return what changes a number: the fingerprint's part of the configuration."""
        return self.model_dump(exclude=set(self.neutral))


class EmbedCorpus(RunSettings):
    """Keys of `embed-corpus`: raw text to an asymmetric word map."""

    flow: ClassVar[str] = "embed-corpus"

    input: str | list[str] = Field("", description="Text files, folders or globs")
    output: str = Field(
        "output/embed-corpus/map.zarr", min_length=1, description="Zarr store to write"
    )

    lowercase: bool = Field(True, description="Whether Oliver and oliver are one word")
    min_count: Positive = Field(5, description="Rarer words are not counted")
    max_words: Annotated[int, Field(ge=2)] = Field(1000, description="Words on the map at most")
    stop_words: str | list[str] = Field("english", description="Words that get no dot")
    window: UpTo1000 = Field(2, description="Words ahead that count as following")

    dissimilarity: Literal["rank", "conditional", "ppmi"] = Field(
        "rank", description="From counts to dissimilarities"
    )
    context_dims: Positive = Field(50, description="Dimensions of the context profiles")
    n_near: Positive = Field(15, description="Neighbours that count in full")
    far_weight: Annotated[float, Field(ge=0, le=1)] = Field(
        0.005, description="Weight of all others"
    )


class Amds(RunSettings):
    """Keys of `amds`: a matrix of dissimilarities to a map."""

    flow: ClassVar[str] = "amds"

    input: str = Field("", description="Zarr array, .npy or .parquet matrix; required")
    output: str = Field("output/amds/map.zarr", min_length=1, description="Zarr store to write")
    weights: str | None = Field(None, description="Matrix of weights, same shape")
    missing: Literal["refuse", "allow"] = Field(
        "refuse", description="Whether NaN is an error or an unknown cell"
    )

    @model_validator(mode="after")
    def _input_given(self) -> "Amds":
        if not self.input:
            raise ConfigError("input must name a matrix: a .npy, .parquet or Zarr array")
        return self


FLOWS: Final[dict[str, type[RunSettings]]] = {model.flow: model for model in (EmbedCorpus, Amds)}
