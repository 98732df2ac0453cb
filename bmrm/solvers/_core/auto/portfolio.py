"""Several solvers one after another on the same problem: the best point, the best bound, one history."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from inspect import signature
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bmrm.kernels.products.vectors import norm
from bmrm.problem import (
    Callback,
    IncompatibleError,
    InputError,
    Iteration,
    Meter,
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
    metered_risk,
)
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.auto.stage_budget import EARLY, LATE, StageBudget
from bmrm.solvers._core.budget import Budget, Budgeted
from bmrm.solvers._core.contradiction import Consistency, Proof
from bmrm.solvers._core.monitor import UNDONE, IterativeSolver
from bmrm.solvers._core.plane_model import KeptModel

CHAINED = " > "
"""Between the names of solvers that are made to follow one another."""
WITHIN_CHAIN, AT_KINKS, LAST_OF_CHAIN = 2.0, 3.0, 10.0
"""Patience: a stage ends when what is left would take so many times longer than it has taken; within a chain, for a
solver that may stall at kinks, and for the last solver of a chain."""
AHEAD_OF_SUPERLINEAR, SHORT, SHORTEST = 0.5, 8.0, 4.0
"""The same within a chain whose next solver gets faster and faster, and passes within which it is not judged then: the
first number where it may come to an end soon, the second where that is out of sight."""
LOOSE_FACTOR = 2.0
"""The factor of patience, with a stage that would make room for another chain, while its gap is above 1/2: measured; 3
keeps dual_coordinate where it is not to be kept."""
SUPERLINEAR_FACTOR = 3.0
"""So many times the patience with solvers that get faster and faster, the passes within which they are not judged, and
those that others would take."""


ENDS = Status.CONVERGED, Status.NOT_CONVEX, Status.TIME_LIMIT, Status.ITERATION_LIMIT
"""After which no other solver takes over."""


PLAN = "plan"
"""In the state that a later run goes on from."""


class Portfolio:
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
        self.plan: Callable[[], str] = str
        """What is still to be tried, as text, for a later run that goes on from here."""
        self._stopped = self._together = False
        self.left: float | None = None
        """Passes that the last stage would still have taken, where it was left because it was too slow; 0 if undone."""
        self.slow = False
        """Whether it was."""
        self.undone = 0
        """Stages that ended because the gap of all together was met, which then was found not to be so."""
        self._slope: Scores | None = None
        self._planes = KeptModel()

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do: converged, a limit of the whole, or a stop from outside."""
        if self.total is None:
            return False
        status = self.total.status
        return self._stopped or status in ENDS

    def run(self, solver: Any, stage_budget: StageBudget) -> Solution:
        """One stage from the best point so far, ended where its stage_budget says so.

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
        self._stopped = self._together = False
        callback = self._portfolio(before, stage_budget)
        found: Solution = stage.minimize(
            self.risk, self.regularizer, start=start, callback=callback, **self._handed_over(stage)
        )
        self.start = None  # stages to come begin where this one has ended
        self._slope = found.details.get("slope", self._slope)
        cut = not self._stopped and found.status is Status.INTERRUPTED
        slow = self.slow = stage_budget.slow and cut
        self.left = stage_budget.left if slow else None
        if slow or (self._together and cut):
            found = dataclasses.replace(found, status=Status.STALLED)
        elif found.status is Status.INTERRUPTED:
            self._stopped = True
        self.total = found if before is None else self._joined(before, found)
        budget = ability(self.risk, Budget)
        if budget is not None:  # with the time between stages
            self.total = dataclasses.replace(self.total, seconds=self.earlier + budget.seconds)
        open_still = self.total.status not in (Status.CONVERGED, Status.NOT_CONVEX)
        if open_still and self.total.relative_gap <= self.options.goal(self.total.objective):
            self.total = dataclasses.replace(self.total, status=Status.CONVERGED)
        elif self._together and cut and not slow and self.undone < UNDONE:
            self.undone, self.left = self.undone + 1, 0.0
        return found

    def _iterations_left(self) -> int:
        used = 0 if self.total is None else self.total.iterations + 1
        return max(1, self.options.max_iterations - used)

    def _handed_over(self, stage: Any) -> dict[str, Any]:
        """Slopes and planes of the stages before, where the solver knows what to do with them."""
        known = _taken_by(stage.__class__)
        offered = {"slope": self._slope, "kept": self._planes}
        return {name: one for name, one in offered.items() if one is not None and name in known}

    def _portfolio(self, before: Solution | None, stage_budget: StageBudget) -> Callback:
        def portfolio(line: Iteration) -> bool:
            whole = line if before is None else _shifted(before, line)
            stop = self._outside(whole)
            if before is not None and whole.relative_gap <= self.options.goal(whole.objective):
                self._together = True  # the two stages together have met what neither has alone, as far as they know
                return True
            return stop or stage_budget.too_slow(whole, line)

        return portfolio

    def _outside(self, line: Iteration) -> bool:
        if self.callback is not None:
            state = line.state or dict
            self._stopped |= bool(self.callback(line.told(line.w, lambda: {PLAN: np.array(self.plan()), **state()})))
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
            history=before.history + tuple(_shifted(before, line) for line in stage.history),
            planes=stage.planes or before.planes,
        )

    def _judged(self, stage: Solution, better: Solution, bound: float) -> tuple[Solution, float]:
        """What it means that the bound of one stage is above the objective of another: rounding, or a contradiction."""
        seen = Consistency(metered_risk(self.risk, Meter()), self.regularizer)
        seen.bound_holds(Proof(bound, 4.0 * abs(bound), norm(stage.w)), better.w, better.objective)
        if seen.found is None:
            return stage, better.objective
        details = {**stage.details, **seen.found.details, "raw_bound": bound}
        ended = dataclasses.replace(stage, status=Status.NOT_CONVEX, message=seen.found.message, details=details)
        return ended, -math.inf


@dataclass(frozen=True)
class Chains(IterativeSolver):
    """Solvers in order: the next takes over where one stalls, or is too slow.

    When all were too slow they have another turn, those that were nearest to the end first, and a longer one: so that
    what is lost by a wrong judgement is at most a factor. A solver that is the only one left may take its time.

    Parameters
    ----------
    names : registered solvers, with their own defaults, or chains of them (`a > b`); what does not fit is passed over.
    reasons : by name, why it is there, for `Solution.solver`.
    """

    names: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | Start | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`; raises IncompatibleError when no solver fits."""
        with Budget(self.time_limit, ability(risk, Budget)) as budget:
            return self._run(Portfolio(self, Budgeted(risk, budget), regularizer, start, callback))

    def _run(self, portfolio: Portfolio) -> Solution:
        risk = portfolio.risk
        story: list[str] = []
        refusal = IncompatibleError("no solver to choose from")
        scored = ability(risk, Scored)
        kinked = scored is not None and not scored.phi.facts.smooth
        waiting, slow, longer = self._planned(portfolio.start) or (self._stages(kinked), [], 1.0)
        while waiting and not portfolio.ended:
            for k, stage in enumerate(waiting):
                portfolio.plan = partial(_plan, waiting[k:], list(slow), longer)
                alternative = min([other.left for other in [*waiting[k + 1 :], *slow]], default=None)
                try:
                    found = portfolio.run(SOLVERS.make(stage.name), self._budget_of(stage, alternative, longer))
                except IncompatibleError as error:
                    refusal = error
                    continue
                story.append(_told(stage.name, found, portfolio.slow, self.reasons.get(stage.name, "")))
                if portfolio.left is not None:
                    slow.append(Stage(stage.name, LAST_OF_CHAIN, EARLY, EARLY, portfolio.left))
                if portfolio.ended:
                    break
            waiting, slow, longer = sorted(slow, key=lambda stage: stage.left), [], LATE * longer
        if portfolio.total is None:
            raise refusal
        return dataclasses.replace(portfolio.total, solver=", then ".join(story))

    def _planned(self, start: Vector | Start | None) -> tuple[list[Stage], list[Stage], float] | None:
        """What a run that is gone on from had still to try: those now waiting, those too slow, their patience."""
        text = str(start.state.get(PLAN, "")) if isinstance(start, Start) else ""
        try:
            waiting, slow, longer = json.loads(text) if text else ([], [], 1.0)
            stages = [[Stage(str(name), *map(float, rest)) for name, *rest in part] for part in (waiting, slow)]
            return (stages[0], stages[1], float(longer)) if stages[0] else None
        except (TypeError, ValueError) as error:
            raise InputError(f"the plan to go on from is damaged: {error}") from error

    def _budget_of(self, stage: Stage, alternative: float | None, longer: float) -> StageBudget:
        factor = SUPERLINEAR_FACTOR if _superlinear(stage.name) else 1.0
        alternative = None if alternative is None else factor * alternative
        longer *= factor
        loose_factor = LOOSE_FACTOR if stage.patience >= LAST_OF_CHAIN else 1.0
        return StageBudget(
            self.tolerance,
            factor * stage.patience,
            alternative,
            longer * stage.early,
            longer * stage.unjudged,
            loose_factor,
            self.absolute_tolerance,
        )

    def _stages(self, kinked: bool) -> list[Stage]:
        stages: dict[str, Stage] = {}  # each solver once, in its first place
        for chain in self.names:
            parts = chain.split(CHAINED)
            for name, after in pairwise(parts):
                superlinear = _superlinear(after)
                stages.setdefault(
                    name,
                    Stage(name, AHEAD_OF_SUPERLINEAR, SHORT, SHORTEST)
                    if superlinear
                    else Stage(name, WITHIN_CHAIN, EARLY, EARLY),
                )
            stalls = kinked and "kinked loss" in SOLVERS.get(parts[-1]).facts.get("stalls", ())
            stages.setdefault(parts[-1], Stage(parts[-1], AT_KINKS if stalls else LAST_OF_CHAIN, EARLY, EARLY))
        return list(stages.values())


@cache
def _taken_by(solver: type[Solver]) -> frozenset[str]:
    """The names of what its `minimize` takes."""
    return frozenset(signature(solver.minimize).parameters)


def _superlinear(name: str) -> bool:
    cls = SOLVERS.get(name).cls
    return issubclass(cls, IterativeSolver) and cls.superlinear


class Stage(NamedTuple):
    """A solver in its turn, the patience that it deserves, and the passes that it will presumably still take.

    `early` and `unjudged` are as of `StageBudget`, at its first turn.
    """

    name: str
    patience: float
    early: float
    unjudged: float
    left: float = 0.0


def _plan(waiting: list[Stage], slow: list[Stage], longer: float) -> str:
    return json.dumps([waiting, slow, longer])


def _told(name: str, stage: Solution, left: bool, why: str) -> str:
    """One stage in words."""
    until = "" if stage.status is Status.CONVERGED else "left as too slow" if left else f"until {stage.status.name}"
    remark = "; ".join(part for part in (until, why) if part)
    return f"{name} ({remark})" if remark else name


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
        seconds_network=last.seconds_network + line.seconds_network,
        w=line.w if better or line.w is None else before.w,
    )
