"""Values and slopes of a smooth loss by rows, with a free intercept as one more coordinate or without."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bmrm.numerics.bracket import ROUNDING, Trial, TrialRule, meeting, narrowed, shares
from bmrm.numerics.line_search import Along
from bmrm.problem import (
    Elastic,
    IncompatibleError,
    LinearMap,
    Risk,
    Scored,
    ScoreFunction,
    Scores,
    ability,
    provides,
)
from bmrm.solvers._core.best import Best
from bmrm.solvers._core.instead import instead, name_of

WIDER = 10.0
"""Longest step towards a bracket, over the step before; over the distance to the last minimum for the first one."""
SHORTER = 0.01
"""Shortest second step, over the first; for each next one WIDER times that."""
TINY = 1e-12
"""Shortest first step, over the distance to the last minimum."""
EPS = float(np.finfo(np.float64).eps)
OF_SCORES = "a risk that is a function of scores X w, not one that gives a value and a subgradient only"
"""Requirement of solvers that work on scores, in messages."""


@dataclass(frozen=True)
class ProfiledLoss:
    """The loss at some scores, minimised over a free intercept.

    Attributes
    ----------
    f : scores, the constant of a free intercept inside.
    value : phi(f).
    slope : of phi; with a free intercept mixed of two so that it sums to 0.
    offset : R(w) >= <A' slope, w> + offset for all w; -inf where slopes were not brought to sum to 0.
    """

    f: Scores
    value: float
    slope: Scores
    offset: float

    @property
    def finite(self) -> bool:
        """Whether there is anything to go on with."""
        return math.isfinite(self.value)


class RowwiseRisk:
    """A smooth risk whose loss is a sum over rows.

    Parameters
    ----------
    map, phi : R(w) = phi(A w), or with `free` min over b of phi(A w + b).
    dim : length of w.
    """

    def __init__(self, map: LinearMap, phi: ScoreFunction, free: bool, dim: int) -> None:
        self.dim = dim
        self.map, self.phi, self.free = map, phi, free
        self.ones: Scores = phi.constant(np.ones(1))
        """The scores whose every row is 1."""
        self._rows = float(phi.total(self.ones)[0])
        self._curvature, self._reach = 0.0, 1.0

    @classmethod
    def of(cls, solver: str, risk: Risk) -> RowwiseRisk:
        """What the risk has; IncompatibleError, told in the name of `solver`, where its loss is not of this kind."""
        scored = ability(risk, Scored)
        if scored is None:
            raise IncompatibleError(f"{solver} needs {OF_SCORES}; use bundle")
        if not scored.phi.facts.smooth:
            raise IncompatibleError(f"{solver} needs a smooth loss; use line_search_bundle")
        if not scored.of_rows.facts.separable:
            raise IncompatibleError(
                f"{solver} needs a loss with second derivatives row by row; use proximal_gradient or line_search_bundle"
            )
        return cls(scored.map, scored.of_rows, scored.intercept is not None, risk.dim)

    @property
    def count(self) -> int:
        """Rows, over all ranks."""
        return int(self._rows)

    def profiled(self, f: Scores) -> ProfiledLoss:
        """The loss at `f`; with a free intercept at the best constant added to `f`."""
        value, slope = self.phi.value_and_slope(f)
        if not self.free or not math.isfinite(value):
            return ProfiledLoss(f, value, slope, value - self.phi.product(slope, f))
        rule = _Constants(self._curvature, self._reach, lambda: self._size(f))
        first = Trial(0.0, value, self._total(slope), slope)
        low, high = narrowed(lambda points: [self._trial(f, b) for b in points], [first], rule)
        low, high = low or high or first, high or low or first
        best = low if low.value <= high.value else high
        self._curvature, self._reach = rule.curvature, max(1.0, abs(best.t))
        at = f if best.t == 0.0 else f + self.ones * best.t
        if (low is high and not low.flat) or not math.isfinite(high.derivative - low.derivative):  # without a bracket
            return ProfiledLoss(at, best.value, best.kept, -math.inf)
        share = shares(low, high)[0]
        other = 1.0 - share
        mixed = low.kept if low is high else low.kept * share + high.kept * other
        falls, rises = share * low.t * low.derivative, other * high.t * high.derivative
        height = share * low.value + other * high.value - (falls + rises) - EPS * (abs(falls) + abs(rises))
        return ProfiledLoss(at, best.value, mixed, min(height, best.value) - self.phi.product(mixed, at))

    def _size(self, f: Scores) -> float:
        """The mean absolute score: the constant that is in `f` may be as large."""
        return float(self.phi.magnitude(f)[0]) / max(float(self.phi.magnitude(self.ones)[0]), 1e-300)

    def _trial(self, f: Scores, b: float) -> Trial:
        value, slope = self.phi.value_and_slope(f + self.ones * b)
        return Trial(b, value, self._total(slope), slope)

    def curvature(self, f: Scores, damping: float) -> Scores:
        """The second derivatives at `f`, every row's raised by `damping` times their mean.

        Where none has any, by 1 before the division by the mass.
        """
        return self.damped(self.phi.hessian_diagonal(f), damping)

    def damped(self, curvature: Scores, damping: float) -> Scores:
        """As `curvature`, for curvatures that are known."""
        mean = float(self.phi.total(curvature)[0]) / self._rows
        if mean > 0.0:
            return curvature + self.ones * (damping * mean) if damping else curvature
        return self.ones * (1.0 / self.phi.facts.mass)

    def along(self, f: Scores, step: Scores) -> Along:
        """The function t -> (phi(f + t step), its derivative in t)."""
        return self.phi.along(f, step)

    def _total(self, slope: Scores) -> float:
        return float(self.phi.total(slope)[0])


class _Constants(TrialRule):
    """The constant added to all scores with the least loss: tangents there meet at its value up to rounding.

    Parameters
    ----------
    curvature, reach : a second derivative and the way to the minimum, of an earlier search; the scores may have been
        much larger there.
    size : of the constant that the scores have in them already: a slope that is left counts times that in the plane.
    """

    rounds = 200

    def __init__(self, curvature: float, reach: float, size: Callable[[], float]) -> None:
        self.curvature, self._reach, self._size = curvature, reach, size
        self._last: Trial | None = None
        self._slow, self._outward, self._width = 0, 0, math.inf

    def settled(self, trial: Trial) -> bool:
        return trial.flat and abs(trial.derivative) * self._size() <= ROUNDING * abs(trial.value)

    def following(self, low: Trial | None, high: Trial | None, here: Trial) -> list[float]:
        if low is None or high is None:
            b, self._outward = self._farther(here), self._outward + 1
            self._last = here
            return [b]
        if _loss(low, high) <= ROUNDING * min(abs(low.value), abs(high.value)):
            return []
        self._slow = self._slow + 1 if high.t - low.t > 0.5 * self._width else 0
        self._width = high.t - low.t
        return self._inside(low, high)

    def _farther(self, here: Trial) -> float:
        """Where the slope should have changed its sign, a little beyond Newton's step."""
        last = self._last
        if last is not None:
            self.curvature = (here.derivative - last.derivative) / (here.t - last.t)
        elif self.curvature <= 0.0:
            self.curvature = abs(here.derivative)
        newton = 1.01 * abs(here.derivative) / max(self.curvature, 1e-300)
        # A secant may be all rounding; where slopes fall like the exponential, it sees only the steep end.
        before = min(self._reach, max(1.0, self._size())) if last is None else abs(here.t - last.t)
        shortest = (TINY if last is None else min(SHORTER * WIDER ** (self._outward - 1), WIDER)) * before
        step = max(min(max(newton, shortest), WIDER * before), math.ulp(here.t))
        return here.t - math.copysign(step, here.derivative)

    def _inside(self, low: Trial, high: Trial) -> list[float]:
        """The secant of the slopes is right for a parabola, the meeting of the tangents for one kink."""
        width, falls, rises = high.t - low.t, -low.derivative, high.derivative
        steep = max(falls, rises) > 1e3 * min(falls, rises)
        if not (steep and width > 1e-3 * (abs(low.t) + abs(high.t))) and self._slow % 4 < 3:
            b = low.t + (falls * width / (rises + falls) if self._slow % 4 < 2 else meeting(low, high))
            if low.t < b < high.t:
                return [b]
        b = low.t + 0.5 * width
        return [b] if low.t < b < high.t else []


