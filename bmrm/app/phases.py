"""Where a run spends its time, in parts that add up to the elapsed time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from bmrm.kernels.compiling import COMPILING
from bmrm.problem import Iteration

Phase = Literal["start", "load", "solve", "measure", "write", "draw", "prepare"]
SOLVING = ("risk", "master", "waiting", "network", "solver")
NAMES = ("earlier", "start", "load", "prepare", "compile", *SOLVING, "measure", "write", "draw")
"""The parts of `seconds` in summary.json besides `total`, which is their sum."""


class Phases:
    """A stopwatch of one phase at a time; time spent compiling kernels is counted separately.

    Parameters
    ----------
    begin : on the clock of `time.perf_counter`, when the run began; None for now.
    """

    def __init__(self, begin: float | None = None) -> None:
        self._begin = time.perf_counter() if begin is None else begin
        self._compiled = self._compiled_at_first = COMPILING.seconds
        self._since = self._begin
        self._seconds: dict[str, float] = {}
        self._solving = [0.0] * (len(SOLVING) - 1)
        self.earlier = 0.0
        """Seconds of the runs that this one continues."""
        self.name: Phase = "start"
        self.detail = ""
        self.entered = self._begin - self._compiled
        """When the phase began, on the clock of `working_clock`."""

    @contextmanager
    def __call__(self, name: Phase, detail: str = "") -> Iterator[None]:
        """The block belongs to this phase; afterwards the previous phase continues."""
        before = self.name, self.detail
        self._switch(name, detail)
        try:
            yield
        finally:
            self._switch(*before)

    def started(self) -> None:
        """The start of the program is over."""
        self._switch("prepare", "")

    def solved(self, last: Iteration | None, before: Iteration | None = None) -> None:
        """A solver has ended: the last line of its history splits its seconds into parts.

        `before` is the last line of an earlier run that the solver has continued.
        """
        for line, sign in ((last, 1.0), (before, -1.0)):
            if line is not None and last is not None:
                parts = [getattr(line, f"seconds_{name}") for name in SOLVING[:-1]]
                self._solving = [total + sign * part for total, part in zip(self._solving, parts)]

    def seconds(self) -> dict[str, float]:
        """`total` and its parts so far, by `NAMES`."""
        self._switch(self.name, self.detail)
        seconds = {name: self._seconds.get(name, 0.0) for name in NAMES}
        seconds["earlier"] = self.earlier
        seconds["compile"] = COMPILING.seconds - self._compiled_at_first
        solve = self._seconds.get("solve", 0.0)
        known = sum(self._solving)
        scale = min(1.0, solve / known) if known else 1.0
        for name, part in zip(SOLVING, self._solving):
            seconds[name] = scale * part
        seconds["solver"] = max(0.0, solve - scale * known)
        return {"total": sum(seconds.values()), **seconds}

    def _switch(self, name: Phase, detail: str) -> None:
        now, compiled = time.perf_counter(), COMPILING.seconds
        spent = max(0.0, now - self._since - (compiled - self._compiled))
        self._seconds[self.name] = self._seconds.get(self.name, 0.0) + spent
        self._since, self._compiled = now, compiled
        if (name, detail) != (self.name, self.detail):
            self.name, self.detail, self.entered = name, detail, now - compiled


def process_begin() -> float:
    """When this process was started, on the clock of `time.perf_counter`; now if the system does not provide it."""
    now = time.perf_counter()
    try:
        ticks = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now
    return now - age if age > 0.0 else now


def in_words(seconds: Mapping[str, float]) -> str:
    """The parts for the table, largest first, without those that would be shown as 0.00."""
    parts = sorted(((seconds[name], name) for name in NAMES if seconds.get(name, 0.0) >= 0.005), reverse=True)
    return f"{seconds['total']:.2f}" + (
        f" ({', '.join(f'{name} {part:.2f}' for part, name in parts)})" if parts else ""
    )
