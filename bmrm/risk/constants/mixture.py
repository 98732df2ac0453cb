"""A minimum over a constant added to all scores, and the mixture of slopes that makes it a valid cut.

With v_i = phi(f + b_i), slopes s_i there and their sums g_i, let shares theta >= 0 add up to 1 and make
sum theta_i g_i = 0. Then for all scores h and every constant b

    phi(h + b) >= sum theta_i (v_i + <s_i, h - f> + g_i (b - b_i))
                = sum theta_i (v_i - g_i b_i) + <sum theta_i s_i, h - f>

so both slopes AND offsets are mixed; the slope at one minimiser b, whose sum need not be 0, gives no valid cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bmrm.problem import IncompatibleError, ScoreFunction, Scores, Vector

UNBOUNDED = "the loss has no minimum over a free intercept; use a regularized one (data.bias: regularized) or none"


@dataclass(frozen=True, eq=False)
class Mixture:
    """Points b_i, (scores per row,) each, with shares theta_i and sums g_i as above.

    Attributes
    ----------
    shares : theta_i; where they add up to less than 1, the plane of slope 0 at the infimum has the rest.
    value : sum theta_i (v_i - g_i b_i), at most the minimum; +inf, without any points, where phi overflows at every b.
    best : the b of least phi that was met.
    least : phi there, at least the minimum.
    slopes : s_i, where they are at hand, else None (or none at all): that of phi at f + b_i then.
    """

    points: tuple[Vector, ...]
    shares: tuple[float, ...]
    value: float
    best: Vector
    least: float
    slopes: tuple[Scores | None, ...] = ()


@dataclass(frozen=True, eq=False)
class Point:
    """phi at `b`, (scores per row,), its slope there, and the sums of that over rows."""

    b: Vector
    value: float
    slope: Scores
    sums: Vector

    @property
    def finite(self) -> bool:
        """Whether a cut can be made here."""
        return math.isfinite(self.value) and bool(np.all(np.isfinite(self.sums)))

    @property
    def size(self) -> float:
        """The largest sum."""
        return float(np.max(np.abs(self.sums)))


def point_at(phi: ScoreFunction, f: Scores, b: Vector) -> Point:
    """What phi is at f + b."""
    with np.errstate(over="ignore", invalid="ignore"):  # a point that overflows is not used
        value, slope = phi.value_and_slope(f + phi.constant(b))
        return Point(b, value, slope, phi.total(slope))


def overflow(best: Vector) -> Mixture:
    """What is known of scores for which phi is +inf in floating point, whatever the constant."""
    return Mixture((), (), math.inf, best, math.inf)


def mixture_of(points: Sequence[Point], shares: Vector) -> Mixture:
    """The mixture of the points with a positive share, the best of them all beside it."""
    best = min(points, key=lambda point: point.value)
    used = [k for k, share in enumerate(shares.tolist()) if share > 0.0]
    middle = shares[used] @ np.array([points[k].b for k in used])
    # Around the middle, since far from it the products would cancel.
    value = float(sum(shares[k] * (points[k].value + points[k].sums @ (middle - points[k].b)) for k in used))
    constants, slopes = tuple(points[k].b for k in used), tuple(points[k].slope for k in used)
    return Mixture(constants, tuple(float(shares[k]) for k in used), value, best.b, best.value, slopes)


def vanishes(phi: ScoreFunction, slope: Scores, sums: Vector, rounding: float, least: float | Vector = 0.0) -> bool:
    """Whether the sums of a slope over rows are 0 up to rounding: at most so many times the sums of absolute values.

    `least` is the rounding of the terms themselves, where they are differences of larger numbers.
    """
    return not sums.any() or bool(np.all(np.abs(sums) <= rounding * phi.magnitude(slope) + least))


def rounding_of_sums(phi: ScoreFunction) -> float:
    """A bound of the error of a sum over rows, over the sum of absolute values.

    Errors of the terms themselves, and those of adding n numbers, which grow like the root of n.
    """
    rows = float(phi.total(phi.constant(np.ones(phi.facts.scores_per_row)))[0])
    return EPS * (TERM + math.sqrt(rows))


def slope_of(phi: ScoreFunction, f: Scores, mixture: Mixture) -> Scores:
    """sum theta_i s_i, the slope of the cut; 0 where there is none."""
    if not mixture.points:
        return phi.constant(np.zeros(phi.facts.scores_per_row))
    slope: Scores = None
    for k, (b, share) in enumerate(zip(mixture.points, mixture.shares, strict=True)):
        known = mixture.slopes[k] if mixture.slopes else None
        here = phi.value_and_slope(f + phi.constant(b))[1] if known is None else known
        if share != 1.0:
            here = here * share
        slope = here if slope is None else slope + here
    return slope


def derivative_of(phi: ScoreFunction, f: Scores, step: Scores, mixture: Mixture) -> float:
    """<slope of the cut, step>; of phi at the best constants where there is none."""
    if not mixture.points:
        return float(phi.along(f + phi.constant(mixture.best), step)(np.zeros(1))[1][0])
    here, derivative = np.zeros(1), 0.0
    for k, (b, share) in enumerate(zip(mixture.points, mixture.shares, strict=True)):
        slope = mixture.slopes[k] if mixture.slopes and phi.facts.scores_per_row > 1 else None
        if slope is None:
            derivative += share * float(phi.along(f + phi.constant(b), step)(here)[1][0])
        else:
            derivative += share * phi.product(slope, step)
    return derivative


def refuse_degenerate(phi: ScoreFunction) -> None:
    """IncompatibleError where a constant added to all scores changes nothing, or alone leaves nothing to learn."""
    count = phi.facts.scores_per_row
    zero = phi.constant(np.zeros(count))
    for direction in np.eye(count):
        with np.errstate(over="ignore", invalid="ignore"):  # of values there
            curve = phi.along(zero, phi.constant(direction))
            if curve(np.array([-FAR, FAR]))[1].all():
                return
            _, derivatives = curve(np.array([-FAR, -NEARER, 0.0, NEARER, FAR]))
        # so far off formulas of a user's may overflow, and their slopes be 0
        both = np.any(derivatives[:2]) and np.any(derivatives[-2:])
        if count == 1 and np.any(derivatives) and not both:
            raise IncompatibleError(
                "an intercept alone brings the loss to its lowest value, whatever the weights, so a free one has no "
                "meaning; use data.bias: regularized or none"
            )
        if np.any(derivatives != 0.0):
            return
    raise IncompatibleError(
        "the loss does not change when a constant is added to all scores, so a free intercept has no meaning; "
        "use data.bias: none"
    )


EPS = float(np.finfo(np.float64).eps)
TERM = 16.0
"""Rounding error of one row's slope, in units of roundoff."""
FAR = 1e305
"""A constant beyond every kink, near the largest float64."""
NEARER = 1e12
"""A constant beyond most kinks whose square does not overflow."""
