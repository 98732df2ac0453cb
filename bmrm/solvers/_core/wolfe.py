"""A step along which J falls enough and little of its slope is left: the strong Wolfe conditions."""

from __future__ import annotations

import math

import numpy as np

from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.line_search import LARGEST_STEP, Along, Trial

FALL = 1e-4
"""The least mean slope up to a step, as a share of the first one."""
ROUNDS = 60
"""Trial steps at most; a bracket shrinks by half at least every second one."""
KINK = 1e-6
"""The share of the fall so far that may still be had in a bracket across which the slope jumps: it is at a kink."""
FARTHEST, NEAREST = 10.0, 0.1
"""How many times farther the next trial may be, and how near to an end of the bracket, as a share of it."""


def enough(trial: Trial, here: float, slope: float, left: float) -> bool:
    """Whether a step fulfils the strong Wolfe conditions; where values tell no more than rounding, slopes decide.

    Parameters
    ----------
    here, slope : value and derivative at 0.
    left : the share of the slope that may be left, up or down.
    """
    return _falls(trial, here, slope) and abs(trial.derivative) <= left * abs(slope)


def wolfe_search(function: Along, here: float, slope: float, first: Trial, left: float) -> Trial | None:
    """A step that is `enough`; None where there is none (at a kink, or by rounding).

    Extrapolation, at least doubling, until the slope is positive; then the secant of the slopes across the bracket,
    or its middle where that does not shrink it by half.

    Parameters
    ----------
    function : values and derivatives at a vector of t, convex.
    here, slope : value and derivative at 0, the derivative negative.
    first : the first trial.
    left : as of `enough`.
    """
    low, high, width = Trial(0.0, here, slope), None, math.inf
    trial = first
    for _ in range(ROUNDS):
        if enough(trial, here, slope, left):
            return trial
        if trial.derivative < 0.0 and _falls(trial, here, slope):
            low, before = trial, low
        else:
            high = trial
        if high is None:
            t = _beyond(before, low)
        else:
            halved = high.t - low.t <= 0.5 * width
            width = high.t - low.t
            t = _inside(low, high) if halved else 0.5 * (low.t + high.t)
            least = max(KINK * (here - low.value), ROUNDING * abs(here))
            if not low.t < t < high.t or _still(low, high) <= least:
                return None
        if t > LARGEST_STEP:
            return None
        values, slopes = function(np.array([t]))
        trial = Trial(t, float(values[0]), float(slopes[0]))
    return None


def _falls(trial: Trial, here: float, slope: float) -> bool:
    if trial.value <= here + FALL * trial.t * slope:
        return True
    noise = 16.0 * ROUNDING * abs(here)
    return trial.value <= here + noise and trial.derivative <= (2.0 * FALL - 1.0) * slope


def _still(low: Trial, high: Trial) -> float:
    """How far below the lower end a convex function may fall inside a bracket: where its tangents meet."""
    rise = high.derivative - low.derivative
    if not (math.isfinite(rise) and rise > 0.0 and high.derivative > 0.0):
        return math.inf
    meets = (high.derivative * (high.t - low.t) - (high.value - low.value)) / rise
    return max(0.0, -low.derivative * meets)


def _beyond(before: Trial, low: Trial) -> float:
    """Where the secant of two negative slopes reaches 0, twice as far as the last or farther."""
    rise = low.derivative - before.derivative
    secant = low.t - low.derivative * (low.t - before.t) / rise if rise > 0.0 else math.inf
    return min(max(secant, 2.0 * low.t), FARTHEST * low.t)


def _inside(low: Trial, high: Trial) -> float:
    """Where the secant across the bracket reaches 0, if that is well inside."""
    width, share = high.t - low.t, 0.5
    if math.isfinite(high.derivative) and high.derivative > low.derivative:
        share = -low.derivative / (high.derivative - low.derivative)
    return low.t + width * min(max(share, NEAREST), 1.0 - NEAREST)
