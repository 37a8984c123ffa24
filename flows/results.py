"""What a finished run says of itself: numbers, clusters, files; read from its store."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from locpipe.errors import InputError, StoreError
from locpipe.store import RunStatus, open_result, read_status

__all__ = ["Cluster", "Report", "look", "picture_path", "read_arrays", "read_report"]


EXAMPLE: Final = "output/embed-corpus/map.zarr"


@dataclass(frozen=True)
class Cluster:
    """One cluster of the map.

    Attributes
    ----------
    name : str
        Its densest members.
    size : int
        Members.
    density : float
        At its mode, 1 / map units^d.
    """

    name: str
    size: int
    density: float


@dataclass(frozen=True)
class Report:
    """A finished run, as shown to a person.

    Attributes
    ----------
    output : str
        The store.
    picture : Path
        The picture beside it.
    flow : str
    fingerprint : str
    n_dots : int
    attrs : mapping
        Small results, such as stress and seconds.
    clusters : tuple of Cluster
        Largest first.
    arrays : mapping of str to str
        Name of each result, and its dimensions, shape and type in words.
    """

    output: str
    picture: Path
    flow: str
    fingerprint: str
    n_dots: int
    attrs: Mapping[str, Any]
    clusters: tuple[Cluster, ...]
    arrays: Mapping[str, str]


def picture_path(output: str) -> Path:
    """Return where the picture of a store goes: beside it, under its name.

    Raises
    ------
    InputError
        If it has no name: the root folder.

    Examples
    --------
    >>> picture_path("output/embed-corpus/map.zarr").as_posix()
    'output/embed-corpus/map.png'
    """
    path = _local(output)
    if path.name in ("", ".."):  # such as "."
        path = path.resolve()
    if not path.name:
        raise InputError(f"The output must be a folder with a name, got {output!r}; choose one.")
    return (
        path.with_suffix(".png") if path.suffix == ".zarr" else path.with_name(path.name + ".png")
    )


def _local(output: str) -> Path:
    return Path(output.removeprefix("file://")).expanduser()


def read_arrays(output: str, *names: str) -> dict[str, Any]:
    """Read results of a store that is complete.

    Parameters
    ----------
    output
        The store.
    *names
        Results; those that the store does not have are left out.
    """
    result = open_result(_local(output))
    return {name: result.read(name) for name in names if name in result.arrays}


def look(output: str) -> RunStatus | None:
    """Return how far the run in a store is, to a person who wants to see a result.

    Raises
    ------
    StoreError
        If the folder is there and is no store, or is a damaged one.
    """
    folder = _local(output)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "zarr.json").is_file():
        raise StoreError(
            f"{output!r} must be a locpipe store, and is a folder without one; give the folder that"
            f" a run wrote as its output, such as {EXAMPLE}."
        )
    status = read_status(output)
    if status is not None and status.damage:
        raise StoreError(status.damage)
    return status


def read_report(output: str) -> Report:
    """Read what a finished run says of itself.

    Raises
    ------
    StoreError
        If nothing is there, or the run is not finished.
    """
    status = read_status(output)
    if status is None or not status.complete:
        state = "holds no run" if status is None else "holds a run that is not finished"
        raise StoreError(f"{output} {state}, so there is nothing to show; run it first.")
    found = read_arrays(output, "cluster_name", "cluster_size", "cluster_density", "density")
    rows = zip(found["cluster_name"], found["cluster_size"], found["cluster_density"], strict=True)
    clusters = (Cluster(str(name), int(size), float(density)) for name, size, density in rows)
    return Report(
        output=output,
        picture=picture_path(output),
        flow=status.flow,
        fingerprint=status.fingerprint,
        n_dots=len(found["density"]),
        attrs=status.attrs,
        clusters=tuple(sorted(clusters, key=lambda cluster: -cluster.size)),
        arrays=_describe_arrays(output),
    )


def _describe_arrays(output: str) -> dict[str, str]:
    described = {}
    for name, spec in open_result(_local(output)).arrays.items():
        sizes = zip(spec.dims, spec.shape, strict=True)
        dims = ", ".join(f"{dim}: {size}" for dim, size in sizes)
        described[name] = f"({dims}) {'text' if spec.is_text else np.dtype(spec.dtype)}"
    return described
