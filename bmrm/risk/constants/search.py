"""The minimum over one constant added to all scores: a bracket, narrowed by batches of trial points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bmrm.problem import IncompatibleError, ScoreFunction, Scores, Vector
from bmrm.risk.constants.mixture import UNBOUNDED, Mixture, mixture_of, overflow, vanishes

ROUNDS = 100
WIDENINGS = 50
"""Each makes a bracket 256 times wider."""
PUSHES = 100
"""Each is 16 times longer than the one before."""
FARTHEST = 1e100
"""No bracket is looked for beyond."""
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
Curve = Callable[[Vector], tuple[Vector, Vector]]


class Point(NamedTuple):
    """A constant b, the value there and the derivative in b; both may be infinite where the loss overflows."""

    b: float
    value: float
    sum: float

    @property
    def finite(self) -> bool:
        """Whether a cut can be made here."""
        return math.isfinite(self.value) and math.isfinite(self.sum)

    @property
    def flat(self) -> bool:
        """Whether a search need not go on: the derivative is 0 within the rounding of values."""
        return self.finite and (self.sum == 0.0 or abs(self.sum) * max(1.0, abs(self.b)) <= ROUNDING * abs(self.value))


class Bracket(NamedTuple):
    """`low` has a negative derivative and `high` a positive one, or both are one flat point."""

    low: Point
    high: Point

    @property
    def finite(self) -> bool:
        """Whether both ends are."""
        return self.low.finite and self.high.finite

    @property
    def shares(self) -> tuple[float, float]:
        """Of `low` and `high`, such that the derivatives cancel; the ends are finite."""
        if self.low is self.high:
            return 1.0, 0.0
        return self.high.sum / (self.high.sum - self.low.sum), -self.low.sum / (self.high.sum - self.low.sum)

    @property
    def loss(self) -> float:
        """How far the mixture is below the better end."""
        low, high = self
        if not self.finite:
            return math.inf
        below_low = -low.sum * (self.crossing - low.b)
        below_high = high.sum * (high.b - self.crossing)
        return max(0.0, below_low if low.value < high.value else below_high)

    @property
    def crossing(self) -> float:
        """Where the two tangents meet; the ends are finite."""
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
        closed = not low.b < 0.5 * (low.b + high.b) < high.b
        return low is high or closed or (self.finite and self.loss <= ROUNDING * scale)

    def trials(self) -> Vector:
        """Points inside: the crossing is exact for one kink, the secant for a parabola; others shrink it."""
        low, high = self
        width = high.b - low.b
        wanted = [low.b + 0.5 * width]
        if self.finite:
            secant, nearby = low.b - low.sum * width / (high.sum - low.sum), 0.01 * width
            wanted += [self.crossing, secant - nearby, secant, secant + nearby]
        trials = np.array(wanted)
        return np.unique(trials[(trials > low.b) & (trials < high.b)])


def search(curve: Curve, start: float, reach: float) -> Bracket | None:
    """The bracket of the minimum of a convex curve, tight up to rounding; None where the curve is +inf everywhere.

    A nan among the derivatives says so: rows of both signs overflow, and one of them does wherever b is.

    Parameters
    ----------
    curve : b -> (values, derivatives), for a vector of b.
    start, reach : where the minimum is expected, and how far from there.
    """
    bracket = _first(curve, start, reach)
    for _ in range(ROUNDS):
        if bracket is None or bracket.done:
            break
        width = bracket.high.b - bracket.low.b
        tightened = _tighten(bracket, _points(curve, bracket.trials()))
        if tightened is not None and tightened.high.b - tightened.low.b >= width:
            break
        bracket = tightened
    return bracket


def minimum_over_constant(phi: ScoreFunction, f: Scores, start: float, reach: float, rounding: float) -> Mixture:
    """The mixture for one score per row; `start` and `reach` as in `search`, `rounding` as of `vanishes`."""
    bracket = search(phi.along(f, phi.constant(np.ones(1))), start, reach)
    if bracket is None:
        return overflow(np.array([start]))
    ends = [_at(phi, f, point.b) for point in dict.fromkeys(bracket)]
    settled = [end for end in ends if end.settled(phi, rounding)]
    if settled:
        ends = settled[:1]
    else:
        push = max(ROUNDING * max(1.0, abs(bracket.low.b)), 1e-3 * (bracket.high.b - bracket.low.b))
        ends = _apart(phi, f, ends, push)
    points = [end.point for end in ends]
    if not all(point.finite for point in points):
        return overflow(np.array([start]))
    shares = np.array(Bracket(points[0], points[-1]).shares[: len(ends)])
    best = min(points, key=lambda point: point.value)
    found = mixture_of(
        [np.array([point.b]) for point in points],
        np.array([point.value for point in points]),
        np.array([[point.sum] for point in points]),
        shares,
        np.array([best.b]),
        best.value,
    )
    return replace(found, slopes=tuple(end.slope for end, share in zip(ends, shares, strict=True) if share > 0.0))


class _End(NamedTuple):
    """A point, with the slope of phi there."""

    point: Point
    slope: Scores

    def settled(self, phi: ScoreFunction, rounding: float) -> bool:
        """Whether this point alone makes a cut."""
        return self.point.finite and vanishes(phi, self.slope, np.array([self.point.sum]), rounding)


def _apart(phi: ScoreFunction, f: Scores, ends: list[_End], push: float) -> list[_End]:
    """Ends whose sums have their signs: slopes may take another side of a kink than the curve did.

    They step outwards, `push` at first, until then, or until one is not finite.
    """
    for _ in range(PUSHES):
        low, high = ends[0].point, ends[-1].point
        if low.sum <= 0.0 <= high.sum or not (low.finite and high.finite):
            return ends
        if push > FARTHEST:
            break
        ends = [_at(phi, f, low.b - push), ends[0]] if low.sum > 0.0 else [ends[-1], _at(phi, f, high.b + push)]
        push *= 16.0
    raise IncompatibleError(UNBOUNDED)


def _first(curve: Curve, start: float, reach: float) -> Bracket | None:
    """A bracket that holds the minimum, not tight; None as of `search`."""
    points = _points(curve, start + reach * np.array([-1.0, 0.0, 1.0]))
    for _ in range(WIDENINGS):
        if any(math.isnan(point.sum) for point in points):
            return None
        if points[0].sum <= 0.0 <= points[-1].sum:
            return _tighten(Bracket(points[0], points[-1]), points)
        if reach > FARTHEST:
            break
        side = -1.0 if points[0].sum > 0.0 else 1.0
        end = points[0] if side < 0.0 else points[-1]
        far = np.sort(end.b + side * reach * np.array([4.0, 16.0, 64.0, 256.0]))
        points = [*_points(curve, far), end] if side < 0.0 else [end, *_points(curve, far)]
        reach *= 256.0
    raise IncompatibleError(UNBOUNDED)


def _tighten(bracket: Bracket, points: list[Point]) -> Bracket | None:
    low, high = bracket
    for point in points:
        if point.flat:
            return Bracket(point, point)
        if math.isnan(point.sum):
            return None
        if point.sum < 0.0 and point.b > low.b:
            low = point
        elif point.sum > 0.0 and point.b < high.b:
            high = point
    return Bracket(low, high)


def _points(curve: Curve, trials: Vector) -> list[Point]:
    with np.errstate(over="ignore", invalid="ignore"):  # rows that overflow make a sum inf or nan, and are told so
        values, sums = curve(trials)
    return [Point(float(b), float(v), float(g)) for b, v, g in zip(trials, values, sums, strict=True)]


def _at(phi: ScoreFunction, f: Scores, b: float) -> _End:
    with np.errstate(over="ignore", invalid="ignore"):
        value, slope = phi.value_and_slope(f + phi.constant(np.array([b])))
        return _End(Point(b, value, float(phi.total(slope)[0])), slope)
