"""The one decorator for compiled code: free of the GIL, compiled at the first call, kept on disk where that is safe."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from bmrm.kernels.cache_folder import choose_folder

CACHE = choose_folder(Path(__file__).parent.parent)
"""Whether compiled kernels are kept on disk."""
import numba  # noqa: E402  (reads NUMBA_CACHE_DIR when it is imported)

from bmrm.kernels.blas_check import leave_out_blas  # noqa: E402
from bmrm.kernels.compiling import listen  # noqa: E402

leave_out_blas()
listen(CACHE)


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` at its first call; later processes load it from the cache."""
    return numba.njit(cache=CACHE, nogil=True, error_model="numpy")(function)  # type: ignore[no-any-return]


def fast_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `jit`, with sums that may be reassociated and contracted (vectorised); nan and inf keep their meaning."""
    flags = {"reassoc", "contract", "nsz", "arcp"}
    return numba.njit(cache=CACHE, nogil=True, error_model="numpy", fastmath=flags)(function)  # type: ignore[no-any-return]


def strict_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `jit`, for sums that must be rounded as they stand: others take on what `fast_jit` allows their callers."""
    return numba.njit(cache=CACHE, nogil=True, error_model="numpy", fastmath=False)(function)  # type: ignore[no-any-return]


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

    A closure, or a function passed as an argument, would compile anew in every process. Here the copy is known to the
    cache by a digest of the code of `functions` and of what they call, and of the age of the files.

    Parameters
    ----------
    template : a plain function of a module.
    compiler : `jit` or `fast_jit`.
    functions : functions made with `jit` or `fast_jit`, by the names that `template` uses.
    """
    code: CodeType = template.__code__  # type: ignore[attr-defined]
    name = f"{code.co_name}_{compiler.__name__}_{_digest(functions)}"
    copy = FunctionType(
        code.replace(co_name=name),
        {**template.__globals__, **functions},  # type: ignore[attr-defined]
        name,
        template.__defaults__,  # type: ignore[attr-defined]
    )
    copy.__qualname__ = name
    copy.__module__ = template.__module__
    return compiler(copy)


def _digest(functions: dict[str, Callable[..., Any]]) -> str:
    """Of what decides the meaning of the functions: their code and the age of its files, and what they call in turn."""
    digest = hashlib.sha256()
    pending, seen = sorted(functions.items(), reverse=True), set()
    while pending:
        name, function = pending.pop()
        body: FunctionType = function.py_func  # type: ignore[attr-defined]
        if body in seen:
            continue
        seen.add(body)
        code, file = body.__code__, Path(body.__code__.co_filename)
        age = file.stat().st_mtime_ns if file.exists() else 0
        digest.update(repr((name, code.co_name, code.co_code, code.co_consts, code.co_names, age)).encode())
        called = {each: body.__globals__[each] for each in code.co_names if each in body.__globals__}
        pending += [(each, found) for each, found in called.items() if hasattr(found, "py_func")]
    return digest.hexdigest()[:16]
