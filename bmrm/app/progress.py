"""The progress display of a run: its phase, with a clock that is independent of iterations."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from bmrm.app.phases import Phases
from bmrm.app.report import number
from bmrm.kernels.compiling import COMPILING, working_clock
from bmrm.problem import Iteration

LEAVING = ("seconds", "iteration", "objective", "bound", "passes")
"""Columns beside the gap. On a narrow terminal the last ones are left out first."""

Told = Callable[[int, int], None]
"""Is told how many things are done, of how many."""
WORDS = {
    "start": "starting",
    "load": "reading",
    "solve": "solving",
    "measure": "measuring",
    "write": "writing",
    "draw": "drawing",
    "prepare": "preparing",
}


class Progress:
    """One line that is updated on a terminal; plain lines every few seconds elsewhere; nothing when quiet.

    A callback for a solver, and a context manager around the run. A thread updates the clock.

    Parameters
    ----------
    console : the output.
    quiet : no output.
    phases : the phases of the run.
    every : seconds between two lines where the output is not a terminal.
    first_after : seconds after which a phase, or compilation, is reported there.
    tick : seconds between two looks at the clock there.
    """

    def __init__(
        self,
        console: Console,
        quiet: bool = False,
        phases: Phases | None = None,
        *,
        every: float = 5.0,
        first_after: float = 1.0,
        tick: float = 0.25,
    ) -> None:
        self._console = console
        self._quiet = quiet
        self._phases = Phases() if phases is None else phases
        self._every, self._first_after, self._tick = every, first_after, tick
        self._live: Live | None = None
        self._line: tuple[Iteration, float] | None = None
        self._last = time.monotonic()
        self._told: set[str] = set()
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._compiled_before = COMPILING.elapsed
        self._spoke = True

    def __enter__(self) -> Progress:
        self._spoke, COMPILING.speaks = COMPILING.speaks, False
        if self._quiet:
            return self
        if self._console.is_terminal:
            self._live = Live(
                console=self._console, refresh_per_second=8, transient=True, get_renderable=self._renderable
            )
            self._live.__enter__()
        else:
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        COMPILING.speaks = self._spoke
        self._end.set()
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def __call__(self, line: Iteration) -> None:
        """Record an iteration."""
        if self._quiet:
            return
        with self._lock:
            self._line = line, working_clock()
            if self._live is None and time.monotonic() - self._last >= self._every:
                self._say(self._words())

    def _renderable(self) -> Text:
        return Text(self._words(self._console.width), no_wrap=True, overflow="ellipsis")

    def _words(self, width: int | None = None) -> str:
        """The current phase, with its clock, in so many columns; None for as many as it takes."""
        now, phases = working_clock(), self._phases
        if COMPILING.now is not None:
            return _clocked(self._compiling(), COMPILING.elapsed - self._compiled_before, width)
        if phases.name == "solve" and self._line is not None and self._line[1] >= phases.entered:
            line, seen = self._line
            return progress_line(line, line.seconds + now - seen, width)
        return _clocked(f"{WORDS[phases.name]} {phases.detail}".rstrip(), now - phases.entered, width)

    def _compiling(self) -> str:
        kept = ", kept for later runs" if COMPILING.kept else ""
        count = f"{COMPILING.kernels} so far" if COMPILING.kernels > 1 else "the first"
        return f"compiling kernels (once{kept}): {COMPILING.now}, {count}"

    def _watch(self) -> None:
        """Print plain lines: a phase that lasts for some time, then every few seconds."""
        while not self._end.wait(self._tick):
            with self._lock:
                if self._due():
                    self._say(self._words())

    def _due(self) -> bool:
        if time.monotonic() - self._last >= self._every:
            return True
        phases = self._phases
        if COMPILING.now is not None:
            phase, lasted = "compile", COMPILING.elapsed - self._compiled_before
        else:
            phase, lasted = phases.name + phases.detail, working_clock() - phases.entered
        if phase in self._told or lasted < self._first_after:
            return False
        self._told.add(phase)
        return True

    def _say(self, text: str) -> None:
        self._last = time.monotonic()
        self._console.print(text, highlight=False, soft_wrap=True)


@contextmanager
def countdown(what: str, quiet: bool = False, console: Console | None = None) -> Iterator[Told]:
    """How many of a known number of things are done, with the time left, as of the mean time of those done.

    On a terminal a bar that is updated, elsewhere a line every few seconds.

    Parameters
    ----------
    what : the things.
    quiet : no output.
    console : None for standard error.
    """
    console = Console(stderr=True) if console is None else console
    if quiet:
        yield lambda done, total: None
    elif console.is_terminal:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        with Bar(*columns, TextColumn("left"), TimeRemainingColumn(), console=console, transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield _Lines(what, console)


class _Lines:
    """A line every few seconds: what is done, and the seconds left."""

    def __init__(self, what: str, console: Console, every: float = 5.0) -> None:
        self._what, self._console, self._every = what, console, every
        self._begin = self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last < self._every or done >= total:
            return
        self._last, spent = now, now - self._begin
        left = spent / max(1, done) * (total - done)
        text = f"{done} of {total} {self._what}  {spent:.1f} s  about {left:.0f} s left"
        self._console.print(text, highlight=False, soft_wrap=True)


def _clocked(what: str, seconds: float, width: int | None) -> str:
    """What is done and its seconds; where that is too long, the words are cut and not the clock."""
    clock, text = f"  {seconds:.1f} s", Text(what)
    if width is not None:
        text.truncate(max(1, width - len(clock)), overflow="ellipsis")
    return text.plain + clock


def progress_line(line: Iteration, seconds: float | None = None, width: int | None = None) -> str:
    """iteration, objective, lower bound, relative gap, passes, seconds: of these what fits, the gap always.

    Parameters
    ----------
    line : the iteration.
    seconds : in place of those of the line; None for these.
    width : columns of the terminal; None for all parts.
    """
    parts = {
        "iteration": f"iteration {line.iteration:5d}",
        "objective": f"objective {number(line.objective, 8):>12}",
        "bound": f"bound {number(line.lower_bound, 8):>12}",
        "gap": f"relative gap {number(line.relative_gap, 2):>8}",
        "passes": f"passes {line.passes:7.1f}",
        "seconds": f"{line.seconds if seconds is None else seconds:7.1f} s",
    }
    shown = {"gap"}
    for name in LEAVING:
        if width is not None and len("  ".join(parts[one] for one in (*shown, name))) > width:
            break
        shown.add(name)
    words = "  ".join(part for name, part in parts.items() if name in shown)
    return words if width is None or len(words) <= width else f"gap {number(line.relative_gap, 2)}"
