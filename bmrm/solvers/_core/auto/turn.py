"""One turn of one solver in a run that several share."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Generator
from functools import cache
from inspect import signature
from typing import Any, NamedTuple, cast

from bmrm.problem import Scored, Scores, Status, ability
from bmrm.problem.abilities import ProblemSize
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step
from bmrm.solvers._core.plane_model import KeptModel

AT_LEAST = 12
"""Least number of iterations in a turn of a superlinear solver, whose first iteration may cost as many passes as a
whole turn."""


DEAR = 16.0
"""What work on matrices may take, over the passes of a turn, before it is over whatever the iterations."""


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
    """The steps of one solver until its budget is spent, unless it is nearly there, or another one is to take over."""
    begin, first, work = run.meter.passes, len(run.history), run.budget.products
    lines, a_pass = first + (AT_LEAST if solver.superlinear else 0), _products_of_a_pass(run)
    steps = solver.steps(run, **handing.to(solver))
    try:
        step = next(steps)
        while True:
            afresh = yield step
            if run.stuck is not None:
                return End(run.stuck)
            spent, beside = run.meter.passes - begin, (run.budget.products - work) / a_pass
            enough = spent >= passes and len(run.history) > lines
            over = step is Step.ITERATION and (enough or beside >= DEAR * passes)
            if over and left_to_go(run, first, spent) > passes:
                return End(None)
            step = steps.send(afresh)
    except StopIteration as end:
        return End(Status.STALLED, end.value)
    finally:
        steps.close()


def _products_of_a_pass(run: Monitor) -> float:
    """Of entries of the rows of a rank; inf where the size of the data is not known."""
    size, scored = ability(run.risk, ProblemSize), ability(run.risk, Scored)
    if size is None:
        return math.inf
    scores = 1 if scored is None else scored.of_rows.facts.scores_per_row
    return max(1.0, 2.0 * size.entries * scores / size.ranks)


def left_to_go(run: Monitor, first: int, spent: float) -> float:
    """Passes to the tolerance, if the gap goes on falling as it has in the last half of the `spent` passes.

    Parameters
    ----------
    run : whose lines of the history from the `first` on are those of the turn.
    """
    lines, last = run.history, run.history[-1]
    before = lines[bisect_left(lines, last.passes - 0.5 * spent, lo=first, key=lambda line: line.passes)]
    one, other, goal = before.relative_gap, last.relative_gap, run.options.goal(last.objective)
    if other <= goal:
        return 0.0
    if not (0.0 < other < one < math.inf and goal > 0.0):
        return math.inf
    return (last.passes - before.passes) * math.log(other / goal) / math.log(one / other)


@cache
def _taken_by(solver: Any) -> frozenset[str]:
    """The names of what its `steps` take."""
    return frozenset(signature(solver.steps).parameters)
