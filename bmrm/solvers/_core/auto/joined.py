"""Several solvers one after another on the same problem: the best point, the best bound, one history."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import replace
from functools import cache
from inspect import signature
from typing import Any

import numpy as np

from bmrm.kernels.products.vectors import norm
from bmrm.problem import (
    Callback,
    Iteration,
    Regularizer,
    Risk,
    Scored,
    Scores,
    Solution,
    Solver,
    Start,
    Status,
    Vector,
    ability,
)
from bmrm.problem.abilities import Rounding
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.solvers._core.audit import Audit
from bmrm.solvers._core.budget import Budget
from bmrm.solvers._core.monitor import UNDONE, IterativeSolver
from bmrm.solvers._core.plane_model import KeptModel
from bmrm.solvers._core.rounding import Proof, Slack

ENDS = Status.CONVERGED, Status.OWN_RULE, Status.NOT_CONVEX, Status.TIME_LIMIT, Status.ITERATION_LIMIT
"""After which no other solver takes over."""
AT_LEAST = 12
"""Iterations of a turn of a solver that gets faster and faster: the first may cost a whole turn."""
PLAN = "plan"
"""In the state that a later run goes on from."""


class Joined:
    """Stages on one risk, joined as if they were one run.

    Parameters
    ----------
    options : tolerance and limits of the whole.
    risk, regularizer, start, callback : as `Solver.minimize` takes them.
    """

    def __init__(
        self,
        options: IterativeSolver,
        risk: Risk,
        regularizer: Regularizer,
        start: Vector | Start | None,
        callback: Callback | None,
    ) -> None:
        self.options, self.risk, self.regularizer, self.callback = options, risk, regularizer, callback
        self.start: Vector | Start | None = start
        self.total: Solution | None = None
        self.earlier = 0.0
        """Seconds of the run that this one goes on from."""
        if isinstance(start, Start):
            self.start = replace(start, history=())
            self.total = _ended(start)
            self.earlier = self.total.seconds if self.total is not None else 0.0
        self.plan: tuple[Any, ...] = ()
        """What is still to be tried, for a later run that goes on from here."""
        self._stopped = self._together = self._over = False
        self.left = False
        """Whether the last stage was left though it might have gone on."""
        self.undone = 0
        """Stages whose combined gap failed the verification."""
        self._slope: Scores | None = None
        scored = ability(risk, Scored)
        self._smooth = scored is not None and scored.phi.facts.smooth
        self._planes = KeptModel()

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do: converged, a limit of the whole, or a stop from outside."""
        if self.total is None:
            return False
        status = self.total.status
        return self._stopped or status in ENDS

    def run(self, solver: Any, passes: float) -> Solution:
        """One stage from the best point so far, for so many passes at most (and `AT_LEAST`).

        Raises IncompatibleError, with nothing changed, where the solver does not fit.
        """
        before = self.total
        limits: dict[str, Any] = {name: getattr(self.options, name) for name in ("tolerance", "absolute_tolerance")}
        limits["max_iterations"] = self._iterations_left()
        if self.options.time_limit is not None:
            used = before.seconds - self.earlier if before else 0.0
            limits["time_limit"] = max(self.options.time_limit - used, 1e-9)
        stage = dataclasses.replace(solver, **limits)
        start = before.w if before is not None and not isinstance(self.start, Start) else self.start
        self._stopped = self._together = self._over = False
        callback = self._watching(before, passes, AT_LEAST if solver.superlinear else 0)
        found: Solution = stage.minimize(
            self.risk, self.regularizer, start=start, callback=callback, **self._handed_over(stage)
        )
        self.start = None  # stages to come begin where this one has ended
        # of smooth losses the slopes at the new point are better than those of an older one
        self._slope = found.details.get("slope", None if self._smooth else self._slope)
        cut = not self._stopped and found.status is Status.INTERRUPTED
        self.left = self._over and cut
        if (self._over or self._together) and cut:
            found = dataclasses.replace(found, status=Status.STALLED)
        elif found.status is Status.INTERRUPTED:
            self._stopped = True
        self.total = found if before is None else self._joined(before, found)
        budget = ability(self.risk, Budget)
        if budget is not None:  # with the time between stages
            self.total = dataclasses.replace(
                self.total, seconds=self.earlier + budget.seconds, seconds_compiling=budget.compiling
            )
        open_still = self.total.status not in (Status.CONVERGED, Status.NOT_CONVEX)
        if open_still and self.total.relative_gap <= self.options.goal(self.total.objective):
            self.total = dataclasses.replace(self.total, status=Status.CONVERGED)
        elif self._together and cut and self.undone < UNDONE:
            self.undone, self.left = self.undone + 1, True
        return found

    def _iterations_left(self) -> int:
        used = 0 if self.total is None else self.total.iterations + 1
        return max(1, self.options.max_iterations - used)

    def _handed_over(self, stage: Any) -> dict[str, Any]:
        """Slopes and planes of the stages before, where the solver knows what to do with them."""
        known = _taken_by(stage.__class__)
        offered = {"slope": self._slope, "kept": self._planes}
        return {name: one for name, one in offered.items() if one is not None and name in known}

    def _watching(self, before: Solution | None, passes: float, iterations: int) -> Callback:
        def watching(line: Iteration) -> bool:
            whole = line if before is None else _shifted(before, line)
            stop = self._outside(whole)
            if before is not None and whole.relative_gap <= self.options.goal(whole.objective):
                self._together = True  # the two stages together have met what neither has alone, as far as they know
                return True
            self._over = line.passes >= passes and line.iteration >= iterations
            return stop or self._over

        return watching

    def _outside(self, line: Iteration) -> bool:
        if self.callback is not None:
            state = line.state or dict
            self._stopped |= bool(
                self.callback(line.told(line.w, lambda: {PLAN: np.array(json.dumps(self.plan)), **state()}))
            )
        return self._stopped

    def _joined(self, before: Solution, stage: Solution) -> Solution:
        better = stage if stage.objective <= before.objective else before
        bound = max(before.lower_bound, stage.lower_bound)
        if stage.status is Status.NOT_CONVEX:
            bound = -math.inf
        elif bound > better.objective:
            stage, bound = self._judged(stage, better, bound)
        return dataclasses.replace(
            stage,
            w=better.w,
            objective=better.objective,
            lower_bound=bound,
            iterations=before.iterations + 1 + stage.iterations,
            passes=before.passes + stage.passes,
            seconds=before.seconds + stage.seconds,
            seconds_compiling=before.seconds_compiling + stage.seconds_compiling,
            history=before.history + tuple(_shifted(before, line) for line in stage.history),
            planes=stage.planes or before.planes,
        )

    def _judged(self, stage: Solution, better: Solution, bound: float) -> tuple[Solution, float]:
        """What it means that the bound of one stage is above the objective of another: rounding, or a contradiction."""
        risk, proof = metered_risk(self.risk, Meter()), Proof(bound, 4.0 * abs(bound), norm(stage.w))
        measure = ability(risk, Rounding)
        if measure is not None and not measure.foreign:
            sure = Slack(risk, measure).off(proof, better.w, better.objective, self.options.goal(better.objective))
            return stage, min(sure.bound, better.objective)
        seen = Audit(risk, self.regularizer)
        seen.bound_holds(proof, better.w, better.objective)
        if seen.found is None:
            return stage, better.objective
        details = {**stage.details, **seen.found.details, "raw_bound": bound}
        ended = dataclasses.replace(stage, status=Status.NOT_CONVEX, message=seen.found.message, details=details)
        return ended, -math.inf


