"""Records a run on one rank as many ranks would have it: by a group of one, which counts what it would send."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from benchmarks.simulator.recording import Recording, Shape, Step
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.communicator import MpiGroup
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.problem import Iteration, Solution
from bmrm.problem.abilities import ProblemSize
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

LONG = 1 << 12
"""Numbers from which an array is no short message."""
FEW, TURNS = 20, 30
"""Rows of a pass that has next to none, and how often such short things are done; the fastest counts."""


@dataclass(frozen=True)
class Setting:
    """What is run: names of loss and solver, lambda of l2, the solver's options."""

    loss: str
    solver: str
    lam: float
    tolerance: float
    iterations: int = 10_000

    def minimise(self, risk: Any, callback: Callable[[Iteration], bool | None] | None = None) -> Solution:
        """Run the solver."""
        options = {"tolerance": self.tolerance, "max_iterations": self.iterations}
        found: Solution = SOLVERS.make(self.solver, options).minimize(risk, L2(self.lam), callback=callback)
        return found

    def load(self, risk: Any) -> None:
        """Run it for a moment, so that kernels are loaded."""
        options = {"tolerance": 0.3, "max_iterations": 5}
        SOLVERS.make(self.solver, options).minimize(risk, L2(self.lam))


class CountingGroup(MpiGroup):
    """A group that counts short messages, vectors of `dim` numbers, and numbers of rows."""

    dim = 1
    short, vectors, gathered = 0, 0.0, 0

    def _sent(self, array: NDArray[Any]) -> None:
        if array.dtype.itemsize == 8 and array.size >= min(self.dim, LONG):
            self.vectors += array.size / self.dim
        else:
            self.short += 1

    def send_out(self, buffer: NDArray[Any]) -> None:
        """As of `MpiGroup`."""
        self._sent(buffer)
        super().send_out(buffer)

    def start_adding(self, part: NDArray[Any], total: NDArray[Any] | None) -> list[MPI.Request]:
        """As of `MpiGroup`."""
        self._sent(part)
        return super().start_adding(part, total)

    def _add_up_directly(self, part: NDArray[Any]) -> NDArray[Any]:
        self._sent(part)
        return super()._add_up_directly(part)

    def _gather_parts(self, flat: NDArray[Any]) -> list[NDArray[Any]] | None:
        self.short += 1
        self.gathered += flat.size
        return super()._gather_parts(flat)

    def hand_out(self, whole: NDArray[np.float64] | None, rows: int) -> NDArray[np.float64]:
        """As of `MpiGroup`."""
        self.short += 1
        self.gathered += 0 if whole is None else whole.size
        return super().hand_out(whole, rows)


class Totals(list[float]):
    """Of a run so far: passes, seconds in all, of the risk, the master, waiting and messages, of rows, and messages."""

    @classmethod
    def of(cls, line: Iteration, group: CountingGroup) -> Totals:
        """At the end of an iteration."""
        others = line.seconds_waiting + line.seconds_network
        seconds = line.passes, line.seconds - others, line.seconds_risk, line.seconds_master
        return cls([*seconds, group.busy, group.short, group.vectors, group.gathered])

    def step(self, before: Totals, planes: int) -> Step:
        """What has come to those before."""
        passes, whole, risk, master, busy, short, vectors, gathered = (now - then for now, then in zip(self, before))
        shared = min(busy, risk)
        rest = max(0.0, whole - risk - master)
        return Step(passes, shared, risk - shared, master, rest, planes, int(short), vectors, int(gathered))


def recorded(data: Dataset, setting: Setting, name: str, repetitions: int = 3) -> Recording:
    """The fastest of some runs, of all rows on this rank and one thread."""
    group = CountingGroup(MPI.COMM_SELF)
    loss = LOSSES.make(setting.loss)
    risk = shared_risk(data, loss, group, threads=1)
    group.dim = risk.dim
    runs = lead(risk, group, lambda risk: _runs(risk, setting, group, repetitions))
    assert runs is not None
    return Recording(
        problem=name,
        solver=setting.solver,
        shape=_shape(risk, data),
        whole_sample=loss.decomposes == "no",
        fixed=_fixed(data, setting),
        groups=_groups(data),
        steps=tuple(min(runs, key=lambda run: sum(step.seconds for step in run))),
    )


def with_bare(of: Recording, narrow: Recording) -> Recording:
    """The recording, with what a step of a run on next to no features takes.

    Parameters
    ----------
    of : the recording.
    narrow : of rows that are like those, but have few features.
    """
    count = len(narrow.steps)
    means = {f"bare_{name}": sum(getattr(step, name) for step in narrow.steps) / count for name in ("master", "rest")}
    return of.model_copy(update=means)


def _runs(risk: Any, setting: Setting, group: CountingGroup, repetitions: int) -> list[list[Step]]:
    setting.load(risk)
    return [_run(risk, setting, group) for _ in range(repetitions)]


def _run(risk: Any, setting: Setting, group: CountingGroup) -> list[Step]:
    before = Totals.of(Iteration(0, 0.0, 0.0, 0.0, 0.0), group)
    steps: list[Step] = []

    with counted_planes() as planes:

        def look(line: Iteration) -> None:
            nonlocal before
            now = Totals.of(line, group)
            steps.append(now.step(before, planes[0]))
            before = now

        solution = setting.minimise(risk, look)
    steps.append(Totals.of(solution.history[-1], group).step(before, planes[0]))
    return steps


@contextmanager
def counted_planes() -> Iterator[list[int]]:
    """How many planes the model had that was last solved."""
    from bmrm.solvers._core.plane_model import PlaneModel

    kept, solve = [0], PlaneModel.solve

    def counted(self: PlaneModel, accuracy: float) -> Any:
        kept[0] = len(self.planes)
        return solve(self, accuracy)

    PlaneModel.solve = counted  # type: ignore[method-assign]
    try:
        yield kept
    finally:
        PlaneModel.solve = solve  # type: ignore[method-assign]


def _shape(risk: Any, data: Dataset) -> Shape:
    size = risk.ability(ProblemSize)
    return Shape(rows=data.rows, entries=size.entries, dim=risk.dim, scores=max(1, risk.dim // data.features))


def _groups(data: Dataset) -> tuple[int, ...]:
    """Entries of each group of rows."""
    groups = data.targets.groups
    if groups is None:
        return ()
    each = data.X.shape[1] if isinstance(data.X, np.ndarray) else np.diff(data.X.indptr)  # type: ignore[union-attr]
    numbers = np.unique(groups, return_inverse=True)[1]
    return tuple(np.bincount(numbers, np.broadcast_to(each, data.rows)).astype(int).tolist())


def _fixed(data: Dataset, setting: Setting) -> float:
    """Seconds of a pass over next to no rows."""
    risk = LinearRisk(data.part(0, min(FEW, data.rows)), LOSSES.make(setting.loss), threads=1)
    w = np.zeros(risk.dim)
    return fastest(lambda: risk.value_and_subgradient(w))


def fastest(function: Callable[[], object], turns: int = TURNS) -> float:
    """Seconds of the fastest of some calls, after one that does not count."""
    return min(timed(function, turns))


def timed(function: Callable[[], object], turns: int) -> list[float]:
    """Seconds of some calls, after one that does not count."""
    function()
    seconds = []
    for _ in range(turns):
        begin = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begin)
    return seconds
