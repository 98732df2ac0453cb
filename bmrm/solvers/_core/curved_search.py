"""A step along a descent direction of a convex function with a continuous derivative."""

from __future__ import annotations

import math

import numpy as np

from bmrm.solvers._core.line_search import Along

FLAT = 0.1
"""Share of the first derivative below which that at the step may be left."""
ROUNDS = 40
WIDEST = 1e6


def step_length(function: Along, slope: float, first: float = 1.0, flat: float = FLAT) -> float:
    """A t > 0 where the derivative is at most `flat` times that at 0 in size; 0.0 where none is found.

    The derivative of a convex function rises, so its zero is bracketed and then found by secants (Illinois), bisection
    where values are not finite. Derivatives decide, not values: near the minimum these are all rounding.

    Parameters
    ----------
    function : values and derivatives at a vector of t.
    slope : the derivative at 0, negative.
    first : the first step tried, which is a good one where the model is true.
    """
    if not slope < 0.0:
        return 0.0
    low, below, high, above = 0.0, slope, math.inf, math.nan
    t, side = first, 0
    for _ in range(ROUNDS):
        value, derivative = (float(part[0]) for part in function(np.array([t])))
        finite = math.isfinite(value) and math.isfinite(derivative)
        if finite and abs(derivative) <= flat * -slope:
            return t
        if finite and derivative < 0.0:
            low, below = t, derivative
            above *= 0.5 if side < 0 else 1.0
            side = -1
        else:
            high, above = t, derivative if finite else math.nan
            below *= 0.5 if side > 0 else 1.0
            side = 1
        if not math.isfinite(high):
            if t >= WIDEST:
                return t
            t *= 2.0 + min(8.0, below / (slope - below) if below > slope else 8.0)
            continue
        middle = 0.5 * (low + high)
        t = low - below * (high - low) / (above - below) if math.isfinite(above) else middle
        if not low < t < high:
            t = middle
        if not low < t < high:
            break
    return low
