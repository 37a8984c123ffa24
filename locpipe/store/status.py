"""A quick look at a store, before anything heavy is imported or started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from locpipe.store.folder import Folder, Url
from locpipe.store.metadata import read_done, read_root, result_names
from locpipe.store.run import RESERVED

__all__ = ["RunStatus", "read_status"]


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Attributes
    ----------
    flow, fingerprint : str
    complete : bool
    parameters, plan, attrs : mapping
        As JSON holds them; `attrs` are small results, such as a stress.
    created : str
        When the run was first started (ISO 8601, UTC).
    done : dict of str to (int, int)
        For each result that was begun: blocks done, and all blocks.
    damage : str
        What is wrong with a store that only if_exists=replace gets going again, in one sentence;
        the other attributes are then empty.
    """

    flow: str
    fingerprint: str
    complete: bool
    parameters: Mapping[str, Any]
    plan: Mapping[str, Any]
    attrs: Mapping[str, Any]
    created: str
    done: dict[str, tuple[int, int]]
    damage: str = ""


def read_status(url: Url) -> RunStatus | None:
    """How far the run in a store is; None if nothing is there.

    Reads a few small files, takes no lock, and imports neither zarr nor Dask.

    Parameters
    ----------
    url : str or path

    Raises
    ------
    InputError
        If the path is a file or has a scheme that is not supported.
    StoreError
        If something else than a locpipe store is there.

    Examples
    --------
    >>> from locpipe.store import read_status
    >>> read_status("no/such/folder") is None
    True
    """
    folder = Folder.at(url)
    root = read_root(folder)
    if root is None or root.get("replacing"):
        return None
    if damage := root.get("damage"):
        return RunStatus("", "", False, {}, {}, {}, "", {}, damage)
    records = {name: read_done(folder, name) for name in result_names(folder)}
    return RunStatus(
        flow=root["flow"],
        fingerprint=root["fingerprint"],
        complete=bool(root["complete"]),
        parameters=root["parameters"],
        plan=root["plan"],
        attrs={key: value for key, value in root.items() if key not in RESERVED},
        created=root["created"],
        done={name: done.count for name, done in records.items() if done is not None},
    )
