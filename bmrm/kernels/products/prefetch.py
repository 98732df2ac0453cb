"""A hint to the processor, for loops whose random accesses drive the data that they stream out of its reach."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

NEAREST = 3
"""LLVM's locality 3: into the cache nearest to the core."""


@intrinsic
def prefetch(typing_context: Any, array: Any, position: Any) -> Any:
    """Fetch the cache line of `array[position]`, which may lie beyond the end; no value, no effect."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        reading, data_cache = ir.Constant(word, 0), ir.Constant(word, 1)
        builder.call(hint, [address, reading, ir.Constant(word, NEAREST), data_cache])
        return context.get_dummy_value()

    return types.void(array, position), generate
