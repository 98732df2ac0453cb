"""The minimum over one constant added to all scores: a bracket, narrowed by batches of trial points."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bmrm.problem import IncompatibleError, ScoreFunction, Scores, Vector
from bmrm.risk.mixture import UNBOUNDED, Mixture, mixture_of

ROUNDS = 100
FARTHEST = 1e100
"""No bracket is looked for beyond."""
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
Curve = Callable[[Vector], tuple[Vector, Vector]]


class Point(NamedTuple):
    """A constant b, the value there and the derivative in b."""

    b: float
    value: float
    sum: float

    @property
    def flat(self) -> bool:
        """Whether the derivative is 0, up to the rounding of a sum over rows."""
        return abs(self.sum) * max(1.0, abs(self.b)) <= ROUNDING * abs(self.value) or self.sum == 0.0


class Bracket(NamedTuple):
    """`low` has a negative derivative and `high` a positive one, or both are one flat point."""

    low: Point
    high: Point

    @property
    def shares(self) -> tuple[float, float]:
        """Of `low` and `high`, such that the derivatives cancel."""
        if self.low is self.high:
            return 1.0, 0.0
        return self.high.sum / (self.high.sum - self.low.sum), -self.low.sum / (self.high.sum - self.low.sum)

    @property
    def loss(self) -> float:
        """How far the mixture is below the better end."""
        low, high = self
        below_low = -low.sum * (self.crossing - low.b)
        below_high = high.sum * (high.b - self.crossing)
        return max(0.0, below_low if low.value < high.value else below_high)

    @property
    def crossing(self) -> float:
        """Where the two tangents meet."""
        low, high = self
        if low is high:
            return low.b
        width = high.b - low.b
        cut = ((high.value - low.value) - high.sum * width) / (low.sum - high.sum)
        return low.b + min(max(cut, 0.0), width)

    @property
    def done(self) -> bool:
        """Whether the ends are as good as the mixture, up to rounding."""
        low, high = self
        scale = min(abs(low.value), abs(high.value))
        return low is high or self.loss <= ROUNDING * scale or not low.b < 0.5 * (low.b + high.b) < high.b


def search(curve: Curve, start: float, reach: float) -> Bracket:
    """The bracket of the minimum of a convex curve, tight up to rounding.

    Parameters
    ----------
    curve : b -> (values, derivatives), for a vector of b.
    start, reach : where the minimum is expected, and how far from there.
    """
    bracket = _first(curve, start, reach)
    for _ in range(ROUNDS):
        if bracket.done:
            break
        low, high = bracket
        width = high.b - low.b
        secant = low.b - low.sum * width / (high.sum - low.sum)
        # The crossing is exact for one kink, the secant for a parabola; the others shrink the bracket around both.
        nearby = 0.01 * width
        trials = np.array([bracket.crossing, secant - nearby, secant, secant + nearby, low.b + 0.5 * width])
        trials = np.unique(trials[(trials > low.b) & (trials < high.b)])
        tightened = _tighten(bracket, _points(curve, trials))
        if tightened.high.b - tightened.low.b >= width:
            break
        bracket = tightened
    return bracket


def minimum_over_constant(phi: ScoreFunction, f: Scores, start: float, reach: float) -> Mixture:
    """The mixture for one score per row; `start` and `reach` as in `search`."""
    bracket = search(phi.along(f, phi.constant(np.ones(1))), start, reach)
    ends = [_at(phi, f, point.b) for point in dict.fromkeys(bracket)]
    # Slopes may take another side of a kink than the curve did: then step outwards until the sums have their signs.
    push = max(ROUNDING * max(1.0, abs(bracket.low.b)), 1e-3 * (bracket.high.b - bracket.low.b))
    while not (ends[0].sum <= 0.0 <= ends[-1].sum or any(end.flat for end in ends)):
        if push > FARTHEST:
            raise IncompatibleError(UNBOUNDED)
        ends = (
            [_at(phi, f, ends[0].b - push), ends[0]]
            if ends[0].sum > 0.0
            else [ends[-1], _at(phi, f, ends[-1].b + push)]
        )
        push *= 16.0
    ends = [end for end in ends if end.flat][:1] or ends
    shares = np.array(Bracket(ends[0], ends[-1]).shares[: len(ends)])
    points = [np.array([end.b]) for end in ends]
    values, sums = np.array([end.value for end in ends]), np.array([[end.sum] for end in ends])
    return mixture_of(points, values, sums, shares, points[int(np.argmin(values))])


def _first(curve: Curve, start: float, reach: float) -> Bracket:
    """A bracket that holds the minimum, not tight."""
    points = _points(curve, start + reach * np.array([-1.0, 0.0, 1.0]))
    while not (points[0].sum <= 0.0 <= points[-1].sum):
        side = -1.0 if points[0].sum > 0.0 else 1.0
        end = points[0] if side < 0.0 else points[-1]
        if reach > FARTHEST or not np.isfinite(end.sum):
            raise IncompatibleError(UNBOUNDED)
        far = np.sort(end.b + side * reach * np.array([4.0, 16.0, 64.0, 256.0]))
        points = [*_points(curve, far), end] if side < 0.0 else [end, *_points(curve, far)]
        reach *= 256.0
    return _tighten(Bracket(points[0], points[-1]), points)


def _tighten(bracket: Bracket, points: list[Point]) -> Bracket:
    low, high = bracket
    for point in points:
        if point.flat:
            return Bracket(point, point)
        if point.sum < 0.0 and point.b > low.b:
            low = point
        elif point.sum > 0.0 and point.b < high.b:
            high = point
    return Bracket(low, high)


def _points(curve: Curve, trials: Vector) -> list[Point]:
    values, sums = curve(trials)
    return [Point(float(b), float(v), float(g)) for b, v, g in zip(trials, values, sums, strict=True)]


def _at(phi: ScoreFunction, f: Scores, b: float) -> Point:
    value, slope = phi.value_and_slope(f + phi.constant(np.array([b])))
    return Point(b, value, float(phi.total(slope)[0]))
