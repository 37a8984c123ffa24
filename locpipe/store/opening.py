"""Opening a store for a run: start it, go on with it, replace it, or say why not."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from locpipe.errors import InputError, StoreError
from locpipe.store.folder import Folder, Url
from locpipe.store.lock import Lock
from locpipe.store.metadata import (
    RUN,
    SCHEMA,
    SCHEMA_VERSION,
    read_root,
    result_names,
    software_versions,
    to_json,
    write_root,
)
from locpipe.store.run import Run

__all__ = ["check_output", "open_run"]

IF_EXISTS = ("default", "fail", "resume", "replace")
_SHOWN_DIFFERENCES = 5

Root = dict[str, Any]


def open_run(
    url: Url,
    *,
    flow: str,
    parameters: Mapping[str, object],
    fingerprint: str,
    plan: Mapping[str, object],
    if_exists: str = "default",
) -> Run:
    """Open a store for writing and take its lock.

    Parameters
    ----------
    url : str or path
        A folder; it and its parents are made if need be.
    flow : str
        Name of the flow.
    parameters : mapping
        What changes the numbers; stored, and compared where fingerprints differ.
    fingerprint : str
        From `fingerprint`.
    plan : mapping
        How the work is cut; on resume the stored one is used instead.
    if_exists : {"default", "fail", "resume", "replace"}
        What to do with a store that is there: "resume" goes on if it is the same run and fails
        otherwise, so does "default"; "replace" deletes it, if it is a locpipe store, but goes on
        with the same run where that is unfinished: the numbers are those of a new start.
        A store whose root is torn is replaced only.

    Returns
    -------
    Run
        With ``run.complete`` True if there is nothing left to do.

    Raises
    ------
    InputError
        If `url` is a file or has a scheme that is not supported.
    StoreError
        If another run is at it, the store is another run's, or the folder is not a store.
    """
    if if_exists not in IF_EXISTS:
        raise InputError(f"if_exists must be one of {', '.join(IF_EXISTS)}, got {if_exists!r}")
    folder = Folder.at(url)
    wanted = _new_root(flow, parameters, fingerprint, plan)
    stored = read_root(folder)  # says what is wrong before a lock file appears beside it
    if stored is not None:
        _check_sound(stored, if_exists)
    lock = Lock(folder)
    try:
        return Run(folder, lock, _settle(folder, wanted, if_exists))
    except BaseException:
        lock.release()
        raise


def check_output(url: Url) -> None:
    """Raise unless a store could be written here; done before work, leaves nothing behind.

    Parameters
    ----------
    url : str or path

    Raises
    ------
    InputError
        If the path, or one of its parents, is a file, cannot be written, or has a scheme that is
        not supported.
    StoreError
        If something else than a locpipe store is there.
    """
    folder = Folder.at(url)
    read_root(folder)
    # The lock stands beside the store, so both places must take files.
    for place in {_existing(folder.path), _existing(folder.path.parent)}:
        _check_writable(folder.path, place)


def _existing(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if place.exists())


def _check_writable(output: Path, place: Path) -> None:
    if not place.is_dir():
        raise InputError(
            f"{output} must be in a folder, but {place} is a file; choose another path"
        )
    try:
        # Only trying tells: permission bits say nothing of read-only mounts, or to root.
        shutil.rmtree(tempfile.mkdtemp(prefix=".locpipe-", dir=place))
    except OSError as error:
        raise InputError(
            f"{output} must be writable, but {place} is not ({error.strerror}); "
            "choose another path or change its permissions"
        ) from error


def _new_root(
    flow: str, parameters: Mapping[str, object], fingerprint: str, plan: Mapping[str, object]
) -> Root:
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "flow": flow,
        "parameters": to_json(parameters),
        "plan": to_json(plan),
        "fingerprint": fingerprint,
        "versions": dict(software_versions()),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "complete": False,
    }


def _settle(folder: Folder, wanted: Root, if_exists: str) -> Root:
    """Bring the folder to where work can go on; the lock is held."""
    stored = read_root(folder)
    if stored is None:
        write_root(folder, wanted)
        return wanted
    _check_sound(stored, if_exists)
    starts_over = if_exists == "replace" and not _unfinished_same_run(stored, wanted)
    if stored.get("replacing") or starts_over:
        _clear(folder)
        write_root(folder, wanted)
        return wanted
    if if_exists == "fail":
        raise StoreError(
            f"{folder.path} must not exist (if_exists=fail), but holds a run of {stored['flow']}; "
            "choose another output, or use if_exists=resume or if_exists=replace"
        )
    _check_same_run(folder, stored, wanted)
    if not stored["complete"]:
        folder.sweep()
        write_root(folder, stored)  # drops consolidated metadata that hides what is added now
    return stored


def _check_sound(stored: Root, if_exists: str) -> None:
    if stored.get("damage") and if_exists != "replace":
        raise StoreError(stored["damage"])


def _clear(folder: Folder) -> None:
    """Delete the results of a run, and nothing that is not its own.

    The root says "replacing" while this goes on, so a run killed here is never resumed.
    """
    mark = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "replacing": True}
    write_root(folder, {**mark, "complete": False})
    for name in result_names(folder):
        folder.remove(name)
    folder.remove(RUN)
    folder.sweep()


def _unfinished_same_run(stored: Root, wanted: Root) -> bool:
    if stored.get("damage"):
        return False
    same_version = stored["versions"].get("locpipe") == wanted["versions"]["locpipe"]
    same_run = (stored["flow"], stored["fingerprint"]) == (wanted["flow"], wanted["fingerprint"])
    return same_run and same_version and not stored["complete"]


def _check_same_run(folder: Folder, stored: Root, wanted: Root) -> None:
    here = f"{folder.path} holds"
    advice = "choose another output, or replace it with if_exists=replace"
    if stored["flow"] != wanted["flow"]:
        raise StoreError(f"{here} a run of {stored['flow']}, not of {wanted['flow']}; {advice}")
    if stored["fingerprint"] != wanted["fingerprint"]:
        raise StoreError(
            f"{here} another run of {stored['flow']} (fingerprint {stored['fingerprint']}, this "
            f"run's is {wanted['fingerprint']}): {_differences(stored, wanted)}; {advice}"
        )
    old, new = stored["versions"].get("locpipe"), wanted["versions"]["locpipe"]
    if old != new and not stored["complete"]:
        raise StoreError(
            f"{here} an unfinished run of locpipe {old}, and this is {new}, which may compute "
            f"other numbers; finish it with locpipe {old}, or replace it with if_exists=replace"
        )


def _differences(stored: Root, wanted: Root) -> str:
    old, new = stored["parameters"], wanted["parameters"]
    found = [
        f"{name} is {old.get(name, 'not set')!r} there and {new.get(name, 'not set')!r} here"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name) or (name in old) != (name in new)
    ]
    if not found:
        return "the parameters agree, so the content of the input differs"
    rest = len(found) - _SHOWN_DIFFERENCES
    return ", ".join(found[:_SHOWN_DIFFERENCES]) + (f", and {rest} more" if rest > 0 else "")
