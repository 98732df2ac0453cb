"""The minimum over several constants added to the scores of all rows: Newton, or planes.

docs/decisions/free-intercept.md says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bmrm.problem import Check, ScoreFunction, Scores, Vector, magnitude_of
from bmrm.risk.mixture import Mixture, mixture_of, overflow
from bmrm.risk.mixture_newton import Array, Memory, Point, newton, point_at, step_to_zero
from bmrm.risk.mixture_planes import ACCURACY, Remembered, minimum_by_planes

OPPOSITE = 1e4
"""How many Newton steps away the point is with which sums that are nearly 0 are corrected."""


@dataclass
class Past:
    """What earlier searches have left."""

    memory: Memory = field(default_factory=Memory)
    planes: Remembered = field(default_factory=Remembered)


def minimum_over_constants(
    phi: ScoreFunction, f: Scores, start: Vector, past: Past, rounding: float, infimum: float, check: Check
) -> Mixture:
    """The mixture for K scores per row, searched from `start`, (K,); `rounding` is that of `vanishes`.

    `infimum` is a number that phi never goes below, or -inf; `check` is called between evaluations.
    """
    memory = past.memory
    here = point_at(phi, f, start)
    if not here.finite:
        here = point_at(phi, f, np.zeros(len(start)))
    if not here.finite:
        return overflow(start)
    if phi.smooth and phi.curved:
        here, settled = newton(phi, f, here, memory, rounding)
        if settled:
            alone = mixture_of([here.b], np.array([here.value]), here.sums[None, :], np.ones(1), here.b, here.value)
            return replace(alone, slopes=(here.slope,))
        if memory.curvature is not None:
            corrected = _corrected(phi, f, here, memory.curvature, rounding)
            if corrected is not None:
                return corrected
    return minimum_by_planes(phi, f, here, past.planes, rounding, infimum, check)


def _corrected(phi: ScoreFunction, f: Scores, here: Point, curvature: Array, rounding: float) -> Mixture | None:
    """`here`, whose sums are small, mixed with a little of a point where they are opposite and large; None if in vain.

    Scores are rounded when a constant is added to them, so that no constant makes the sums smaller than the second
    derivative times this rounding; the slopes are right, for the rounded scores.
    """
    step = step_to_zero(curvature, here)
    if step is None:
        return None
    other = point_at(phi, f, here.b + OPPOSITE * step)
    rise = other.sums - here.sums
    if not other.finite or not rise.any():
        return None
    share = float(-(here.sums @ rise) / (rise @ rise))
    if not 0.0 < share < 1.0:
        return None
    shares = np.array([1.0 - share, share])
    left = np.abs(shares @ np.array([here.sums, other.sums]))
    values = np.array([here.value, other.value])
    best = here if here.value <= other.value else other
    found = mixture_of([here.b, other.b], values, np.array([here.sums, other.sums]), shares, best.b, best.value)
    if np.any(left > rounding * magnitude_of(phi, here.slope)) or best.value - found.value > ACCURACY * abs(best.value):
        return None
    return replace(found, slopes=(here.slope, other.slope))
