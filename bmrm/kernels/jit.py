"""The one decorator for compiled code: free of the GIL, compiled at the first call, kept on disk where that is safe."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

from bmrm.kernels.cache_folder import choose_folder
from bmrm.kernels.compiling import OURS, listen
from bmrm.kernels.loading import KernelCache
from bmrm.kernels.sources import PACKAGE, digest_of, home_of


@cache
def _folder(homes: frozenset[Path]) -> Path | None:
    """Where kernels made from our sources and those in `homes` are kept; None: nowhere."""
    return choose_folder(PACKAGE, digest_of(homes))


CACHE = _folder(frozenset()) is not None
"""Whether compiled kernels are kept on disk."""
listen(CACHE)


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` at its first call; later processes load it from the cache."""
    return _kept(function)


def fast_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `jit`, with sums that may be reassociated and contracted (vectorised); nan and inf keep their meaning."""
    return _kept(function, fastmath={"reassoc", "contract", "nsz", "arcp"})


def strict_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `jit`, for sums that must be rounded as they stand: others take on what `fast_jit` allows their callers."""
    return _kept(function, fastmath=False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `jit`, but copied into every compiled caller: for a few lines in the heart of a loop."""
    return numba.njit(nogil=True, error_model="numpy", inline="always")(function)  # type: ignore[no-any-return]


def specialised(
    template: Callable[..., Any],
    compiler: Callable[[Callable[..., Any]], Callable[..., Any]] = jit,
    /,
    **functions: Callable[..., Any],
) -> Callable[..., Any]:
    """`compiler` of `template`, with compiled `functions` in place of the global names that it calls; cached, too.

    A closure, or a function passed as an argument, would compile anew in every process. Here the copy has a name by
    which the cache knows the `functions`.

    Parameters
    ----------
    template : a plain function of a module.
    compiler : `jit` or `fast_jit`.
    functions : functions made with `jit` or `fast_jit`, by the names that `template` uses.
    """
    code: CodeType = template.__code__  # type: ignore[attr-defined]
    places = [(name, *_place(function.py_func)) for name, function in sorted(functions.items())]  # type: ignore[attr-defined]
    name = f"{code.co_name}_{compiler.__name__}_{hashlib.sha256(repr(places).encode()).hexdigest()[:16]}"
    copy = FunctionType(
        code.replace(co_name=name),
        {**template.__globals__, **functions},  # type: ignore[attr-defined]
        name,
        template.__defaults__,  # type: ignore[attr-defined]
    )
    copy.__qualname__ = name
    copy.__module__ = template.__module__
    return compiler(copy)


@cache
def made(
    template: Callable[..., Any],
    compiler: Callable[[Callable[..., Any]], Callable[..., Any]] = jit,
    /,
    **functions: Callable[..., Any],
) -> Callable[..., Any]:
    """As `specialised`, the same function each time."""
    return specialised(template, compiler, **functions)


def _kept(function: Any, **options: Any) -> Callable[..., Any]:
    """Compiled by numba, in the folder of what it is made from."""
    setattr(function, OURS, True)
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    homes = _homes(function)
    folder = None if homes is None else _folder(homes)
    if folder is None:
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
    kernel = numba.njit(**options)(function)
    kernel._cache = KernelCache(function, folder, bare=not homes)
    return kernel  # type: ignore[no-any-return]


@cache
def _homes(function: FunctionType) -> frozenset[Path] | None:
    """Where the sources are of a function and of the compiled ones that it calls.

    None where their files do not tell what they do: those of a notebook, and closures.
    """
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    inner = [_homes(each.py_func) for each in called if isinstance(each, Dispatcher) and each.py_func is not function]
    home = None if function.__closure__ else home_of(function.__code__.co_filename)
    if home is None or None in inner:
        return None
    return frozenset({home} - {PACKAGE}).union(*(each for each in inner if each is not None))


def _place(function: FunctionType) -> tuple[str, int, str]:
    """Where a function is written."""
    return function.__code__.co_filename, function.__code__.co_firstlineno, function.__qualname__
