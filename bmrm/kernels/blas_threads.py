"""How many threads BLAS and LAPACK start.

Left alone they take every core, for matrices of a hundred columns already, and spin until the last one is ready: next
to other processes, or to threads of our own, a small factor then takes many times as long. One thread is the rule
here, several are for large factors only, and no count is raised above what it was outside.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Any

LARGE = 1000
"""Rows of a matrix from which a factorisation may use several threads: chosen, not measured."""
FLAPACK = "scipy.linalg._flapack"
"""Module with the LAPACK functions for float64 and others; the libraries it is linked with are loaded with it."""
SMALL = 64
"""Rows up to which LAPACK uses one thread by itself."""


@dataclass(frozen=True)
class Allowance:
    """What large factors may have: at most so many threads, and the counts from outside by library."""

    most: int = sys.maxsize
    outside: Mapping[str, int] = field(default_factory=dict)

    def of(self, library: Any, now: int) -> int:
        """The threads of one library, which has so many now."""
        return min(self.most, self.outside.get(library.filepath, now))


Counts = Sequence[tuple[Any, int]]
"""Libraries, and their threads."""

_allowance: ContextVar[Allowance | None] = ContextVar("threads of large factors", default=None)


_NOTHING = nullcontext()


def one_thread(large: int | None = None) -> AbstractContextManager[None]:
    """Within, BLAS computes in the calling thread.

    Parameters
    ----------
    large : what `lapack_threads` may give to a large factor, at least 1; None for as many as outside.
    """
    before = _allowance.get()
    if before is not None and (large is None or before.most <= large):  # it does already
        return _NOTHING
    return _one_thread(Allowance() if before is None else before, large)


@contextmanager
def _one_thread(before: Allowance, large: int | None) -> Iterator[None]:
    counts = _counted()
    outside = {library.filepath: before.of(library, now) for library, now in counts}
    token = _allowance.set(Allowance(min(before.most, large or before.most), outside))
    several = [(library, now) for library, now in counts if now != 1]
    try:
        for library, _ in several:
            library.set_num_threads(1)
        yield
    finally:
        for library, now in several:
            library.set_num_threads(now)
        _allowance.reset(token)


@cache
def lapack() -> Any:
    """The functions of `scipy.linalg.lapack`, without the rest of `scipy.linalg`, whose imports take longer than a fit.

    Imported where they are needed first; an import statement takes as long as the solution of a small system.
    """
    import scipy

    folders = [str(Path(folder) / "linalg") for folder in scipy.__path__]
    found = PathFinder.find_spec(FLAPACK, folders) if FLAPACK not in sys.modules else None
    if found is None or found.loader is None:
        return importlib.import_module("scipy.linalg.lapack")
    module = sys.modules[FLAPACK] = module_from_spec(found)  # scipy.linalg finds it there when it is imported
    found.loader.exec_module(module)
    return module


@contextmanager
def lapack_threads(rows: int) -> Iterator[None]:
    """Within, LAPACK has the threads that a matrix of so many rows is worth; `lapack` must have loaded scipy's."""
    if rows <= SMALL:
        yield
        return
    allowance = _allowance.get() or Allowance()
    with _set(_counted(), allowance.of if rows >= LARGE else lambda library, now: 1):
        yield


@contextmanager
def _set(counts: Counts, wanted: Callable[[Any, int], int]) -> Iterator[None]:
    changed = []
    try:
        for library, before in counts:
            count = wanted(library, before)
            if count != before:
                library.set_num_threads(count)
                changed.append((library, before))
        yield
    finally:
        for library, before in changed:
            library.set_num_threads(before)


def _counted() -> Counts:
    """Each library with the threads that it has: to ask is a call of it, microseconds."""
    return [(library, library.num_threads) for library in _libraries()]


def _libraries() -> list[Any]:
    """Those that numpy has loaded, and scipy where its linear algebra has been imported."""
    return _found(FLAPACK in sys.modules)


@cache
def _found(with_scipy: bool) -> list[Any]:
    """A search among all libraries of the process: milliseconds, so once, and again when scipy's has come."""
    from threadpoolctl import ThreadpoolController

    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found
