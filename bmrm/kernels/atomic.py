"""Numbers by which threads of ours wait for one another, where calls of the operating system would take longer."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from bmrm.kernels.jit import jit

WORD = 8
"""Bytes of a number."""
LINE = 8
"""Numbers in a cache line: those of different threads are this far apart."""
SPINS = 2000
"""Polls, of some nanoseconds each, after which a waiting thread yields its core at every poll."""


@intrinsic
def load(typing_context: Any, array: Any, position: Any) -> Any:
    """`array[position]` of int64, and all that was stored before it was `store`d is seen, too."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(builder.gep(data, [arguments[1]]), "acquire", WORD)

    return types.int64(array, position), generate


@intrinsic
def store(typing_context: Any, array: Any, position: Any, value: Any) -> Any:
    """`array[position] = value` of int64, after all that this thread has stored before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store_atomic(arguments[2], builder.gep(data, [arguments[1]]), "release", WORD)
        return context.get_dummy_value()

    return types.void(array, position, types.int64), generate


@intrinsic
def give_way(typing_context: Any) -> Any:
    """Let other threads have the core (`sched_yield` of POSIX)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        function = builder.module.globals.get("sched_yield") or ir.Function(builder.module, kind, "sched_yield")
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), generate


@jit
def wait(flags, thread, team, number):  # type: ignore[no-untyped-def]
    """Wait until all of the team have come to `number`, which rises from call to call; whether none has given up.

    Parameters
    ----------
    flags : int64, (LINE * (team + 1),), zeros at first: where each thread has come to, and whether one has given up.
    """
    store(flags, LINE * thread, number)
    for other in range(team):
        looks = 0
        while load(flags, LINE * other) < number:
            if load(flags, LINE * team) != 0:
                return False
            looks += 1
            if looks > SPINS:
                give_way()
    return load(flags, LINE * team) == 0


@jit
def give_up(flags, team):  # type: ignore[no-untyped-def]
    """Have all others stop waiting."""
    store(flags, LINE * team, 1)
