"""Compiled functions that stand alone, of this folder.

The walk over trees is one function for all profiles; what depends on the profile is handed to it
as addresses, so that a new kernel costs a second to compile and not five.

Compiling takes as long as there are functions, arguments that are arrays, and counts of references
to them.  So helpers are `inlined`, and entries count none: they get all memory from their caller.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from threading import RLock
from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from locpipe.engines.fused.compiled import compiled

__all__ = ["address_of", "as_numbers", "call_log_weight", "call_sums", "entry", "inlined", "once"]

inlined = njit(inline="always")
"""Copy the function into those that call it, before types are looked at."""

_LOCK = RLock()


def once(build: Callable[..., Any]) -> Callable[..., Any]:
    """What `build` gives for hashable arguments is built once, though threads ask together."""
    kept = lru_cache(maxsize=256)(build)

    @wraps(build)
    def alone(*arguments: Any) -> Any:
        with _LOCK:
            return kept(*arguments)

    return alone


def entry(name: str, signature: Any, function: Callable[..., Any]) -> Any:
    """`function` compiled for a signature; the name says what its closure holds."""
    return compiled(f"pruned_{name}", signature, function, _nrt=False)


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


@intrinsic
def as_numbers(context: Any, memory: Any, first: Any, dtype: Any) -> Any:
    """Rows of an array of bytes as numbers: what `view` does, at a tenth of its compiling."""
    kind = memory.copy(dtype=dtype.dtype)

    def generate(target: Any, builder: Any, signature: Any, given: Any) -> Any:
        source = make_array(memory)(target, builder, given[0])
        numbers = make_array(kind)(target, builder)
        size = target.get_constant(types.intp, kind.dtype.bitwidth // 8)
        shape, strides = (
            cgutils.unpack_tuple(builder, sides) for sides in (source.shape, source.strides)
        )
        place = builder.gep(source.data, [builder.mul(given[1], strides[0])])
        populate_array(
            numbers,
            data=builder.bitcast(place, numbers.data.type),
            shape=[*shape[:-1], builder.udiv(shape[-1], size)],
            strides=[*strides[:-1], size],
            itemsize=size,
            meminfo=source.meminfo,
            parent=source.parent,
        )
        return numbers._getvalue()

    return kind(memory, types.intp, dtype), generate


call_log_weight = _caller(types.float64)
call_sums = _caller(types.void)
