"""One turn of one solver in a run that several share."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from inspect import signature
from typing import Any, NamedTuple, cast

from bmrm.problem import Scored, Scores, Status, ability
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step
from bmrm.solvers._core.plane_model import KeptModel

AT_LEAST = 12
"""Least number of iterations in a turn of a superlinear solver, whose first iteration may cost as many passes as a
whole turn."""


class End(NamedTuple):
    """The end of a turn: `why` is None if its budget was spent, `rule` the solver's own stopping rule that was met."""

    why: Status | None
    rule: str | None = None


class HandingOver:
    """Slopes and planes of the solvers before, for a next solver that can use them."""

    def __init__(self, run: Monitor) -> None:
        scored = ability(run.risk, Scored)
        self._smooth = scored is not None and scored.phi.facts.smooth
        self._slope: Scores | None = None
        self._planes = KeptModel()

    def to(self, solver: IterativeSolver) -> dict[str, Any]:
        """What its `steps` take."""
        offered = {"slope": self._slope, "kept": self._planes}
        known = _taken_by(cast(Any, solver.__class__))
        return {name: one for name, one in offered.items() if one is not None and name in known}

    def take(self, run: Monitor) -> None:
        """What a solver leaves; of smooth losses the slopes at the new point are better than those of an older one."""
        self._slope = run.finish().get("slope", None if self._smooth else self._slope)


def turn(run: Monitor, solver: IterativeSolver, passes: float, handing: HandingOver) -> Generator[Step, bool, End]:
    """The steps of one solver until its budget is spent or another one is to take over."""
    begin, lines = run.meter.passes, len(run.history)
    lines += AT_LEAST if solver.superlinear else 0
    steps = solver.steps(run, **handing.to(solver))
    try:
        step = next(steps)
        while True:
            afresh = yield step
            if run.stuck is not None:
                return End(run.stuck)
            if step is Step.ITERATION and run.meter.passes - begin >= passes and len(run.history) > lines:
                return End(None)
            step = steps.send(afresh)
    except StopIteration as end:
        return End(Status.STALLED, end.value)
    finally:
        steps.close()


@cache
def _taken_by(solver: Any) -> frozenset[str]:
    """The names of what its `steps` take."""
    return frozenset(signature(solver.steps).parameters)