def _loss(low: Trial, high: Trial) -> float:
    """How far the better end is above where the tangents meet, rounding of the difference included."""
    width, falls, rises = high.t - low.t, -low.derivative, high.derivative
    better, other, here, there = (low, high, falls, rises) if low.value < high.value else (high, low, rises, falls)
    below = there * width - (other.value - better.value)
    rounding = 0.25 * ROUNDING * (there * width + abs(other.value) + abs(better.value))
    return here / (here + there) * (max(below, 0.0) + rounding)


def lambdas(solver: str, run: Best) -> tuple[float, float]:
    """(l1, l2) of Omega(w) = l1 ||w||_1 + l2/2 ||w||^2; IncompatibleError without an l1 > 0."""
    regularizer = run.regularizer
    if not provides(regularizer, Elastic):
        name = name_of(regularizer)
        raise IncompatibleError(f"{solver} needs regularizer l1 or elastic_net, not {name}; use {instead(run)}")
    if not regularizer.l1 > 0.0:
        scored = ability(run.risk, Scored)
        curved = scored is not None and scored.phi.facts.smooth and scored.phi.facts.curved
        with_l2 = "newton" if curved else instead(run)
        raise IncompatibleError(f"{solver} needs a regularizer with an l1 part; with l2 alone use {with_l2}")
    return float(regularizer.l1), float(regularizer.l2)
