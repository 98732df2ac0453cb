"""The minimum of a convex function along a line, from values and derivatives.

Three rules over one bracket (`bracket.py`): by values for functions with kinks, by the derivative for smooth ones, and
by both (the strong Wolfe conditions), where the step also teaches a quasi-Newton method.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bmrm.numerics.bracket import ROUNDING, At, Illinois, Trial, TrialRule, meeting, narrowed
from bmrm.problem import Vector

Along = Callable[[Vector], tuple[Vector, Vector]]
"""t -> (values, derivatives), for a vector of t."""

NEAR_ZERO = 1e-10
"""Step at which the sign of the first derivative is taken: 0 itself may be a kink."""

LARGEST_STEP = 1e12
"""Step at which a function that still falls counts as unbounded below within rounding."""


def total(one: Along, other: Along) -> Along:
    """The sum of two functions."""

    def both(t: Vector) -> tuple[Vector, Vector]:
        value, derivative = one(t)
        more, slope = other(t)
        return value + more, derivative + slope

    return both


def trials_of(function: Along) -> At:
    """The same, point by point."""

    def at(points: list[float]) -> list[Trial]:
        values, derivatives = function(np.array(points))
        return list(map(Trial, points, map(float, values), map(float, derivatives)))

    return at


def minimize_along(function: Along, accuracy: float, *, batch: int = 3, first: float = 1.0) -> Trial:
    """The best of the points tried with t > 0, within `accuracy` of the minimum over t >= 0 unless rounding forbids.

    The two tangents at the ends of the bracket meet at a value that the function cannot go below, so the search knows
    how far its best point is from the minimum. Trial points: where the tangents meet (exact for two linear pieces),
    where the line through the two derivatives crosses zero (exact for a quadratic), and the middle, which halves the
    bracket whatever the function.

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
    at = trials_of(function)
    low, *more = at([NEAR_ZERO, first] + [2.0 * first] * (batch > 1))
    if low.derivative >= 0.0:
        return low
    rule = _Values(accuracy, batch, low)
    narrowed(at, more, rule, low)
    return rule.best


class _Halving(TrialRule):
    """Knows whether the last round has halved the bracket."""

    def __init__(self) -> None:
        self._width = math.inf

    def halved(self, low: Trial, high: Trial) -> bool:
        """Whether it has, for these new ends."""
        before, self._width = self._width, high.t - low.t
        return self._width <= 0.5 * before


class _Values(_Halving):
    """As of `minimize_along`."""

    def __init__(self, accuracy: float, batch: int, best: Trial) -> None:
        super().__init__()
        self._accuracy, self._batch, self.best = accuracy, batch, best
        self._round = -1

    def settled(self, trial: Trial) -> bool:
        self.best = min(self.best, trial, key=lambda one: one.value)
        return trial.derivative == 0.0

    def falls(self, trial: Trial) -> bool:
        return not (trial.derivative > 0.0 or not math.isfinite(trial.value))

    def following(self, low: Trial | None, high: Trial | None, here: Trial) -> list[float]:
        assert low is not None
        self._round += 1
        if high is None:
            points = [2.0 ** (j + 1) * low.t for j in range(self._batch)]
        else:
            meet, floor = 0.5 * (low.t + high.t), -math.inf
            if math.isfinite(high.value) and low.derivative < high.derivative < math.inf:
                ahead = min(max(meeting(low, high), 0.0), high.t - low.t)
                meet, floor = low.t + ahead, low.value + low.derivative * ahead
            if self.best.value - floor <= self._accuracy:
                return []
            points = self._inside(low, high, meet)
        return points if points and points[0] <= LARGEST_STEP else []

    def _inside(self, low: Trial, high: Trial, meet: float) -> list[float]:
        """Strictly inside the bracket; none when it has closed."""
        middle = secant = 0.5 * (low.t + high.t)
        halved = self.halved(low, high)
        if low.derivative < high.derivative < math.inf:
            secant = low.t + (high.t - low.t) * (-low.derivative / (high.derivative - low.derivative))
        if self._batch > 1:
            wanted = [secant, meet, middle][: self._batch]
        else:
            wanted = [middle if not halved else secant if self._round % 2 else meet]
        inside = sorted({t for t in wanted if low.t < t < high.t})
        return inside or [t for t in (middle,) if low.t < t < high.t]


