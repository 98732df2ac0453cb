"""The minimum over several constants added to the scores of all rows: Newton, or planes.

docs/decisions/free-intercept.md says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bmrm.problem import Check, ScoreFunction, Scores, Vector
from bmrm.risk.constants.mixture import EPS, Mixture, Point, mixture_of, overflow, point_at
from bmrm.risk.constants.newton import Curvature, Memory, newton, step_to_zero
from bmrm.risk.constants.planes import ACCURACY, NEAR, Remembered, minimum_by_planes

LARGEST = 32.0
"""Mean absolute score up to which the tolerance of the sums grows with the scores; what remains of larger sums is
cancelled by planes."""
FAR = 1e3
"""Ratio of constants to scores above which an earlier search is taken to have ended too far away."""
OPPOSITE = 1e4
"""Distance, in Newton steps, of the point whose opposite sums correct sums that are nearly 0."""


@dataclass
class Past:
    """What earlier searches have left."""

    memory: Memory = field(default_factory=Memory)
    planes: Remembered = field(default_factory=Remembered)
    _labels: Vector | None = None
    _rows: float = 1.0

    def least(self, phi: ScoreFunction, f: Scores) -> Vector:
        """The rounding of sums of slopes that are marginals less labels, (scores per row,).

        That of labels and marginals, as at scores 0; the exponents are differences of scores and have their rounding.
        """
        if self._labels is None:
            zero = phi.constant(np.zeros(phi.facts.scores_per_row))
            self._rows = float(phi.total(phi.constant(np.ones(phi.facts.scores_per_row)))[0])
            self._labels = 2.0 * EPS * phi.magnitude(phi.value_and_slope(zero)[1])
        return self._labels * min(1.0 + float(phi.magnitude(f).max()) / self._rows, LARGEST)


def minimum_over_constants(
    phi: ScoreFunction, f: Scores, start: Vector, past: Past, rounding: float, infimum: float, check: Check
) -> Mixture:
    """The mixture for K scores per row, searched from `start`, (K,); `rounding` is that of `vanishes`.

    `infimum` is a number that phi never goes below, or -inf; `check` is called between evaluations. A plane is lowered
    by what its sums leave, though they are all rounding, and where that is not little, others are looked for.
    """
    memory = past.memory
    here = point_at(phi, f, start)
    if not here.finite or _far(phi, f, start):
        here = min(here, point_at(phi, f, np.zeros(len(start))), key=lambda point: (not point.finite, point.value))
    if not here.finite:
        return overflow(start)
    if phi.facts.smooth and phi.facts.curved:
        least = past.least(phi, f + phi.constant(here.b))
        here, settled = newton(phi, f, here, memory, rounding, least, check)
        if settled and _left(here) > ACCURACY * abs(here.value):
            here = _finer(phi, f, here, memory, rounding, least, check)
        if settled and _left(here) <= NEAR * abs(here.value):
            found, left = mixture_of([here], np.ones(1)), _left(here)
            return found if left <= ACCURACY * abs(here.value) else replace(found, value=found.value - left)
        if memory.curvature is not None:
            corrected = _corrected(phi, f, here, memory.curvature, rounding, least, check)
            if corrected is not None:
                return corrected
    return minimum_by_planes(phi, f, here, past.planes, rounding, infimum, check)


def _far(phi: ScoreFunction, f: Scores, start: Vector) -> bool:
    """Whether these constants have been found for scores of another size: here they would take all digits of them."""
    most = float(np.abs(start).max(initial=0.0))
    if not most > LARGEST:
        return False
    rows = float(phi.total(phi.constant(np.ones(len(start))))[0])
    return most * rows > FAR * float(phi.magnitude(f).max())


def _left(here: Point) -> float:
    """What sums that are not quite 0 count, where the minimum is at other constants about as large as these."""
    return float(np.abs(here.sums) @ np.abs(here.b))


def _finer(
    phi: ScoreFunction, f: Scores, here: Point, memory: Memory, rounding: float, least: Vector, check: Check
) -> Point:
    """`here`, or a point where less is left, by Newton steps to sums that are as small as they would have to be."""
    share = ACCURACY * abs(here.value) / _left(here)
    found, _ = newton(phi, f, here, memory, share * rounding, share * least, check)
    return min(here, found, key=_left)


def _corrected(
    phi: ScoreFunction, f: Scores, here: Point, curvature: Curvature, rounding: float, least: Vector, check: Check
) -> Mixture | None:
    """`here`, whose sums are small, mixed with a little of a point where they are opposite and large; None if in vain.

    Scores are rounded when a constant is added to them, so that no constant makes the sums smaller than the second
    derivative times this rounding; the slopes are right, for the rounded scores.
    """
    step = step_to_zero(curvature, here, least, check)
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
    found = mixture_of([here, other], shares)
    if np.any(left > rounding * phi.magnitude(here.slope) + least) or found.least - found.value > ACCURACY * abs(
        found.least
    ):
        return None
    return found
