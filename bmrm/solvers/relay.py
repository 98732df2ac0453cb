"""Several solvers one after another on the same problem: the best point, the best bound, one history."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from bmrm.problem import Callback, IncompatibleError, Iteration, Regularizer, Risk, Solution, Status, Vector
from bmrm.solvers import SOLVERS
from bmrm.solvers.monitor import IterativeSolver

CHAINED = " > "
"""Between the names of solvers that are made to follow one another."""
EAGER, PATIENT = 2.0, 10.0
"""A leg that would take so many times longer than it has taken makes room: within a chain, and for another chain."""
EARLY = 12.0
"""Passes within which a leg is not judged."""


class Relay:
    """Legs on one risk, joined as if they were one run.

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
        start: Vector | None,
        callback: Callback | None,
    ) -> None:
        self.options, self.risk, self.regularizer, self.callback = options, risk, regularizer, callback
        self.start = start
        self.total: Solution | None = None
        self._stopped = False
        self.left = False
        """Whether the last leg was left because it was too slow."""

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do: converged, a limit of the whole, or a stop from outside."""
        if self.total is None:
            return False
        status = self.total.status
        return self._stopped or status in (Status.CONVERGED, Status.TIME_LIMIT, Status.ITERATION_LIMIT)

    def run(self, solver: Any, *, patience: float = math.inf) -> Solution:
        """One leg from the best point so far, ended where what is left would take `patience` times what is used.

        Raises IncompatibleError, with nothing changed, where the solver does not fit.
        """
        before = self.total
        limits: dict[str, Any] = {"tolerance": self.options.tolerance, "max_iterations": self._iterations_left()}
        if self.options.time_limit is not None:
            limits["time_limit"] = max(self.options.time_limit - (before.seconds if before else 0.0), 1e-9)
        leg = dataclasses.replace(solver, **limits)
        pace = None if patience == math.inf else Pace(self.options.tolerance, patience)
        start = before.w if before is not None else self.start
        self._stopped = False
        callback = self._relay(before, pace)
        found: Solution = leg.minimize(
            self.risk, self.regularizer, start=start, callback=callback, **_handed_over(before, leg)
        )
        self.left = pace is not None and pace.slow and not self._stopped and found.status is Status.INTERRUPTED
        if self.left:
            found = dataclasses.replace(found, status=Status.STALLED)
        elif found.status is Status.INTERRUPTED:
            self._stopped = True
        self.total = found if before is None else self._joined(before, found)
        if self.total.status is not Status.CONVERGED and self.total.relative_gap <= self.options.tolerance:
            self.total = dataclasses.replace(self.total, status=Status.CONVERGED)
        return found

    def _iterations_left(self) -> int:
        used = 0 if self.total is None else self.total.iterations + 1
        return max(1, self.options.max_iterations - used)

    def _relay(self, before: Solution | None, pace: Pace | None) -> Callback | None:
        if before is None and pace is None:
            return self._outside if self.callback is not None else None

        def relay(line: Iteration) -> bool:
            whole = line if before is None else _shifted(before, line)
            stop = self._outside(whole)
            if before is not None and whole.relative_gap <= self.options.tolerance:
                return True  # the two legs together have met what neither has alone
            return stop or (pace is not None and pace.too_slow(whole))

        return relay

    def _outside(self, line: Iteration) -> bool:
        if self.callback is not None and self.callback(line):
            self._stopped = True
        return self._stopped

    def _joined(self, before: Solution, leg: Solution) -> Solution:
        better = leg if leg.objective <= before.objective else before
        bound = max(before.lower_bound, leg.lower_bound)
        return dataclasses.replace(
            leg,
            w=better.w,
            objective=better.objective,
            lower_bound=min(bound, better.objective),
            iterations=before.iterations + 1 + leg.iterations,
            passes=before.passes + leg.passes,
            seconds=before.seconds + leg.seconds,
            history=before.history + tuple(_shifted(before, line) for line in leg.history),
            planes=leg.planes or before.planes,
        )


@dataclass(frozen=True)
class Chains(IterativeSolver):
    """Solvers in order: the next takes over where one stalls, or is too slow; the last one may take its time.

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
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`; raises IncompatibleError when no solver fits."""
        relay = Relay(self, risk, regularizer, start, callback)
        story: list[str] = []
        refusal = IncompatibleError("no solver to choose from")
        for name, patience in self._legs():
            try:
                leg = relay.run(SOLVERS.make(name), patience=patience)
            except IncompatibleError as error:
                refusal = error
                continue
            story.append(_told(name, leg, relay.left, self.reasons.get(name, "")))
            if relay.ended:
                break
        if relay.total is None:
            raise refusal
        return dataclasses.replace(relay.total, solver=", then ".join(story))

    def _legs(self) -> list[tuple[str, float]]:
        """Names with the patience that each deserves."""
        legs = []
        for chain in self.names:
            *first, last = chain.split(CHAINED)
            legs += [(name, EAGER) for name in first] + [(last, PATIENT)]
        return [*legs[:-1], (legs[-1][0], math.inf)] if legs else []


def _told(name: str, leg: Solution, left: bool, why: str) -> str:
    """One leg in words."""
    until = "" if leg.status is Status.CONVERGED else "left as too slow" if left else f"until {leg.status.name}"
    remark = "; ".join(part for part in (until, why) if part)
    return f"{name} ({remark})" if remark else name


class Pace:
    """Judges by the last half of a leg whether the tolerance is in reach; in passes, so that runs can be repeated."""

    def __init__(self, tolerance: float, patience: float) -> None:
        self.slow = False
        self._patience = patience
        self._goal = math.log(max(tolerance, 1e-14))
        self._seen: list[tuple[float, float]] = []
        self._least = math.inf
        self._moved = 0.0

    def too_slow(self, line: Iteration) -> bool:
        """Whether what is left would take `patience` times what has been used."""
        now = line.passes
        gap = math.log(line.relative_gap) if 0.0 < line.relative_gap < math.inf else math.inf
        self._seen.append((now, min(gap, 50.0)))
        used = now - self._seen[0][0]
        if used < EARLY or gap <= self._goal:
            return False
        if gap < self._least:
            self._least, self._moved = gap, used
            then, before = next(pair for pair in self._seen if pair[0] >= self._seen[0][0] + 0.5 * used)
            left = (gap - self._goal) * (now - then)
            self.slow = left > self._patience * used * max(before - gap, 1e-300) and now > then
        else:  # some solvers look at the gap now and then only
            self.slow = used > (1.0 + self._patience) * max(self._moved, EARLY)
        return self.slow


def _handed_over(before: Solution | None, solver: Any) -> dict[str, Any]:
    """Slopes of the leg before, where the solver knows what to do with them."""
    if before is None or "slope" not in before.details:
        return {}
    return {"slope": before.details["slope"]} if "slope" in signature(solver.minimize).parameters else {}


def _shifted(before: Solution, line: Iteration) -> Iteration:
    """A line of a leg as one of the whole."""
    better = line.objective <= before.objective
    return dataclasses.replace(
        line,
        iteration=before.iterations + 1 + line.iteration,
        objective=min(line.objective, before.objective),
        lower_bound=min(max(line.lower_bound, before.lower_bound), line.objective, before.objective),
        passes=before.passes + line.passes,
        seconds=before.seconds + line.seconds,
        w=line.w if better or line.w is None else before.w,
    )
