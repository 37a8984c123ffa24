"""Compiled functions that stand alone, of this folder.

The walk over trees is one function for all profiles; what depends on the profile is handed to it
as addresses, so that a new kernel costs a second to compile and not ten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from locpipe.engines.fused.compiled import compiled

__all__ = ["address_of", "call_log_weight", "call_sums", "entry"]


def entry(name: str, signature: Any, function: Callable[..., Any]) -> Any:
    """`function` compiled for a signature; the name says what its closure holds."""
    return compiled(f"pruned_{name}", signature, function)


def address_of(function: Any) -> int:
    """Where the code of an `entry` lies; it stays there while the entry lives."""
    (found,) = function.overloads.values()
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


def _caller(result: Any) -> Any:
    """Calls the code at an address with a tuple of arguments, which must be of its signature."""

    @intrinsic
    def call(context: Any, address: Any, arguments: Any) -> Any:
        def generate(target: Any, builder: Any, signature: Any, given: Any) -> Any:
            kind = target.call_conv.get_function_type(result, arguments.types)
            code = builder.inttoptr(given[0], kind.as_pointer())
            values = cgutils.unpack_tuple(builder, given[1])
            _, found = target.call_conv.call_function(
                builder, code, result, arguments.types, values
            )
            return found

        return result(types.int64, arguments), generate

    return call


call_log_weight = _caller(types.float64)
call_sums = _caller(types.void)
