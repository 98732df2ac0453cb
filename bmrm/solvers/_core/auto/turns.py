"""Solvers in turns on the same problem, within budgets of passes that grow."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from bmrm.problem import (
    Callback,
    IncompatibleError,
    InputError,
    Regularizer,
    Risk,
    Solution,
    Start,
    Status,
    Vector,
    ability,
)
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.auto.joined import PLAN, Joined
from bmrm.solvers._core.budget import Budget, Budgeted
from bmrm.solvers._core.monitor import IterativeSolver

GROWTH = 4.0
"""How many times longer each turn is than the one before."""


class Plan(NamedTuple):
    """Who has still to run in this turn, who will in the next, who comes when nobody is left, and passes of a turn."""

    waiting: tuple[str, ...]
    later: tuple[str, ...]
    reserve: tuple[str, ...]
    passes: float

    @property
    def budget(self) -> float:
        """Passes of the first that waits; without end where it is the last."""
        return self.passes if len(self.waiting) + len(self.later) > 1 else math.inf

    def after(self, stays: bool) -> Plan:
        """When the first has run, and stays or not."""
        waiting, later = self.waiting[1:], self.later + self.waiting[:1] * stays
        if waiting:
            return self._replace(waiting=waiting, later=later)
        if later:
            return self._replace(waiting=later, later=(), passes=GROWTH * self.passes)
        return self._replace(waiting=self.reserve, reserve=())


@dataclass(frozen=True)
class Turns(IterativeSolver):
    """Solvers in turns: each begins where the one before it ended, within a budget of passes that grows.

    One that stalls, or does not fit, has no further turn. What is lost by a wrong order is at most a factor.

    Parameters
    ----------
    names : registered solvers, with their own defaults.
    reserve : those that take over where all of these have stalled.
    passes : of a first turn.
    reason : why the first is the first, for `Solution.solver`.
    """

    names: tuple[str, ...] = ()
    reserve: tuple[str, ...] = ()
    passes: float = 256.0
    reason: str = ""

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
            return self._run(Joined(self, Budgeted(risk, budget), regularizer, start, callback))

    def _run(self, joined: Joined) -> Solution:
        story: list[str] = []
        refusal = IncompatibleError("no solver to choose from")
        reserve = tuple(name for name in self.reserve if name not in self.names)
        plan = self._planned(joined.start) or Plan(self.names, (), reserve, self.passes)
        while plan.waiting and not joined.ended:
            joined.plan, name = plan, plan.waiting[0]
            try:
                found = joined.run(SOLVERS.make(name), plan.budget)
            except IncompatibleError as error:
                refusal, plan = error, plan.after(stays=False)
                continue
            story.append(_told(name, found, joined.left, "" if story else self.reason))
            plan = plan.after(joined.left)
        if joined.total is None:
            raise refusal
        return replace(joined.total, solver=", then ".join(story))

    def _planned(self, start: Vector | Start | None) -> Plan | None:
        """What a run that is gone on from had still to try."""
        text = str(start.state.get(PLAN, "")) if isinstance(start, Start) else ""
        try:
            waiting, later, reserve, passes = json.loads(text) if text else ([], [], [], self.passes)
            names = [tuple(map(str, some)) for some in (waiting, later, reserve)]
            return Plan(names[0], names[1], names[2], float(passes)) if waiting else None
        except (TypeError, ValueError) as error:
            raise InputError(f"the plan to go on from is damaged: {error}") from error


def _told(name: str, stage: Solution, left: bool, why: str) -> str:
    """One stage in words."""
    until = "" if stage.status is Status.CONVERGED else "for a turn" if left else f"until {stage.status.name}"
    remark = "; ".join(part for part in (until, why) if part)
    return f"{name} ({remark})" if remark else name
