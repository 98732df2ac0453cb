"""Solvers in turns on the same problem, within budgets of passes that grow: one run, of one history and one bound."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from typing import NamedTuple, cast

import numpy as np

from bmrm.problem import IncompatibleError, InputError, Start, State, Status
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.auto.turn import HandingOver, turn
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, SlicedSolver, Step, Steps

GROWTH = 4.0
"""Budget of a turn over that of the turn before."""
PLAN = "plan"
"""Key of the remaining turns in the saved state."""


class Plan(NamedTuple):
    """Solvers left in this round, those of the next, the reserve once all have stalled, and the passes of a turn."""

    waiting: tuple[str, ...]
    later: tuple[str, ...]
    reserve: tuple[str, ...]
    passes: float

    @property
    def last(self) -> bool:
        """Whether no other solver can take over from the first one."""
        return len(self.waiting) + len(self.later) + len(self.reserve) == 1

    @property
    def budget(self) -> float:
        """Passes of the first that waits; without end where it is the last."""
        return self.passes if len(self.waiting) + len(self.later) > 1 else math.inf

    def state(self) -> State:
        """To be saved."""
        return {PLAN: np.array(json.dumps(self))}

    def after(self, stays: bool) -> Plan:
        """When the first has run, and stays or not."""
        waiting, later = self.waiting[1:], self.later + self.waiting[:1] * stays
        if waiting:
            return self._replace(waiting=waiting, later=later)
        if later:
            return self._replace(waiting=later, later=(), passes=GROWTH * self.passes)
        return self._replace(waiting=self.reserve, reserve=())


@dataclass(frozen=True)
class Turns(SlicedSolver):
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

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`; raises IncompatibleError when no solver fits."""
        story, refusal = _Story(self.reason), IncompatibleError("no solver to choose from")
        reserve = tuple(name for name in self.reserve if name not in self.names)
        plan = _planned(run.earlier, self.passes) or Plan(self.names, (), reserve, self.passes)
        handing, run.title = HandingOver(run), story.told
        while plan.waiting:
            name = plan.waiting[0]
            run.take_turn(name, last=plan.last, noted=plan.state)
            story.begins(name)
            try:
                end = yield from turn(run, self._limited(run, name), plan.budget, handing)
            except IncompatibleError as error:
                refusal, plan = error, plan.after(stays=False)
                del story.parts[-1]
                continue
            if end.rule is not None:
                return end.rule
            story.ends(end.why)
            handing.take(run)
            plan = plan.after(stays=end.why is None)
        if not story.parts:
            raise refusal
        yield Step.STALLED
        return None

    def _limited(self, run: Monitor, name: str) -> IterativeSolver:
        """The solver, to the same accuracy, for the iterations that are left."""
        limits = {field.name: getattr(self, field.name) for field in fields(IterativeSolver)}
        limits["max_iterations"] = max(1, self.max_iterations - len(run.history) - run.ahead)
        return cast(IterativeSolver, SOLVERS.make(name, limits)).resolved()


class _Story:
    """Which solvers ran, in words.

    Attributes
    ----------
    parts : names with their ends, those that are over; the last has no end.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self.parts: list[tuple[str, str]] = []

    def begins(self, name: str) -> None:
        """It has its turn."""
        self.parts.append((name, ""))

    def ends(self, why: Status | None) -> None:
        """It has ended for this reason; None where its turn was over."""
        self.parts[-1] = (self.parts[-1][0], "for a turn" if why is None else f"until {why.name}")

    def told(self, status: Status) -> str:
        """The whole, after a run of this status."""
        found = []
        for k, (name, until) in enumerate(self.parts):
            end = until or ("" if status is Status.CONVERGED else f"until {status.name}")
            remark = "; ".join(filter(None, (end, "" if k else self._reason)))
            found.append(f"{name} ({remark})" if remark else name)
        return ", then ".join(found)


def _planned(earlier: Start | None, passes: float) -> Plan | None:
    """What a run that is gone on from had still to try."""
    text = str(earlier.state.get(PLAN, "")) if earlier is not None else ""
    try:
        waiting, later, reserve, passes = json.loads(text) if text else ([], [], [], passes)
        one, two, three = (tuple(map(str, some)) for some in (waiting, later, reserve))
        return Plan(one, two, three, float(passes)) if waiting else None
    except (TypeError, ValueError) as error:
        raise InputError(f"the plan to go on from is damaged: {error}") from error
