"""A competitor in a process of its own: forked with the data in place, timed inside, ended when it takes too long."""

from __future__ import annotations

import contextlib
import hashlib
import math
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.race.competitor import Competitor, Prepared, Rung, Vector
from benchmarks.race.judge import objective
from benchmarks.race.problem import Task
from bmrm.problem import IncompatibleError

MEMORY = 0.6
"""Share of the machine's memory that a competitor may address."""
BUSY = 2.0
"""With the clock of the processor, a run may take so many times its limit by the wall clock."""
WARM = 300
"""Iterations of a run that only warms up, of a competitor that can be told so: some never end on a few rows."""
PATIENCE = 120.0
"""Seconds that preparation may take, beside the time limit of a run."""


@dataclass(frozen=True)
class Outcome:
    """One run.

    `status` is "ok", "time-out", "error", "not converged" (a certifying competitor below its promise) or "unfit" (a
    solver that refuses the problem); `seconds`
    are by the clock chosen, wall or cpu, or the program's own where it tells; `objective` is the judge's.
    """

    rung: str
    status: str
    seconds: float = math.inf
    objective: float = math.inf
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Worker:
    """Runs rungs of one competitor on one task, one at a time, in a forked process that lives between the runs."""

    def __init__(self, competitor: Competitor, task: Task, clock: str = "wall") -> None:
        self.competitor, self.task, self.clock = competitor, task, clock
        self._process: Any = None
        self._pipe: Any = None
        self._folder: str | None = None

    def run(self, rung: Rung, limit: float) -> Outcome:
        """Train once; a run beyond `limit` seconds is ended, and the process with it."""
        if self._process is None:
            outcome = self._start()
            if outcome is not None:
                return outcome
        try:
            self._pipe.send(rung)
            if not self._pipe.poll(limit * (BUSY if self.clock == "cpu" else 1.0)):
                self.close()
                return Outcome(rung.label, "time-out", message=f"not done in {limit:.3g} s")
            self._pipe.recv()  # the training is over, judging follows
            answer = self._receive(PATIENCE)
        except (EOFError, OSError):
            self.close()
            return Outcome(rung.label, "error", message="the process died")
        return answer if isinstance(answer, Outcome) else Outcome(rung.label, "error", message=str(answer))

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._pipe.close()
        self._process.kill()
        self._process.join()
        shutil.rmtree(self._folder or "", ignore_errors=True)
        self._process = self._pipe = None

    def _start(self) -> Outcome | None:
        """Fork and prepare; an outcome where that failed."""
        self._folder = tempfile.mkdtemp(prefix="race-")
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self, self._folder), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads is forked
            self._process.start()
        theirs.close()
        try:
            answer = self._receive(PATIENCE)
        except (EOFError, OSError):
            answer = "the process died while it prepared the data"
        if answer == "ready":
            return None
        self.close()
        return Outcome("", "error", message=str(answer))

    def _receive(self, patience: float) -> Any:
        if not self._pipe.poll(patience):
            self.close()
            raise OSError("no answer")
        return self._pipe.recv()


def _serve(pipe: Any, worker: Worker, folder: str) -> None:
    """The loop of the child: prepare, warm up, then a run for each rung that arrives; its files are in `folder`."""
    competitor, task, clock = worker.competitor, worker.task, CLOCKS[worker.clock]
    _limit_memory()
    tempfile.tempdir = folder
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    warnings.simplefilter("ignore")
    try:
        warm_up(competitor, task)
        prepared = competitor.prepare(task)
        pipe.send("ready")
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}"[:300])
        return
    judge = remembering(task)
    while True:
        try:
            rung = pipe.recv()
        except EOFError:
            return
        pipe.send(attempt(prepared, rung, judge, lambda: pipe.send("timed"), clock))


_COMPILED: set[tuple[str, ...]] = set()
"""Competitors and kinds of problems that this process, and all it forks, has compiled for."""


def compile_once(competitor: Competitor, task: Task) -> None:
    """Run it here on a few rows where its first run compiles, so that the forked processes find that done."""
    key = (competitor.name, task.loss, task.problem.penalty, str(task.sparse))
    if getattr(competitor, "compiles", False) and key not in _COMPILED:
        _COMPILED.add(key)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warm_up(competitor, task)


def warm_up(competitor: Competitor, task: Task) -> None:
    """Run it on a few rows: ours at every rung, which may choose another solver; errors show in the runs that count."""
    few = task.few()
    ours = hasattr(competitor, "iterations")
    brief = replace(competitor, iterations=WARM) if ours else competitor  # type: ignore[type-var]
    with contextlib.suppress(Exception):
        prepared = brief.prepare(few)
        for rung in brief.ladder(few) if ours else brief.ladder(few)[:1]:
            prepared(rung).train()


CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


def remembering(task: Task) -> Callable[[Vector], float]:
    """The judge, which computes J of the same w once: repeated runs mostly end at the same point."""
    known: dict[bytes, float] = {}

    def judge(w: Vector) -> float:
        key = hashlib.blake2b(np.ascontiguousarray(w).tobytes()).digest()
        if key not in known:
            known[key] = objective(task, w)
        return known[key]

    return judge


def attempt(
    prepared: Prepared,
    rung: Rung,
    judge: Callable[[Vector], float],
    timed: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Outcome:
    """Train in this process, call `timed`, then judge."""
    try:
        trial = prepared(rung)
        begin = clock()
        told = trial.train()
        seconds = clock() - begin if told is None else told
    except Exception as error:
        timed()
        return failure(rung, error)
    timed()
    try:
        details = trial.details()
        found = judge(trial.weights())
    except Exception as error:
        return failure(rung, error)
    status = "ok"
    if rung.target is not None and details.get("status") != "CONVERGED":
        status = "not converged"
    return Outcome(rung.label, status, seconds, found, details.get("status", ""), details)


def failure(rung: Rung, error: Exception) -> Outcome:
    """An outcome that says what went wrong."""
    status = "unfit" if isinstance(error, IncompatibleError) else "error"
    return Outcome(rung.label, status, message=f"{type(error).__name__}: {error}"[:300])


def _limit_memory() -> None:
    most = int(MEMORY * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
