"""Consistency checks of sampled values and subgradients against tangents and the lower bound: is the risk convex?

They run for losses and risks of users. Those of the package have tests instead; see `Slack` for their rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bmrm.kernels.products.vectors import norm
from bmrm.problem import Regularizer, Risk, Scored, Vector, ability
from bmrm.problem.abilities import Rounding
from bmrm.problem.counted import CountedRisk
from bmrm.problem.regularizer import space_of
from bmrm.solvers._core.budget import Budgeted
from bmrm.solvers._core.rounding import ROUNDOFF, UNDOUBTED, Proof, ProvingPlanes, RoundingError, doubtful

KEPT, KEPT_BYTES = 64, 1 << 22
"""Most points that are kept to be compared with one another when a run ends, and their memory at most, in bytes."""
MOST_EXCUSED = 1e-11
"""Largest excess over a tangent, as a share of the sum of absolute terms, that is attributed to rounding without a new
evaluation, once rounding has explained one."""
SUSPECTS = 3
"""Pairs of points with the largest excess that are evaluated afresh."""
BESIDE, DOWN, LEAST_DOWN = 0.5, 3.0, 0.1
"""Extra test points for a user's risk: BESIDE times the way to the farthest point; and a step along the negative slope
whose linear decrease is DOWN times the height above the infimum, at least LEAST_DOWN times that of the highest value
seen."""
SHOWN = 4
"""Entries of a point that a message shows."""
ADVICE = "The {} is not convex, or its value or its slope is wrong."


@dataclass(frozen=True, eq=False)
class Contradiction:
    """A violated law: two points and the amount.

    Attributes
    ----------
    message : in words, the loss or risk, the points and the amount among them.
    amount : by how much what must not be higher is.
    rounding : how much of that rounding explains at most.
    points : those of the message.
    """

    message: str
    amount: float
    rounding: float
    points: tuple[Vector, ...]

    @property
    def details(self) -> dict[str, Any]:
        """For `Solution.details`."""
        return {"points": self.points, "amount": self.amount, "rounding": self.rounding}


class Seen(NamedTuple):
    """A point where the risk was evaluated."""

    w: Vector
    value: float
    a: Vector
    height: float
    """Of the plane that was taken there: the value, or less where it is not quite a tangent."""


class Audit:
    """The values and subgradients of a user's risk in a run, and the first contradiction between them.

    Nothing is called one before it was evaluated afresh at the points, since what a solver carries along drifts.

    Attributes
    ----------
    found : the first contradiction; None while there is none.
    """

    def __init__(self, risk: Risk, regularizer: Regularizer) -> None:
        self._risk, self._regularizer = risk, regularizer
        self._space = space_of(risk)
        self._most = max(2, min(KEPT, KEPT_BYTES // (16 * int(self._space.total(self._space.dim)))))
        self._rounding = RoundingError(risk)
        self._last: Seen | None = None
        self._kept: list[Seen] = []
        self._excused = UNDOUBTED * ROUNDOFF
        """The largest share of what was added that rounding has been found to explain."""
        self.found: Contradiction | None = None

    # -- the checks ------------------------------------------------------------------------------

    def holds(self, w: Vector, value: float, a: Vector, height: float | None = None) -> bool:
        """Take R(w) and the subgradient there into account; whether they fit what was seen at the point before.

        `height` is that of the plane with slope `a`, where it is not the value.
        """
        before, here = self._last, Seen(w, value, a, value if height is None else height)
        self._last = here
        if not math.isfinite(value):
            return True
        self._keep(here)
        fits = value >= self._risk.infimum or self._above_infimum(here)
        if before is None or not math.isfinite(before.value):
            return fits
        with np.errstate(over="ignore", invalid="ignore"):
            step = w - before.w
        old, new = self._space.dot(before.a, step), self._space.dot(a, step)
        if before.height + old > value:
            fits = self._explained(before, here, before.height + old - value) and fits
        if here.height - new > before.value:
            fits = self._explained(here, before, here.height - new - before.value) and fits
        return fits

    def plane_holds(self, a: Vector, b: float, size: float, reach: float, planes: ProvingPlanes, here: Seen) -> bool:
        """Whether the plane R(w) >= <a, w> + b holds at a point that was evaluated."""
        height = self._space.dot(a, here.w) + b
        if not height > here.value:
            return True
        size = size + abs(here.value) + self._space.dot(np.abs(a), np.abs(here.w))
        if height - here.value <= self._excused * size:
            return True
        value = self._evaluated(here.w).value
        rounding = self._rounding.at(here.w, size, reach)
        if not height - value > rounding:
            self._excuse(height - here.value, rounding, size)
            return height - (value if self._searched else here.value) <= rounding
        where = planes.highest(here.w)[1]
        self._blame(height, value, here.w, where, height - value, rounding)
        return False

    def doubts(self, proof: Proof, objective: float) -> bool:
        """Whether the bound is above `objective` by more than plainly is rounding."""
        return doubtful(proof, objective, self._excused)

    def bound_holds(self, proof: Proof, w: Vector, objective: float) -> float:
        """J(w), evaluated afresh where there are doubts about the bound; the contradiction is found, if there is."""
        if not self.doubts(proof, objective):
            return objective
        size = proof.size + abs(objective)
        value, omega = self._evaluated(w).value, self._regularizer.value(w)
        size += abs(value) + abs(omega)
        reach = max(proof.reach, self._space.norm(w))
        rounding = self._rounding.at(w, size, reach)
        excess = proof.bound - (value + omega)
        if not excess > rounding:
            self._excuse(excess, rounding, size)
            return value + omega
        if proof.planes is None and proof.bound == self._risk.infimum:
            self._above_infimum(Seen(w, value, w, value))
        height, where = (-math.inf, None) if proof.planes is None else proof.planes.highest(w)
        if self.found is None and height - value > rounding:
            self._blame(height, value, w, where, height - value, rounding)
        if self.found is None:
            subject = self._subject
            self._find(
                f"{subject}: J(w) is {value + omega:.6g} at w = {shown(w)}, but planes of the risk prove that it is"
                f" nowhere below {proof.bound:.6g}",
                subject,
                excess,
                rounding,
                (w,),
            )
        return value + omega

    def compare(self) -> None:
        """All points that were kept with one another."""
        if len(self._kept) > 1 and self.found is None:
            with np.errstate(all="ignore"):  # points may be anywhere
                self._compare()

    def _compare(self) -> None:
        w, a = np.array([seen.w for seen in self._kept]), np.array([seen.a for seen in self._kept])
        value = np.array([seen.value for seen in self._kept])
        products, sizes = self._space.total(np.array((a @ w.T, np.abs(a) @ np.abs(w).T)))
        own, absolute = products.diagonal(), sizes.diagonal()
        height = np.array([seen.height for seen in self._kept])
        excess = (height - own)[:, None] + products - value
        size = (np.abs(value) + absolute)[:, None] + np.abs(value) + absolute + sizes
        suspicion = np.where(excess > self._excused * size, excess / np.maximum(size, 1e-300), 0.0)
        for place in np.argsort(suspicion, axis=None)[: -SUSPECTS - 1 : -1]:
            one, other = divmod(int(place), len(value))
            if suspicion[one, other] > 0.0 and self.found is None:
                self._explained(self._kept[one], self._kept[other], float(excess[one, other]))

    def other_points(self, w: Vector, proof: Proof) -> list[Seen]:
        """Evaluate a user's risk at extra test points, before a run ends as CONVERGED.

        Half-way from the point nearest to `w` to the farthest; downhill, if the infimum is part of the proof.
        """
        if not self._kept:
            return []
        here = min(reversed(self._kept), key=lambda seen: self._space.norm(seen.w - w))
        if not math.isfinite(self._space.norm(here.a)):
            return []
        found = []
        for step in self._steps(here, proof):
            there = self._evaluated(w + step)
            self._last = here
            self.holds(*there)
            self.compare()
            found.append(there)
        return found

    def _steps(self, here: Seen, proof: Proof) -> list[Vector]:
        farthest = max((seen.w - here.w for seen in self._kept), key=self._space.norm, default=here.w)
        square = self._space.dot(here.a, here.a)
        uphill = (abs(here.value) or 1.0) / square * here.a if square > 0.0 else here.a
        steps = [BESIDE * farthest if self._space.norm(farthest) > 0.0 else BESIDE * uphill]
        if proof.floor > 0.0 and square > 0.0:
            highest = max((seen.value for seen in self._kept), default=here.value)
            above, span = here.value - self._risk.infimum, highest - self._risk.infimum
            steps.append(-max(DOWN * above, LEAST_DOWN * span) / square * here.a)
        return [step for step in steps if 0.0 < self._space.norm(step) < math.inf]

    # -- what is done about it -------------------------------------------------------------------

    def _explained(self, one: Seen, other: Seen, excess: float) -> bool:
        """Whether rounding explains that the tangent at `one` lies above the risk at `other`."""
        sizes = [
            self._space.dot(np.abs(seen.a), np.abs(w)) for seen, w in ((one, one.w), (other, other.w), (one, other.w))
        ]
        size = abs(one.value) + abs(other.value) + sum(sizes)
        if excess <= self._excused * size:
            return True
        told, one, other = other.value, self._evaluated(one.w), self._evaluated(other.w)
        fresh = one.height + self._space.dot(one.a, other.w - one.w) - other.value
        reach = self._space.norm(one.w), self._space.norm(other.w)
        rounding = self._rounding.at(other.w, size, reach[0]) + self._rounding.at(one.w, 0.0, reach[1])
        if not fresh > rounding:
            self._excuse(excess, rounding, size)
            return excess + (told - other.value if self._searched else 0.0) <= rounding
        self._blame(other.value + fresh, other.value, other.w, one.w, fresh, rounding)
        return False

    def _keep(self, seen: Seen) -> None:
        """As many points as may be; every other leaves when they are too many, the first and the last stay."""
        self._kept.append(seen)
        if len(self._kept) > self._most:
            del self._kept[1:-1:2]

    def _above_infimum(self, here: Seen) -> bool:
        infimum = self._risk.infimum
        size = abs(infimum) + abs(here.value)
        if infimum - here.value <= self._excused * size:
            return True
        value = self._evaluated(here.w).value
        rounding = self._rounding.at(here.w, size)
        if not infimum - value > rounding:
            return True
        subject = self._subject
        self._find(
            f"{subject}: R(w) is {value:.6g} at w = {shown(here.w)}, below its infimum, {infimum:.6g}",
            subject,
            infimum - value,
            rounding,
            (here.w,),
            f"The infimum that the {subject.split()[0]} states is wrong, or its value is.",
        )
        return False

    def _blame(
        self, height: float, value: float, w: Vector, where: Vector | None, excess: float, rounding: float
    ) -> None:
        subject = self._subject
        taken = "an earlier point" if where is None else f"w = {shown(where)}"
        points = (w,) if where is None else (where, w)
        self._find(
            f"{subject}: R(w) is {value:.6g} at w = {shown(w)}, below the tangent taken at {taken}, which is"
            f" {height:.6g} there",
            subject,
            excess,
            rounding,
            points,
        )

    def _find(
        self, what: str, subject: str, excess: float, rounding: float, points: tuple[Vector, ...], advice: str = ADVICE
    ) -> None:
        if self.found is None:
            amount = f"{what}: by {excess:.4g}, of which rounding explains at most {rounding:.1g}."
            kept = tuple(np.array(point) for point in points)
            self.found = Contradiction(f"{amount} {advice.format(subject.split()[0])}", excess, rounding, kept)

    def _evaluated(self, w: Vector) -> Seen:
        """R(w) afresh; with several free constants what is attained, the plane being as high as a search has proved."""
        scored = ability(self._risk, Scored)
        if scored is not None and self._searched:
            value, slope, height = scored.phi.tangent(scored.map.matvec(w))
            return Seen(w, value, scored.map.rmatvec(slope), height)
        value, a = self._risk.value_and_subgradient(w)
        return Seen(w, value, a, value)

    @cached_property
    def _searched(self) -> bool:
        return searches_constants(self._risk)

    def _excuse(self, excess: float, rounding: float, size: float) -> None:
        """Less is excused from now on without a pass, but no more than a little: another point may round less."""
        share = min(2.0 * excess, rounding) / size if 0.0 < size < math.inf else 0.0
        self._excused = max(self._excused, min(share, MOST_EXCUSED))

    @property
    def _subject(self) -> str:
        """The loss or the risk, by name."""
        rounding = ability(self._risk, Rounding)
        risk: Any = self._risk
        while isinstance(risk, (Budgeted, CountedRisk)):
            risk = risk.inner
        return f"risk {type(risk).__name__}" if rounding is None else rounding.subject


def searches_constants(risk: Risk) -> bool:
    """Whether values of R end a search for several constants, which leaves a little below what is attained."""
    scored = ability(risk, Scored)
    return scored is not None and scored.intercept is not None and scored.phi.facts.scores_per_row > 1


def shown(w: Vector) -> str:
    """A point in a message: its first entries, and what it is besides if it has more."""
    entries = ", ".join(f"{entry:.6g}" for entry in w[:SHOWN])
    if w.size <= SHOWN:
        return f"({entries})"
    return f"({entries}, ...; {w.size} entries, norm {norm(w):.6g})"
