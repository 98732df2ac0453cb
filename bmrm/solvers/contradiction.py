"""Values and slopes that no convex function has: what a run has seen is checked against what it takes for proved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from bmrm.kernels.vectors import dot, tangents
from bmrm.problem import Regularizer, Rounding, Vector
from bmrm.solvers.metered import MeteredRisk
from bmrm.solvers.rounding import ROUNDOFF, UNDOUBTED, Budget

SHOWN = 4
"""Entries of a point that a message shows."""
ADVICE = "The {} is not convex, or its value or its slope is wrong."


class Planes(Protocol):
    """What proves a bound."""

    def highest(self, w: Vector) -> tuple[float, Vector | None]:
        """The value at `w` of the plane that is highest there, and the point where it was taken, if that is known."""
        ...


class Proof(NamedTuple):
    """A lower bound of min J, and what its rounding depends on.

    Attributes
    ----------
    size : the absolute values of what was added to make it.
    reach : the norm of the points where its planes were taken, their weighted mean.
    planes : that it rests on.
    """

    bound: float = -math.inf
    size: float = 0.0
    reach: float = 0.0
    planes: Planes | None = None


@dataclass(frozen=True, eq=False)
class Contradiction:
    """What has been found.

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


class Consistency:
    """What has been seen of a risk in a run, and the first contradiction in it.

    Nothing is called one before it was evaluated afresh at the points, since what a solver carries along drifts.

    Attributes
    ----------
    found : the first contradiction; None while there is none.
    """

    def __init__(self, risk: MeteredRisk, regularizer: Regularizer) -> None:
        self._risk, self._regularizer = risk, regularizer
        self._budget = Budget(risk)
        self._last: Seen | None = None
        self._excused = UNDOUBTED * ROUNDOFF
        """The largest share of what was added that rounding has been found to explain."""
        self.found: Contradiction | None = None

    # -- the checks ------------------------------------------------------------------------------

    def holds(self, w: Vector, value: float, a: Vector) -> bool:
        """Take R(w) and the subgradient there into account; whether they fit what was seen at the point before."""
        before, here = self._last, Seen(w, value, a)
        self._last = here
        if not math.isfinite(value):
            return True
        fits = value >= self._risk.infimum or self._above_infimum(here)
        if before is None or not math.isfinite(before.value):
            return fits
        old, new = tangents(before.w, before.a, w, a)
        if before.value + old > value:
            fits = self._explained(before, here, before.value + old - value) and fits
        if value - new > before.value:
            fits = self._explained(here, before, value - new - before.value) and fits
        return fits

    def plane_holds(self, a: Vector, b: float, size: float, reach: float, planes: Planes, here: Seen) -> bool:
        """Whether the plane R(w) >= <a, w> + b holds at a point that was evaluated."""
        height = dot(a, here.w) + b
        if not height > here.value:
            return True
        size = size + abs(here.value) + dot(np.abs(a), np.abs(here.w))
        if height - here.value <= self._excused * size:
            return True
        value = self._risk.value_and_subgradient(here.w)[0]
        rounding = self._budget.at(here.w, size, reach)
        if height - value <= rounding:
            self._excuse(height - here.value, rounding, size)
            return height - here.value <= rounding
        where = planes.highest(here.w)[1]
        self._blame(height, value, here.w, where, height - value, rounding)
        return False

    def bound_holds(self, proof: Proof, w: Vector, objective: float) -> float:
        """J(w), evaluated afresh where the bound is above `objective` by more than plainly is rounding."""
        excess = proof.bound - objective
        size = proof.size + abs(objective)
        if not excess > 0.0 or excess <= self._excused * size:
            return objective
        value, omega = self._risk.value_and_subgradient(w)[0], self._regularizer.value(w)
        size += abs(value) + abs(omega)
        reach = max(proof.reach, float(np.linalg.norm(w)))
        rounding = self._budget.at(w, size, reach)
        excess = proof.bound - (value + omega)
        if not excess > rounding:
            self._excuse(excess, rounding, size)
            return value + omega
        if proof.planes is None and proof.bound == self._risk.infimum:
            self._above_infimum(Seen(w, value, w))
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

    # -- what is done about it -------------------------------------------------------------------

    def _explained(self, one: Seen, other: Seen, excess: float) -> bool:
        """Whether rounding explains that the tangent at `one` lies above the risk at `other`."""
        size = _added(one) + _added(other) + dot(np.abs(one.a), np.abs(other.w))
        if excess <= self._excused * size:
            return True
        one, other = self._anew(one), self._anew(other)
        fresh = one.value + dot(one.a, other.w - one.w) - other.value
        norm = float(np.linalg.norm(one.w))
        rounding = self._budget.at(other.w, size, norm) + self._budget.at(one.w, 0.0, float(np.linalg.norm(other.w)))
        if fresh <= rounding:
            self._excuse(excess, rounding, size)
            return excess <= rounding
        self._blame(other.value + fresh, other.value, other.w, one.w, fresh, rounding)
        return False

    def _above_infimum(self, here: Seen) -> bool:
        infimum = self._risk.infimum
        size = abs(infimum) + abs(here.value)
        if infimum - here.value <= self._excused * size:
            return True
        value = self._risk.value_and_subgradient(here.w)[0]
        rounding = self._budget.at(here.w, size)
        if infimum - value <= rounding:
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

    def _anew(self, seen: Seen) -> Seen:
        return Seen(seen.w, *self._risk.value_and_subgradient(seen.w))

    def _excuse(self, excess: float, rounding: float, size: float) -> None:
        if size > 0.0:
            self._excused = max(self._excused, min(2.0 * excess, rounding) / size)

    @property
    def _subject(self) -> str:
        """The loss or the risk, by name."""
        rounding = self._risk.ability(Rounding)
        return f"risk {type(self._risk.inner).__name__}" if rounding is None else rounding.subject


def _added(seen: Seen) -> float:
    return abs(seen.value) + dot(np.abs(seen.a), np.abs(seen.w))


def shown(w: Vector) -> str:
    """A point in a message: its first entries, and what it is besides if it has more."""
    entries = ", ".join(f"{entry:.6g}" for entry in w[:SHOWN])
    if w.size <= SHOWN:
        return f"({entries})"
    return f"({entries}, ...; {w.size} entries, norm {float(np.linalg.norm(w)):.6g})"