def minimum_of_pieces(slope: float, curvature: float, jumps: NDArray[np.float64]) -> float:
    """The minimiser over t >= 0 of a convex function whose derivative is `slope + curvature * t` plus jumps.

    Algorithm 2 of "F-measure bundle line search" (BM-ls-CS): the derivative rises on lines (its "slash areas") and in
    jumps ("vertical areas"), and is followed to its zero from one breakpoint to the next. O(n log n) for n jumps.

    Parameters
    ----------
    slope : the derivative on the right of 0.
    curvature : the second derivative elsewhere, >= 0.
    jumps : (n, 2), the breakpoints t > 0 in any order, and by how much the derivative jumps there, >= 0.

    Returns
    -------
    t : 0.0 where the function does not fall; inf where it falls for ever.
    """
    if slope >= 0.0:
        return 0.0
    at, by = jumps[np.argsort(jumps[:, 0])].T
    after = slope + np.concatenate(([0.0], np.cumsum(by)))
    rising = np.flatnonzero(after[1:] + curvature * at >= 0.0)
    last = int(rising[0]) if rising.size else at.size
    zero = -after[last] / curvature if curvature > 0.0 else math.inf
    return min(zero, float(at[last])) if rising.size else zero


FLAT = 0.1
"""Default for the share of the first derivative that may remain at the step."""
WIDEST = 1e6
"""Longest step of `step_length`."""


def step_length(function: Along, slope: float, first: float = 1.0, flat: float = FLAT) -> float:
    """A t > 0 where the derivative is at most `flat` times that at 0 in size; 0.0 where none is found.

    The derivative of a convex function rises, so its zero is bracketed and then found by secants, bisection where
    values are not finite. Derivatives decide, not values: near the minimum these are all rounding.

    Parameters
    ----------
    function : values and derivatives at a vector of t, the derivative continuous.
    slope : the derivative at 0, negative.
    first : the first step tried, which is a good one where the model is true.
    """
    if not slope < 0.0:
        return 0.0
    at, start = trials_of(function), Trial(0.0, math.nan, slope)
    low, _ = narrowed(at, at([first]), _Derivatives(flat * -slope, slope), start)
    return 0.0 if low is None else low.t


class _Derivatives(TrialRule):
    """As of `step_length`: `small` is what may be left of the derivative."""

    rounds = 40

    def __init__(self, small: float, slope: float) -> None:
        self._small, self._slope, self._illinois = small, slope, Illinois()

    def settled(self, trial: Trial) -> bool:
        return trial.finite and abs(trial.derivative) <= self._small

    def falls(self, trial: Trial) -> bool:
        return trial.finite and trial.derivative < 0.0

    def following(self, low: Trial | None, high: Trial | None, here: Trial) -> list[float]:
        assert low is not None
        self._illinois.note(0 if here is low else 1)
        if high is None:
            slope, below = self._slope, low.derivative
            longer = here.t * (2.0 + min(8.0, below / (slope - below) if below > slope else 8.0))
            return [longer] if here.t < WIDEST else []
        middle = 0.5 * (low.t + high.t)
        t = self._illinois.secant(low, high, 0) if high.finite else middle
        return [t] if low.t < t < high.t else [middle] if low.t < middle < high.t else []


FALL = 1e-4
"""Sufficient decrease (Armijo): least mean slope up to a step, as a share of the first slope."""
KINK = 1e-6
"""A bracket ends at a kink if at most this share of the decrease so far is still possible in it."""
FARTHEST, NEAREST = 10.0, 0.1
"""Ratio of a trial step to the one before, at most; and distance of a trial from the ends of the bracket, as a share of
it, at least."""


def enough(trial: Trial, here: float, slope: float, left: float, kinked: bool = False) -> bool:
    """Whether `wolfe_search` would end at a trial."""
    return _Wolfe(Trial(0.0, here, slope), left, kinked).settled(trial)


