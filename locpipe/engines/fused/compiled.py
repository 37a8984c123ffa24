"""Compiling with Numba, once per machine: a cache on disk that holds where Numba's own does not.

Loops are closures over what is known at compile time (a profile, a number of features), and each
is one function of one signature.  Its cache file is named by those constants, so several processes
that compile at once write the same bytes to the same place, and its stamp is a hash of all files
of the engines, so that no change of a function that was inlined leaves stale code behind.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name
from numba import njit, types
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic
from numba.misc.appdirs import AppDirs

__all__ = ["as_written", "compiled", "in_any_order", "in_order", "kept", "prefer_wide_vectors"]

_SUMS = {"reassoc", "contract", "nsz", "arcp"}

_INNER: dict[str, Any] = {
    "error_model": "numpy",  # x / 0 is infinite: no branch
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

in_any_order = njit(fastmath=_SUMS, **_INNER)
"""Compile so that a loop of sums may use vectors; infinities keep their meaning."""
in_order = njit(fastmath={"contract", "nsz"}, **_INNER)
"""Compile steps whose order matters: adding and taking away a large number is how one rounds."""
as_written = njit(**_INNER)
"""Compile steps whose every rounding matters."""


def compiled(name: str, signature: Any, function: Callable[..., Any]) -> Any:
    """`function` compiled for one signature, from the cache where it is there.

    Parameters
    ----------
    name : str
        All that the function's closure depends on; a file name.
    signature : numba signature
    function : callable
        May close over numbers, dtypes and other compiled functions.
    """
    function.__qualname__ = name
    options = _INNER | {"no_cpython_wrapper": False}
    dispatcher = kept(njit(nogil=True, fastmath=_SUMS, **options)(function))
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


def kept(dispatcher: Any) -> Any:
    """A function of Numba's whose code is kept on disk, where there is a place for it."""
    if cache_folder() is not None:
        dispatcher._cache = _Cache(dispatcher.py_func)
    return dispatcher


@intrinsic
def prefer_wide_vectors(context: Any) -> Any:
    """Ask LLVM for vectors of 512 bits in the calling function, where the machine has them.

    By default it stops at 256 bits to spare the clock; loops that do nothing but multiply and add
    gain a half and more.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite knows only attributes without a value, and prints any as it is.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return ir.Constant(ir.IntType(8).as_pointer(), None)

    return types.void(), generate


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """The first folder that can be written to; None where there is none."""
    return next(filter(_usable, _folders()), None)


def _folders() -> Iterator[Path]:
    here = Path(__file__).parent
    unique = hashlib.sha256(str(here).encode()).hexdigest()[:16]
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR, f"locpipe-{unique}")
    yield here / "__pycache__"
    yield Path(AppDirs(appname="locpipe", appauthor=False).user_cache_dir, unique)
    yield Path(tempfile.gettempdir(), f"locpipe-{os.getuid()}", unique)


def _usable(folder: Path) -> bool:
    """Whether the folder can be made and written, and by nobody else: code is loaded from it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        return all(_is_ours(place) for place in (folder, folder.parent))
    except OSError:
        return False


def _is_ours(folder: Path) -> bool:
    found = folder.stat()
    return found.st_uid in (0, os.getuid()) and not found.st_mode & stat.S_IWOTH


@lru_cache(maxsize=1)
def _stamp() -> str:
    files = sorted(Path(__file__).parents[1].glob("**/*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


class _Place:
    """What Numba asks of a place for cached code."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Place:
        return cls()

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def ensure_cache_path(self) -> None:
        os.makedirs(self.get_cache_path(), exist_ok=True)

    def get_source_stamp(self) -> str:
        return _stamp()

    def get_disambiguator(self) -> str:
        # Machines that share a folder do not share instructions.
        machine = f"{numba.__version__} {get_host_cpu_name()} {get_host_cpu_features().flatten()}"
        return hashlib.sha256(machine.encode()).hexdigest()[:8]


class _CacheFiles(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Place,)


class _Cache(FunctionCache):  # type: ignore[misc]
    _impl_class = _CacheFiles

    def load_overload(self, signature: Any, target: Any) -> Any:
        try:
            found = super().load_overload(signature, target)
        except Exception:  # A file cut short by a full disk can fail in any way: compile anew.
            return None
        # Two processes that add signatures at once may give both the same file.
        wanted, _ = normalize_signature(signature)
        return found if found is not None and found.signature.args == tuple(wanted) else None

    def save_overload(self, signature: Any, data: Any) -> None:
        with suppress(OSError):
            try:
                super().save_overload(signature, data)
            except OSError:
                raise
            except Exception:  # So can the list of what there is, or it names what is no more.
                self.flush()
                super().save_overload(signature, data)

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        # Numba adds the values of the closure, which never match where they are functions; here
        # the file's name says what they are.
        return signature, codegen.magic_tuple()
