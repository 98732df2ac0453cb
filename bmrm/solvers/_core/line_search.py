"""The minimum of a convex function of one variable, from batches of values and derivatives.

The bracket [low, high] has a derivative below zero at `low` and above zero at `high`; the two tangents meet at a
value that the function cannot go below, so the search knows how far its best point is from the minimum and stops
when that is small enough. Trial points: where the tangents meet (exact for two linear pieces), where the line
through the two derivatives crosses zero (exact for a quadratic), and the middle, which halves the bracket whatever
the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmrm.problem import Vector

Along = Callable[[Vector], tuple[Vector, Vector]]
"""t -> (values, derivatives), for a vector of t."""

ROUNDS = 100
"""Far more than bisection to the last bit needs from any bracket that can arise."""

NEAR_ZERO = 1e-10
"""Where the direction of descent is judged."""

LARGEST_STEP = 1e12
"""A function that still falls here is taken to fall for ever in rounding."""


@dataclass(frozen=True)
class Trial:
    """A point of the search."""

    t: float
    value: float
    derivative: float


def total(one: Along, other: Along) -> Along:
    """The sum of two functions."""

    def both(t: Vector) -> tuple[Vector, Vector]:
        value, derivative = one(t)
        more, slope = other(t)
        return value + more, derivative + slope

    return both


def minimize_along(function: Along, accuracy: float, *, batch: int = 3, first: float = 1.0) -> Trial:
    """The best of the points tried with t > 0, within `accuracy` of the minimum over t >= 0 unless rounding forbids.

    Parameters
    ----------
    function : values and derivatives at a vector of t.
    accuracy : how far above the minimum the value may be.
    batch : points asked for at once. With 3 a call over a network pays for itself; with 1 fewer points are tried.
    first : the first step tried.

    Notes
    -----
    The descent is judged at `NEAR_ZERO`, not at 0: the point left by an earlier search often lies on a kink, where
    the subgradient at hand may belong to the other side.
    """
    low, *more = _trials(function, [NEAR_ZERO, first] + [2.0 * first] * (batch > 1))
    best, high, width = low, None, math.inf
    if low.derivative >= 0.0:
        return low
    for k in range(ROUNDS):
        for trial in more:
            best = min(best, trial, key=lambda one: one.value)
            if trial.derivative == 0.0:
                return best
            if trial.derivative > 0.0 or not math.isfinite(trial.value):
                high = trial if high is None or trial.t < high.t else high
            elif trial.t > low.t:
                low = trial
        if high is None:
            points = [2.0 ** (j + 1) * low.t for j in range(batch)]
        else:
            floor, meet = _tangents(low, high)
            if best.value - floor <= accuracy:
                break
            halved = high.t - low.t <= 0.5 * width
            width = high.t - low.t
            points = _inside(low, high, meet, k, batch, halved)
        if not points or points[0] > LARGEST_STEP:
            break
        more = _trials(function, points)
    return best


def _trials(function: Along, points: list[float]) -> list[Trial]:
    values, derivatives = function(np.array(points))
    return list(map(Trial, points, map(float, values), map(float, derivatives)))


def _tangents(low: Trial, high: Trial) -> tuple[float, float]:
    """The value below which the function cannot go on the bracket, and where the tangents reach it."""
    if not (math.isfinite(high.value) and low.derivative < high.derivative < math.inf):
        return -math.inf, 0.5 * (low.t + high.t)
    width = high.t - low.t
    meet = (high.value - low.value - high.derivative * width) / (low.derivative - high.derivative)
    meet = min(max(meet, 0.0), width)
    return low.value + low.derivative * meet, low.t + meet


def _inside(low: Trial, high: Trial, meet: float, k: int, batch: int, halved: bool) -> list[float]:
    """Trial points strictly inside the bracket, ascending; none when the bracket has closed."""
    middle = 0.5 * (low.t + high.t)
    if low.derivative < high.derivative < math.inf:
        secant = low.t + (high.t - low.t) * (-low.derivative / (high.derivative - low.derivative))
    else:
        secant = middle
    if batch > 1:
        wanted = [secant, meet, middle][:batch]
    elif not halved:
        wanted = [middle]
    else:
        wanted = [secant if k % 2 else meet]
    inside = sorted({t for t in wanted if low.t < t < high.t})
    return inside or [t for t in (middle,) if low.t < t < high.t]
