"""Threads of our own, for compiled functions that run without the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

from bmrm.kernels.blas_threads import one_thread

P = TypeVar("P")
R = TypeVar("R")


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(usable_core_numbers())


def usable_core_numbers() -> set[int]:
    """The cores that this process may run on, as the system numbers them."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


class Workers:
    """At most `threads` threads, the calling one among them; started at the first use.

    Parameters
    ----------
    threads : at least 1; None means the usable cores.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = max(1, usable_cores() if threads is None else threads)
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._team = Lock()

    def map(self, task: Callable[[P], R], pieces: Sequence[P]) -> list[R]:
        """The results of `task` for each piece, in order; a piece a thread. The first error is raised."""
        if len(pieces) == 1:
            return [task(pieces[0])]
        if self.threads == 1:
            return [task(piece) for piece in pieces]
        # A forked child inherits the pool but not its threads.
        if self._pool is None or self._process != os.getpid():
            self._pool = ThreadPoolExecutor(self.threads - 1, thread_name_prefix="bmrm")
            self._process = os.getpid()
        with one_thread():
            others = [self._pool.submit(task, piece) for piece in pieces[1:]]
            first = task(pieces[0])
            return [first, *(other.result() for other in others)]

    def team(self, task: Callable[[int], R], count: int) -> list[R]:
        """The results of `task` for 0, 1, ..., in order, all of which run at once and may wait for one another.

        `count` is at most `threads`. Two teams at a time could wait for threads that the other has.
        """
        with self._team:
            return self.map(task, range(count))
