"""Roots of increasing functions: by Newton's method if the derivative is known, else by secants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bmrm.numerics.bracket import Illinois, Trial, TrialRule, narrowed, shares
from bmrm.problem import Vector

ZERO = 1e-15
"""A sum of slopes whose absolute values sum to about 1 counts as 0 below this."""
FAR = 10.0
"""Longest Newton step before a bracket is known, in multiples of max(1, |t|)."""
FARTHEST = 1e21
"""No root is searched beyond this multiple of the first distance."""


def newton_root(
    at: Callable[[float], Trial], first: Trial, rate: Callable[[Trial], float]
) -> tuple[Trial, Trial, float]:
    """Two trials, and the share of the first with which their derivatives mix to 0.

    They are the same trial, or, where the derivative jumps or rounding stops the search, the ends of the smallest
    bracket known. Newton's method, safeguarded by the bracket. Where the derivative never changes its sign, the last
    trial is returned.

    Parameters
    ----------
    at : evaluates a t.
    first : where to start.
    rate : the derivative of the derivative at a trial.
    """
    low, high = narrowed(lambda points: [at(t) for t in points], [first], _Newton(rate))
    if low is None or high is None:
        here = low or high or first
        return here, here, 1.0
    return low, high, shares(low, high)[0]


class _Newton(TrialRule):
    def __init__(self, rate: Callable[[Trial], float]) -> None:
        self._rate = rate

    def settled(self, trial: Trial) -> bool:
        return abs(trial.derivative) <= ZERO or not math.isfinite(trial.derivative)

    def following(self, low: Trial | None, high: Trial | None, here: Trial) -> list[float]:
        """Newton's step inside the bracket, else its middle; outside where a side is missing."""
        rate = self._rate(here)
        newton = here.t - here.derivative / rate if rate > 0.0 else math.nan
        if low is not None and high is not None:
            t = newton if low.t < newton < high.t else 0.5 * (low.t + high.t)
            return [t] if low.t < t < high.t else []
        farthest = max(FAR, FAR * abs(here.t))
        if not (math.isfinite(newton) and abs(newton - here.t) <= farthest):
            newton = here.t + math.copysign(farthest, -here.derivative)
        return [newton] if newton != here.t and math.isfinite(newton) else []


def secant_root(function: Callable[[Vector], Any], first: float = 1e-6, enough: float = 0.0) -> float | None:
    """Where the rising `function` is `enough` or less in size; None where it keeps its sign as far as one can see.

    Parameters
    ----------
    function : of a vector of one number.
    first : the first distance from 0 that is tried.
    enough : 0 for a root to rounding; where the function jumps over less, the nearer side of the jump is taken.
    """

    def at(points: list[float]) -> list[Trial]:
        return [Trial(t, math.nan, float(np.ravel(function(np.array([t])))[0])) for t in points]

    low, high = narrowed(at, at([0.0]), _Secants(first, enough))
    return None if low is None or high is None else min(low, high, key=lambda end: abs(end.derivative)).t


class _Secants(TrialRule):
    """From 0 outwards until the sign changes, eight times as far each time; then secants, every eighth a bisection."""

    def __init__(self, first: float, enough: float) -> None:
        self._reach, self._farthest, self._inside, self._illinois = first, FARTHEST * first, 0, Illinois()
        self._enough = enough

    def settled(self, trial: Trial) -> bool:
        return abs(trial.derivative) <= self._enough

    def following(self, low: Trial | None, high: Trial | None, here: Trial) -> list[float]:
        side = 0 if here is low else 1
        self._illinois.note(side)
        if low is None or high is None:
            t, self._reach = math.copysign(self._reach, -here.derivative), 8.0 * self._reach
            return [t] if self._reach <= 8.0 * self._farthest else []
        self._inside += 1
        if high.t - low.t <= 1e-16 * (abs(low.t) + abs(high.t)):
            return []
        t = 0.5 * (low.t + high.t) if self._inside % 8 == 0 else self._illinois.secant(low, high, side)
        return [t] if low.t < t < high.t else []
