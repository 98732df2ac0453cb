"""Search for the sign change of the derivative of a convex function of one variable: a bracket that trials narrow.

Line searches and the search of the intercept at which slopes sum to 0 are this one loop. A `TrialRule` says when a
trial is good enough and where the next ones are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

ROUNDING = 2.0**-50
"""Relative rounding error of a sum over rows: four times the roundoff of float64."""


class Trial(NamedTuple):
    """A point of the search: t, the value and the derivative there, and whatever else the caller wants to keep."""

    t: float
    value: float
    derivative: float
    kept: Any = None

    @property
    def finite(self) -> bool:
        """Whether value and derivative are; either overflows where a loss is steep."""
        return math.isfinite(self.value) and math.isfinite(self.derivative)

    @property
    def flat(self) -> bool:
        """Whether the derivative is 0 within the rounding of values."""
        return self.finite and abs(self.derivative) * max(1.0, abs(self.t)) <= ROUNDING * abs(self.value)


At = Callable[[list[float]], Sequence[Trial]]
"""Several points at once, since over a network a call costs more than a point."""


class TrialRule(ABC):
    """The rule of a search: when to stop, and which points to try next.

    Attributes
    ----------
    rounds : batches of trials at most.
    """

    rounds = 100

    @abstractmethod
    def settled(self, trial: Trial) -> bool:
        """Whether the search ends here."""

    def falls(self, trial: Trial) -> bool:
        """Whether the minimum is taken to lie at a larger t."""
        return trial.derivative < 0.0

    @abstractmethod
    def following(self, low: Trial | None, high: Trial | None, here: Trial) -> list[float]:
        """The next trials, ascending, with the ends that are known and the last trial; none to give up."""


def narrowed(
    at: At, trials: Sequence[Trial], rule: TrialRule, low: Trial | None = None
) -> tuple[Trial | None, Trial | None]:
    """The ends of the bracket, None where there is none; one trial for both where the search has settled.

    Parameters
    ----------
    at : evaluates points.
    trials : the first ones.
    rule : see there.
    low : an end that is known.
    """
    high: Trial | None = None
    for _ in range(rule.rounds):
        for here in trials:
            if rule.settled(here):
                return here, here
            if rule.falls(here):
                low = here if low is None or here.t > low.t else low
            else:
                high = here if high is None or here.t < high.t else high
        points = rule.following(low, high, here)
        if not points:
            break
        trials = at(points)
    return low, high


def shares(low: Trial, high: Trial) -> tuple[float, float]:
    """Of two trials, such that the derivatives cancel."""
    if low is high:
        return 1.0, 0.0
    rise = high.derivative - low.derivative
    return high.derivative / rise, -low.derivative / rise


def meeting(low: Trial, high: Trial) -> float:
    """How far from `low` the tangents at both ends meet: the minimum where there is one kink between them."""
    rise = high.derivative * (high.t - low.t) - (high.value - low.value)
    return rise / (high.derivative - low.derivative)


class Illinois:
    """Secants across a bracket; an end that stays when the other moves twice counts half (Dowell & Jarratt 1971)."""

    def __init__(self) -> None:
        self._weights = [1.0, 1.0]
        self._side = -1

    def note(self, side: int) -> None:
        """The end 0 (`low`) or 1 (`high`) has moved."""
        self._weights[side] = 1.0
        self._weights[1 - side] *= 0.5 if side == self._side else 1.0
        self._side = side

    def secant(self, low: Trial, high: Trial, side: int) -> float:
        """Where the secant is 0, counted from the end `side`."""
        ends = (low, high)
        (a, at_a), (b, at_b) = ((ends[k].t, self._weights[k] * ends[k].derivative) for k in (side, 1 - side))
        return a - at_a * (b - a) / (at_b - at_a)
