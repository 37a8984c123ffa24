"""From the text of a kernel to its launch: the one module that speaks to the CUDA compiler."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from locpipe.blocks import Array

__all__ = ["OPTIONS", "beside", "launch", "nullable", "source"]

OPTIONS = ("--std=c++17", "--fmad=false")
"""Of the compiler.  Nothing is contracted: the sources write fma() where they mean it."""


@cache
def source(file: str) -> str:
    """Text of one translation unit; it includes nothing, so compiling needs no CUDA headers.

    Parameters
    ----------
    file : {"small.cu", "wide.cu"}
    """
    folder = files("locpipe.engines.cuda")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in ("profiles.cu", file))


@cache
def _kernel(file: str, expression: str) -> Any:
    import cupy

    module = cupy.RawModule(code=source(file), options=OPTIONS, name_expressions=(expression,))
    return module.get_function(expression)


def launch(
    file: str, expression: str, grid: tuple[int, int], n_threads: int, arguments: tuple[Any, ...]
) -> None:
    """Run one kernel on the current device and stream.

    Parameters
    ----------
    file : str
        As of `source`.
    expression : str
        Name of the kernel with its template arguments, such as ``"row_max<0, 2>"``; compiled when
        it is first asked for, and cached on disk by CuPy.
    grid : tuple of 2 int
        Blocks in x and y.
    n_threads : int
        Threads of a block.
    arguments : tuple
        Contiguous CuPy arrays, and NumPy scalars of exactly the parameters' types.
    """
    _kernel(file, expression)(grid, (n_threads,), arguments)


def beside(array: Array) -> AbstractContextManager[Any]:
    """A context in which the current device is the array's; threads begin on the first one."""
    return nullcontext() if isinstance(array.device, str) else array.device


def nullable(array: Array | None) -> Any:
    """The array, or a null pointer for None, which CuPy would not pass on as one."""
    return np.uintp(0) if array is None else array
