"""Problems in processes of their own, under a watchdog: a run that hangs or dies is a fault, and the next one goes on.

The limit is of processor time, so that a loaded machine does not count; what compiling takes is left out.
"""

import faulthandler
import importlib
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 20.0
"""Seconds of processor time for one run of a solver; a path has one at each of its points."""
POLL = 0.25
CHECK = "tests.certificates.judge:check"
"""What is done with a problem."""
SPAWN = multiprocessing.get_context("spawn")


@dataclass
class Result:
    """What became of a problem: outcomes as tuples (solver, status, faults, excesses)."""

    index: int
    title: str
    outcomes: list = field(default_factory=list)
    seconds: float = 0.0


class Clock:
    """What a worker tells of itself: processor time when the run began and of compiling since, whether it compiles."""

    def __init__(self):
        self.numbers = SPAWN.Array("d", 3)

    def begin(self):
        self.numbers[0], self.numbers[1] = time.process_time(), 0.0

    def wait(self):
        """Nothing runs until the worker itself says so: processor time of another process means nothing here."""
        self.numbers[0] = math.inf

    def compiling(self, seconds, active):
        self.numbers[1] += seconds
        self.numbers[2] = float(active)

    def used(self, pid):
        """Processor seconds of the run so far, without compiling."""
        began, compiled, active = self.numbers[:]
        return 0.0 if active else _processor_seconds(pid) - began - compiled


def _processor_seconds(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _note_compiling(clock):
    """Have numba tell the clock when it compiles."""
    from numba.core import event

    class Listener(event.Listener):
        depth, began = 0, 0.0

        def on_start(self, event):
            self.depth += 1
            if self.depth == 1:
                self.began = time.process_time()
                clock.compiling(0.0, True)

        def on_end(self, event):
            self.depth -= 1
            if self.depth == 0:
                clock.compiling(time.process_time() - self.began, False)

    event.register("numba:compile", Listener())


def _work(seed, indices, pipe, clock, stack, place):
    """The problems that come through `indices`, one result each; before it, what runs is told."""
    from tests.certificates import problems

    module, _, name = place.partition(":")
    check = getattr(importlib.import_module(module), name)
    faulthandler.register(signal.SIGUSR1, file=open(stack, "w"), all_threads=True)  # noqa: SIM115
    _note_compiling(clock)
    clock.begin()
    for index in iter(indices.recv, None):
        began, title = time.process_time(), f"{seed}/{index}"

        def announce(what, points):
            pipe.send(("runs", (what, points)))
            clock.begin()

        try:
            clock.begin()
            problem = problems.varied(seed, index)
            title = problem.title
            outcomes = [(o.solver, o.status, o.faults, o.excesses) for o in check(problem, announce)]
        except Exception:  # of the harness itself
            outcomes = [("harness", "error", [traceback.format_exc(limit=-4)], {})]
        pipe.send(("done", Result(index, title, outcomes, time.process_time() - began)))


class Worker:
    """A process that solves one problem after the other."""

    def __init__(self, seed):
        self.seed, self.clock = seed, Clock()
        self.stack = tempfile.NamedTemporaryFile("r", suffix=".stack")  # noqa: SIM115
        self.results, theirs = SPAWN.Pipe(duplex=False)
        indices, self.indices = SPAWN.Pipe(duplex=False)
        self.process = SPAWN.Process(
            target=_work, args=(seed, indices, theirs, self.clock, self.stack.name, CHECK), daemon=True
        )
        self.process.start()
        theirs.close()
        indices.close()
        self.index, self.running, self.points, self.since = None, "", 1, time.monotonic()

    def give(self, index):
        """Start on a problem."""
        self.index, self.running, self.points, self.since = index, "drawing", 1, time.monotonic()
        self.clock.wait()
        self.indices.send(index)

    def ask(self):
        """The result of the problem, once there is one; a hung or dead process has one too, and is to be replaced."""
        try:
            while self.results.poll(0):
                kind, what = self.results.recv()
                if kind == "done":
                    return what
                self.running, self.points = what
        except EOFError:
            return self._lost(f"the process died with exit status {self._ended()}")
        limit = LIMIT * self.points
        if self.clock.used(self.process.pid) > limit:
            return self._lost(f"no end after {limit:g} s of processor time; {self._where()}")
        return None

    @property
    def alive(self):
        return self.process.is_alive()

    def stop(self):
        """End the process."""
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.stack.close()

    def _lost(self, fault):
        title = f"{self.seed}/{self.index} {self.running}"
        self.stop()
        return Result(self.index, title, [("lost", "hang", [fault], {})], time.monotonic() - self.since)

    def _ended(self):
        self.process.join(1.0)
        return self.process.exitcode

    def _where(self):
        """The Python lines that the process is in."""
        os.kill(self.process.pid, signal.SIGUSR1)
        time.sleep(0.5)
        lines = [line.strip() for line in Path(self.stack.name).read_text().splitlines()]
        return " < ".join(line.removeprefix("File ") for line in lines if "/bmrm/" in line)[:600]


def results(seed, indices, jobs):
    """Results of the problems, as they come."""
    indices = iter(indices)
    workers = []
    try:
        for index in indices:
            workers.append(Worker(seed))
            workers[-1].give(index)
            if len(workers) == jobs:
                break
        while workers:
            ready = multiprocessing.connection.wait([w.results for w in workers if not w.results.closed], timeout=POLL)
            for worker in list(workers):
                found = worker.ask() if ready or worker else None
                if found is None:
                    continue
                yield found
                workers.remove(worker)
                index = next(indices, None)
                if index is None:
                    worker.stop()
                    continue
                again = worker if worker.alive else Worker(seed)
                again.give(index)
                workers.append(again)
    finally:
        for worker in workers:
            worker.stop()
        sys.stdout.flush()
