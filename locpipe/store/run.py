"""A run that is being written: its results, which blocks are done, and its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from locpipe.errors import InputError, LocpipeError, StoreError
from locpipe.store import arrays, parts
from locpipe.store.arrays import AnyArray, TornError
from locpipe.store.folder import Folder
from locpipe.store.lock import Lock
from locpipe.store.metadata import (
    Done,
    read_done,
    result_names,
    to_json,
    write_done,
    write_root,
)
from locpipe.store.schema import ArraySpec, PartsSpec, Spec, check_block, check_together
from locpipe.store.verify import lost_blocks, torn_blocks
from locpipe.store.writer import BlockWriter

__all__ = ["RESERVED", "Run"]

_log = logging.getLogger(__name__)

RESERVED = (
    "schema",
    "schema_version",
    "flow",
    "parameters",
    "plan",
    "fingerprint",
    "versions",
    "created",
    "replacing",
    "complete",
)


class Run:
    """One run's store, open for writing; made by `open_run`, best used in a ``with`` block.

    A block is done once `record` has returned, not when its file exists.  Leaving the ``with``
    block gives the lock back and leaves everything else as it is, for a later run to go on.

    Parameters
    ----------
    folder : Folder
    lock : Lock
    root : mapping
        Attributes of the root group.
    """

    def __init__(self, folder: Folder, lock: Lock, root: Mapping[str, Any]) -> None:
        self._folder = folder
        self._lock = lock
        self._root = dict(root)
        self._specs: dict[str, Spec] = {}
        self._done: dict[str, Done] = {}
        self._guard = threading.Lock()
        for name in result_names(folder):
            self._load(name)

    def __enter__(self) -> Self:
        """Return the run itself."""
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Give the lock back; after a torn file, as a task may have met it, forget its block."""
        try:
            if isinstance(error, TornError):
                with suppress(LocpipeError):  # what was met first is what is told
                    self.verify()
        finally:
            self.close()

    def close(self) -> None:
        """Give the lock back; what is recorded stays."""
        self._lock.release()

    @property
    def url(self) -> str:
        """Absolute path of the store."""
        return str(self._folder.path)

    @property
    def flow(self) -> str:
        """Name of the flow that the run belongs to."""
        return str(self._root["flow"])

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The run's parameters, as JSON holds them."""
        return MappingProxyType(self._root["parameters"])

    @property
    def plan(self) -> Mapping[str, Any]:
        """The plan in force: the stored one where the run is resumed."""
        return MappingProxyType(self._root["plan"])

    @property
    def fingerprint(self) -> str:
        """What the run's numbers depend on, in 16 hexadecimal digits."""
        return str(self._root["fingerprint"])

    @property
    def attrs(self) -> Mapping[str, Any]:
        """What `set_attrs` has stored."""
        return MappingProxyType({k: v for k, v in self._root.items() if k not in RESERVED})

    @property
    def complete(self) -> bool:
        """Whether the run has finished."""
        return bool(self._root["complete"])

    def ensure(self, *specs: Spec) -> None:
        """Create the results that are not there yet.

        Raises
        ------
        InputError
            If results could not stand together in one data set.
        StoreError
            If one is there already with another form, or the run is complete without it.
        """
        wanted = {**self._specs, **{spec.name: spec for spec in specs}}
        check_together([spec for spec in wanted.values() if isinstance(spec, ArraySpec)])
        for spec in specs:
            if spec.name in self._specs:
                _check_same(self.url, self._specs[spec.name], spec)
            else:
                self._create(spec)

    def pending(self, name: str) -> list[int]:
        """Blocks (chunks in C order) or parts that are not recorded, ascending."""
        self._spec(name)
        return [int(block) for block in np.flatnonzero(~self._done[name].mask)]

    def region(self, name: str, block: int) -> tuple[slice, ...]:
        """The cells of one block of an array."""
        return self._array_spec(name).region(block)

    def writer(self, name: str) -> BlockWriter:
        """The callable ``writer(block, data)`` that workers write with."""
        self._open_for("write to")
        return BlockWriter(self.url, self._spec(name))

    def record(self, name: str, *blocks: int) -> None:
        """Record written blocks as done, at once and for good; called by the driver only.

        Raises
        ------
        StoreError
            If the lock was lost: another run may be writing.
        """
        self._open_for("record blocks in")
        for block in blocks:
            check_block(self._spec(name), block)
        self._set_done(name, blocks, True)

    def _set_done(self, name: str, blocks: Sequence[int], value: bool) -> None:
        self._lock.check()
        if not blocks:
            return
        with self._guard:
            mask = self._done[name].mask.copy()
            mask[list(blocks)] = value
            done = replace(self._done[name], mask=mask)
            write_done(self._folder, name, done)
            self._done[name] = done

    def put(self, spec: ArraySpec, data: object) -> None:
        """Create, write and record a whole array.

        Blocks that are recorded already are kept, not written again: after a resume `read` the
        array rather than compute it again.
        """
        self.ensure(spec)
        values = np.asarray(data, dtype=object if spec.is_text else None)
        if values.shape != spec.shape:
            raise InputError(f"{spec.name!r} must have shape {spec.shape}, got {values.shape}")
        todo = self.pending(spec.name)
        if todo:
            write = self.writer(spec.name)
            for block in todo:
                write(block, values[spec.region(block)])
            self.record(spec.name, *todo)

    def read(self, name: str) -> AnyArray:
        """A whole array; text comes as objects of type str.

        Raises
        ------
        StoreError
            If blocks are still to be computed, or a chunk is torn or missing.
        """
        self._array_spec(name)
        if todo := self.pending(name):
            raise StoreError(
                f"{name!r} in {self.url} can be read once all blocks are done, and {len(todo)} of "
                f"{self._specs[name].n_blocks} are not; run it to the end first"
            )
        with self._forgetting(name):
            return arrays.read_array(self._folder, name)

    def read_part(self, name: str, part: int) -> dict[str, AnyArray]:
        """One part of a ragged result.

        Raises
        ------
        StoreError
            If the part is not recorded, or is torn.
        """
        check_block(self._spec(name), part)
        if not self._done[name].mask[part]:
            raise StoreError(
                f"part {part} of {name!r} in {self.url} is not done; compute it before reading it"
            )
        with self._forgetting(name):
            return parts.read_part(self._folder, name, part)

    def verify(self, *names: str) -> dict[str, list[int]]:
        """Read every recorded block, and forget those that are torn or missing.

        These are pending again.  A complete run is left as it is.  `read`, `read_part` and
        leaving the ``with`` block by an error about a torn file do this on their own.

        Parameters
        ----------
        *names : str
            Results; default: all.

        Returns
        -------
        dict of str to list of int
            Forgotten blocks, for each result that has some.

        Raises
        ------
        StoreError
            If there is no such result, or the lock was lost.
        """
        if self.complete:
            return {}
        torn = {
            name: torn_blocks(self._folder, self._spec(name), self._done[name].mask)
            for name in names or self._specs
        }
        for name, blocks in torn.items():
            self._set_done(name, blocks, False)
        return {name: blocks for name, blocks in torn.items() if blocks}

    @contextmanager
    def _forgetting(self, name: str) -> Iterator[None]:
        try:
            yield
        except TornError:
            with suppress(LocpipeError):
                self.verify(name)
            raise

    def set_attrs(self, **attrs: object) -> None:
        """Store small results, such as a stress, as attributes of the root group (JSON).

        Raises
        ------
        InputError
            If a name belongs to the schema, or a value cannot be JSON.
        """
        self._open_for("set attributes of")
        if taken := sorted(set(attrs) & set(RESERVED)):
            raise InputError(
                f"attributes must not be named {taken}: the store's own are; rename them"
            )
        self._lock.check()
        self._root.update(to_json(attrs))
        write_root(self._folder, self._root)

    def discard(self) -> None:
        """Declare all results void: who opens the store next starts over.

        Raises
        ------
        StoreError
            If the run is complete, or the lock was lost.
        """
        self._open_for("discard results of")
        self._lock.check()
        self._root["replacing"] = True
        write_root(self._folder, self._root)

    def finish(self) -> None:
        """Mark the run complete, consolidated metadata and flag in one atomic write.

        Raises
        ------
        StoreError
            If blocks are missing, were recorded without being written, or the lock was lost.
        """
        if self.complete:
            return
        missing = {name: n for name in self._specs if (n := len(self.pending(name)))}
        if missing:
            raise StoreError(
                f"{self.url} is complete once all blocks are recorded, and these are not: "
                f"{missing}; compute them first"
            )
        self._lock.check()
        self._check_written()
        self._folder.sweep()
        names = [name for name, spec in self._specs.items() if isinstance(spec, ArraySpec)]
        root = {**self._root, "complete": True}
        write_root(self._folder, root, arrays=names)
        self._root = root

    def _check_written(self) -> None:
        for name, spec in self._specs.items():
            if isinstance(spec, ArraySpec):
                arrays.check_files(self._folder, name, arrays.open_array(self._folder, name))
            else:
                for part in range(spec.n_parts):
                    parts.array_names(self._folder, name, part)

    def _open_for(self, action: str) -> None:
        if self.complete:
            raise StoreError(
                f"cannot {action} {self.url}: it is complete; use if_exists=replace to compute it "
                "again"
            )

    def _spec(self, name: str) -> Spec:
        if name not in self._specs:
            raise StoreError(
                f"{self.url} has no result {name!r}; it has {sorted(self._specs)}: ensure it first"
            )
        return self._specs[name]

    def _array_spec(self, name: str) -> ArraySpec:
        spec = self._spec(name)
        if not isinstance(spec, ArraySpec):
            raise InputError(f"{name!r} consists of parts; use read_part({name!r}, part)")
        return spec

    def _create(self, spec: Spec) -> None:
        self._open_for(f"add {spec.name!r} to")
        self._lock.check()
        kind = "parts" if isinstance(spec, PartsSpec) else "array"
        about = spec.description if isinstance(spec, PartsSpec) else ""
        done = Done(kind, np.zeros(spec.n_blocks, dtype=bool), about)
        # Whatever stands there has no record that can be read, and may have another form.
        self._folder.remove(spec.name)
        # The record comes first: whatever array of ours exists has one, so `replace` knows it.
        write_done(self._folder, spec.name, done)
        if isinstance(spec, ArraySpec):
            arrays.create_array(self._folder, spec.name, spec)
        self._specs[spec.name] = spec
        self._done[spec.name] = done

    def _load(self, name: str) -> None:
        """Take up a result that an earlier run has begun; one that is torn is begun again."""
        done = read_done(self._folder, name)
        if done is None:
            return
        if done.kind == "parts":
            self._take(PartsSpec(name, done.mask.size, done.description), done)
        elif self._folder.exists(f"{name}/zarr.json"):
            try:
                self._take(arrays.spec_of(self._folder, name, name), done)
            except TornError as error:
                if self.complete:
                    raise
                _log.warning("%r in %s is begun again: %s", name, self.url, error)

    def _take(self, spec: Spec, done: Done) -> None:
        if spec.n_blocks != done.mask.size:
            _log.warning("the done record of %r in %s is another array's", spec.name, self.url)
            return
        self._specs[spec.name] = spec
        self._done[spec.name] = done
        if not self.complete and (lost := lost_blocks(self._folder, spec, done.mask)):
            _log.warning("blocks %s of %r in %s are gone: pending again", lost, spec.name, self.url)
            self._set_done(spec.name, lost, False)


def _check_same(url: str, stored: Spec, wanted: Spec) -> None:
    if differences := wanted.differences(stored):
        raise StoreError(
            f"{wanted.name!r} is in {url} already, in another form: {differences}; use the stored "
            "plan, or if_exists=replace"
        )
