"""The JSON of a store: the root group's attributes, and the done record of each result.

Both are Zarr v3 groups, written whole and atomically by the driver.  They are read and written
as JSON, without zarr, so that a status costs a millisecond and a record a fraction of one.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import cache
from importlib import metadata
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locpipe.errors import InputError, StoreError
from locpipe.store.folder import Folder

__all__ = ["Done", "read_done", "read_root", "to_json", "write_done", "write_root"]

SCHEMA = "locpipe-run"
SCHEMA_VERSION = 1
RUN = "_run"
_ROOT = "zarr.json"
_RECORDED = ("locpipe", "numpy", "scipy", "scikit-learn", "zarr", "dask", "distributed")

_TYPES = {
    "flow": str,
    "parameters": dict,
    "plan": dict,
    "fingerprint": str,
    "versions": dict,
    "created": str,
    "complete": bool,
}

_log = logging.getLogger(__name__)


def to_json(value: object) -> Any:
    """A value as JSON holds it; numbers that compare equal come out the same.

    Raises
    ------
    InputError
        If the value is none of: None, bool, number, str, path, sequence, mapping, dataclass.

    Examples
    --------
    >>> to_json({"bandwidth": np.float64(1.0), "dims": (2, 3), "tol": float("inf")})
    {'bandwidth': 1, 'dims': [2, 3], 'tol': 'Infinity'}
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return to_json(value.tolist())
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [to_json(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return to_json(asdict(value))
    raise InputError(
        f"a stored value must be a number, text, list or mapping of these, got {value!r} of type "
        f"{type(value).__name__}"
    )


def _number(value: float) -> int | float | str:
    if isinstance(value, int):
        return int(value)
    if not math.isfinite(value):  # JSON has no such numbers; Zarr writes them as these words
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return int(value) if value.is_integer() else float(value)


@cache
def software_versions() -> dict[str, str]:
    """Versions of what computes the numbers."""
    versions = {}
    for name in _RECORDED:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def read_root(folder: Folder) -> dict[str, Any] | None:
    """Attributes of a run's root group; None if there is nothing at all.

    Raises
    ------
    InputError
        If a file stands at the path.
    StoreError
        If the folder holds something else, or a store of another schema version.

    Notes
    -----
    Where the root is torn, and the folder still is a locpipe store, the attributes consist of
    ``damage``: what is wrong, in one sentence.
    """
    if folder.is_file():
        raise InputError(f"a store is a folder, but {folder.path} is a file; choose another path")
    if folder.is_empty():
        return None
    content = folder.read(_ROOT) or b""
    attributes = _attributes(content)
    if attributes is None or attributes.get("schema") != SCHEMA:
        if _is_ours(folder, content):
            return {"damage": _damage(folder, "it is torn")}
        raise StoreError(
            f"{folder.path} must be a locpipe store or an empty folder, but holds something else; "
            "choose another path (locpipe does not delete what it did not write)"
        )
    version = attributes.get("schema_version")
    if not isinstance(version, int):
        return {"damage": _damage(folder, f"its schema_version is {version!r}")}
    if version != SCHEMA_VERSION:
        raise StoreError(
            f"{folder.path} has schema version {version}, and this "
            f"locpipe reads version {SCHEMA_VERSION}; use the locpipe that wrote it or another path"
        )
    wrong = [] if attributes.get("replacing") else _wrong(attributes)
    return {"damage": _damage(folder, f"it lacks {wrong}")} if wrong else attributes


def write_root(
    folder: Folder, attributes: Mapping[str, Any], arrays: Sequence[str] | None = None
) -> None:
    """Write the root group; `arrays` are those to be named in consolidated metadata.

    Without `arrays` there is no consolidated metadata, so an array that is added later can never
    be hidden by it.
    """
    group = _group(attributes)
    if arrays is not None:
        found = {name: json.loads(folder.read(f"{name}/{_ROOT}") or b"null") for name in arrays}
        group["consolidated_metadata"] = {
            "kind": "inline",
            "must_understand": False,
            "metadata": found,
        }
    folder.write(_ROOT, _bytes(group), sync=True)
    if not folder.exists(f"{RUN}/{_ROOT}"):
        folder.write(f"{RUN}/{_ROOT}", _bytes(_group({})), sync=False)


@dataclass(frozen=True, eq=False)
class Done:
    """Which blocks of a result are done; kept by the driver only.

    Attributes
    ----------
    kind : {"array", "parts"}
    mask : bool array (n_blocks,)
    description : str
        Of parts; an array keeps its own.
    """

    kind: str
    mask: NDArray[np.bool_]
    description: str = ""

    @property
    def count(self) -> tuple[int, int]:
        """Blocks done, and all blocks."""
        return int(self.mask.sum()), self.mask.size


def write_done(folder: Folder, name: str, done: Done) -> None:
    """Write a done record.

    Atomic, so a killed driver leaves the old record or the new one.  Not brought to the disk
    itself (fsync): the data were, before, so a power cut that loses the newest record costs the
    time of its block, never a number.
    """
    edges = np.flatnonzero(np.diff(done.mask, prepend=False, append=False))
    attributes = {
        "kind": done.kind,
        "n_blocks": done.mask.size,
        "description": done.description,
        "done": edges.reshape(-1, 2).tolist(),
    }
    folder.write(f"{RUN}/{name}/{_ROOT}", _bytes(_group(attributes)), sync=False)


def read_done(folder: Folder, name: str) -> Done | None:
    """Read a done record; None where there is none.

    A record that cannot be read counts as none, which costs time, never a number.
    """
    content = folder.read(f"{RUN}/{name}/{_ROOT}")
    if content is None:
        return None
    try:
        attributes = json.loads(content)["attributes"]
        mask = np.zeros(int(attributes["n_blocks"]), dtype=bool)
        for start, stop in attributes["done"]:
            mask[start:stop] = True
        return Done(str(attributes["kind"]), mask, str(attributes.get("description", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        _log.warning(
            "the done record of %r in %s is torn: its blocks count as not done", name, folder.path
        )
        return None


def result_names(folder: Folder) -> list[str]:
    """Names of the results that a run has begun."""
    return folder.children(RUN)


def _group(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": dict(attributes)}


def _bytes(document: Mapping[str, Any]) -> bytes:
    # ASCII, because paths may hold bytes that are not valid text in any encoding
    return json.dumps(document, allow_nan=False).encode()


def _attributes(content: bytes) -> dict[str, Any] | None:
    """Attributes of a group; None if its JSON is torn."""
    try:
        attributes = json.loads(content).get("attributes", {})
    except (ValueError, AttributeError):
        return None
    return attributes if isinstance(attributes, dict) else None


def _is_ours(folder: Folder, content: bytes) -> bool:
    """Whether a folder with a root that cannot be read is a locpipe store all the same."""
    return SCHEMA.encode() in content or folder.exists(f"{RUN}/{_ROOT}")


def _wrong(attributes: Mapping[str, Any]) -> list[str]:
    """Names of the root attributes that are missing or of another type."""
    return [name for name, kind in _TYPES.items() if not isinstance(attributes.get(name), kind)]


def _damage(folder: Folder, reason: str) -> str:
    return (
        f"{folder.path / _ROOT} must be JSON that describes a locpipe run, but {reason}; "
        "restore it from a copy, or compute the store again with if_exists=replace"
    )