@cache
def _taken_by(solver: type[Solver]) -> frozenset[str]:
    """The names of what its `minimize` takes."""
    return frozenset(signature(solver.minimize).parameters)


def _ended(start: Start) -> Solution | None:
    """The run that is gone on from, as a stage; its objective is to be found again at its w."""
    if not start.history:
        return None
    last = start.history[-1]
    counts = last.iteration, last.passes, last.seconds, start.history
    return Solution(start.w, math.inf, start.lower_bound, Status.INTERRUPTED, *counts)


def _shifted(before: Solution, line: Iteration) -> Iteration:
    """A line of a stage as one of the whole."""
    better = line.objective <= before.objective
    last = before.history[-1] if before.history else Iteration(0, 0.0, 0.0, 0.0, 0.0)
    return dataclasses.replace(
        line,
        iteration=before.iterations + 1 + line.iteration,
        objective=min(line.objective, before.objective),
        lower_bound=min(max(line.lower_bound, before.lower_bound), line.objective, before.objective),
        passes=before.passes + line.passes,
        passes_gram=last.passes_gram + line.passes_gram,
        seconds=before.seconds + line.seconds,
        seconds_risk=last.seconds_risk + line.seconds_risk,
        seconds_master=last.seconds_master + line.seconds_master,
        seconds_waiting=last.seconds_waiting + line.seconds_waiting,
        seconds_network=last.seconds_network + line.seconds_network,
        w=line.w if better or line.w is None else before.w,
    )
