"""What is being compiled, and how long that has taken: for clocks, and for those who wait.

numba tells of every kernel, of whatever package: nothing here may fail. Loading one from the cache counts as compiling,
too: milliseconds each.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from typing import Any

OURS = "compiled_by_bmrm"
"""Attribute of the compiled functions whose compilation is reported to a waiting user."""
SAY_AFTER = 1.5
"""Seconds of compilation after which it is reported."""


class Compiling:
    """The process's one clock of compilation; times are those of `time.perf_counter`.

    Attributes
    ----------
    seconds : spent so far, without what is under way.
    kernels : compiled so far; those found in the cache do not count.
    now : the kernel being compiled, None where there is none.
    kept : whether kernels are kept on disk.
    speaks : whether the log says so, once, when it takes long; False where something else shows it, or nothing should.
    """

    def __init__(self) -> None:
        self.kernels = 0
        self.now: str | None = None
        self.kept = True
        self.speaks = True
        self.seconds = 0.0
        self._clock: tuple[float, float | None] = 0.0, None  # in one piece: other threads look at it, too
        self._depth = 0
        self._collects = False
        self._litter: set[int] = set()
        self._before = 0
        self._said = False
        self._ours = False

    @property
    def elapsed(self) -> float:
        """`seconds` and what is under way."""
        seconds, since = self._clock
        return seconds if since is None else seconds + time.perf_counter() - since

    def _set(self, seconds: float, since: float | None) -> None:
        self.seconds, self._clock = seconds, (seconds, since)

    def enter(self) -> None:
        """A kernel is asked for; calls nest, in one thread at a time.

        Meanwhile nobody looks for cyclic garbage: of what the compiler makes, little is any until it is done, and
        looking takes a tenth of its time. The first look afterwards, in each generation, belongs to compiling, too: it
        goes through all that the compiler has left, which takes tenths of a second.
        """
        if self._depth == 0:
            self._before = self.kernels
            self._clock = self._clock[0], time.perf_counter()
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1

    def leave(self) -> None:
        """It is there."""
        self._depth -= 1
        if self._depth == 0:
            self._set(self.elapsed, None)
            self.now = None
            if self.kernels > self._before:
                self._litter = {0, 1, 2}
            if self._collects:
                gc.enable()

    def collecting(self, phase: str, info: dict[str, int]) -> None:
        """As of `gc.callbacks`: cyclic garbage is looked for, or was."""
        if self._depth or info["generation"] not in self._litter:
            return
        seconds, since = self._clock
        if phase == "start":
            self._clock = seconds, time.perf_counter()
        elif since is not None:
            self._set(self.elapsed, None)
            self._litter -= set(range(info["generation"] + 1))

    def wait(self, seconds: float) -> None:
        """So long this process has waited for others that compiled."""
        self._set(self.seconds + seconds, self._clock[1])

    def compile(self, kernel: Any) -> None:
        """It was not in the cache and is compiled."""
        self.kernels += 1
        if self._depth <= 1 or self.now is None:  # those within it may be numba's own
            self.now, self._ours = name_of(kernel), hasattr(getattr(kernel, "py_func", kernel), OURS)
        if self.speaks and self._ours and not self._said:
            self._said = True
            alarm = threading.Timer(SAY_AFTER, self._say)
            alarm.daemon = True
            alarm.start()

    def _say(self) -> None:
        if self.now is None or not self._ours:
            self._said = False  # that was quick; the next may not be
        elif self.speaks:
            kept = ", kept for later runs" if self.kept else ""
            logging.getLogger("bmrm").warning("bmrm: compiling kernels (once%s): %s ...", kept, self.now)


COMPILING = Compiling()


def working_clock() -> float:
    """`time.perf_counter` without what was spent on compiling: it stands while that is under way."""
    return time.perf_counter() - COMPILING.elapsed


def name_of(kernel: Any) -> str:
    """The file and function of a compiled function, without the digest of those that are specialised."""
    function = getattr(kernel, "py_func", kernel)
    name = str(function.__name__)
    for compiler in ("_fast_jit_", "_strict_jit_", "_jit_"):
        name = name.partition(compiler)[0]
    return f"{str(function.__module__ or 'unnamed').rpartition('.')[2]}.{name}"  # made by exec: without a module


def listen(kept: bool) -> None:
    """Hear of numba's compilations; called once, when numba has been imported."""
    from numba.core import event

    COMPILING.kept = kept

    class Ear(event.Listener):  # type: ignore[misc]
        """What numba calls at the beginning and the end."""

        def on_start(self, event: Any) -> None:
            if event.kind == "numba:compiler_lock":
                COMPILING.enter()
            else:
                COMPILING.compile(event.data["dispatcher"])

        def on_end(self, event: Any) -> None:
            if event.kind == "numba:compiler_lock":
                COMPILING.leave()

    ear = Ear()
    for kind in ("numba:compiler_lock", "numba:compile"):
        event.register(kind, ear)
    gc.callbacks.append(COMPILING.collecting)