def wolfe_search(
    function: Along, here: float, slope: float, first: Trial, left: float, kinked: bool = False
) -> Trial | None:
    """A step with the strong Wolfe conditions, or the weak ones; None where there is none (by rounding, or at a kink).

    At a kink the slope jumps over all that the strong conditions allow: the weak ones, which leave it as large as it is
    there, are what quasi-Newton methods need (Lewis & Overton, "Nonsmooth optimization via quasi-Newton methods",
    Mathematical Programming 141, 2013, section 4).

    Extrapolation, at least doubling, until the slope is positive; then the secant of the slopes across the bracket, of
    a kinked function the place where its tangents meet, or its middle where that does not shrink it by half. Where
    values tell no more than rounding, slopes decide.

    Parameters
    ----------
    function : values and derivatives at a vector of t, convex.
    here, slope : value and derivative at 0, the derivative negative.
    first : the first trial.
    left : the share of the slope that may be left, up or down; of a kinked function down only.
    kinked : whether the function has kinks.
    """
    start = Trial(0.0, here, slope)
    low, high = narrowed(trials_of(function), [first], _Wolfe(start, left, kinked), start)
    return low if low is high else None


class _Wolfe(_Halving):
    """As of `wolfe_search`; `start` is at 0."""

    rounds = 60

    def __init__(self, start: Trial, left: float, kinked: bool) -> None:
        super().__init__()
        self._start = self._before = start
        self._kinked, self._least = kinked, -left * abs(start.derivative)
        self._most = math.inf if kinked else -self._least

    def settled(self, trial: Trial) -> bool:
        return self._enough(trial) and self._least <= trial.derivative <= self._most

    def falls(self, trial: Trial) -> bool:
        return trial.derivative < 0.0 and self._enough(trial)

    def _enough(self, trial: Trial) -> bool:
        """Whether the value has fallen far enough, or, within rounding, the slope says so."""
        here, slope = self._start.value, self._start.derivative
        if trial.value <= here + FALL * trial.t * slope:
            return True
        noise = 16.0 * ROUNDING * abs(here)
        return trial.value <= here + noise and trial.derivative <= (2.0 * FALL - 1.0) * slope

    def following(self, low: Trial | None, high: Trial | None, here: Trial) -> list[float]:
        assert low is not None
        if high is None:
            t, self._before = _beyond(self._before, low), low
        else:
            share = _share(low, high, self._kinked)
            t = _inside(low, high, share) if self.halved(low, high) else 0.5 * (low.t + high.t)
            least = max(KINK * (self._start.value - low.value), ROUNDING * abs(self._start.value))
            if not low.t < t < high.t or _still(low, high) <= least:
                return []
        return [t] if t <= LARGEST_STEP else []


def _still(low: Trial, high: Trial) -> float:
    """How far below the lower end a convex function may fall inside a bracket: where its tangents meet."""
    rise = high.derivative - low.derivative
    if not (math.isfinite(rise) and rise > 0.0 and high.derivative > 0.0):
        return math.inf
    return max(0.0, -low.derivative * meeting(low, high))


def _beyond(before: Trial, low: Trial) -> float:
    """Where the secant of two negative slopes reaches 0, twice as far as the last or farther."""
    rise = low.derivative - before.derivative
    secant = low.t - low.derivative * (low.t - before.t) / rise if rise > 0.0 else math.inf
    return min(max(secant, 2.0 * low.t), FARTHEST * low.t)


def _share(low: Trial, high: Trial, kinked: bool) -> float:
    """Where the tangents at the ends of a bracket meet, or where the secant of their slopes is 0, as a share of it."""
    if not high.derivative > low.derivative:
        return 0.5
    if kinked:
        return meeting(low, high) / (high.t - low.t)
    return -low.derivative / (high.derivative - low.derivative)


def _inside(low: Trial, high: Trial, share: float) -> float:
    """The point at this share of the bracket, if that is well inside."""
    share = min(max(share, NEAREST), 1.0 - NEAREST) if high.finite and math.isfinite(share) else 0.5
    return low.t + share * (high.t - low.t)
