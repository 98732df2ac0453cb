"""The line search of the thesis' section 2.2: the secant method on slopes, until the slope is small enough."""

from __future__ import annotations

import math

import numpy as np

from bmrm.solvers._core.line_search import LARGEST_STEP, Along, Trial

ROUNDS = 100
"""Trial steps at most; a bracket shrinks by half at least every second one."""


def secant_search(
    function: Along, slope: float, *, first: float, relative: float, absolute: float
) -> tuple[Trial | None, int]:
    """A step where the slope has become small, and the number of trial steps.

    First a bracket is sought: from a negative slope to a positive one, by extrapolating the secant but at least
    doubling. Then the secant inside it says where to look, halving instead where that does not shrink the bracket.

    Parameters
    ----------
    function : values and derivatives at a vector of t, convex.
    slope : the derivative at 0, negative.
    first : the first trial step.
    relative, absolute : a slope of at most `relative |slope|` or `absolute` is small enough.

    Returns
    -------
    The best trial where rounding or a wall of infinite values ends the search before; None where there was none with
    a finite value.
    """
    small = max(relative * abs(slope), absolute)
    low, high, best = (0.0, slope), (math.inf, math.inf), None
    t, width = first, math.inf
    for k in range(1, ROUNDS + 1):
        trial = Trial(t, *(float(part[0]) for part in function(np.array([t]))))
        finite = math.isfinite(trial.value) and math.isfinite(trial.derivative)
        if finite and (best is None or abs(trial.derivative) <= abs(best.derivative)):
            best = trial
        if finite and abs(trial.derivative) <= small:
            return trial, k
        here = (t, trial.derivative if finite else math.inf)
        if here[1] < 0.0:
            before, low = low, here
            if math.isinf(high[0]):
                t = _beyond(before, low)
        else:
            high = here
        if math.isfinite(high[0]):
            halved = high[0] - low[0] <= 0.5 * width
            width = min(width, high[0] - low[0]) if halved or math.isinf(width) else width
            t = _inside(low, high, halved)
            if not low[0] < t < high[0]:
                return best, k
        elif t > LARGEST_STEP:
            return best, k
    return best, ROUNDS


def _beyond(before: tuple[float, float], low: tuple[float, float]) -> float:
    """Where the secant of two negative slopes reaches 0, at least twice as far as the last."""
    rise = low[1] - before[1]
    secant = low[0] - low[1] * (low[0] - before[0]) / rise if rise > 0.0 else math.inf
    return max(2.0 * low[0], secant) if math.isfinite(secant) else 10.0 * low[0]


def _inside(low: tuple[float, float], high: tuple[float, float], halved: bool) -> float:
    """Where the secant across the bracket reaches 0; its middle where that is no help."""
    if math.isinf(high[1]):
        return math.sqrt(low[0] * high[0]) if low[0] > 0.0 else 1e-3 * high[0]
    if not halved:
        return 0.5 * (low[0] + high[0])
    return low[0] - low[1] * (high[0] - low[0]) / (high[1] - low[1])
