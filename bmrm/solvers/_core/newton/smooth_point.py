"""A point of Newton's method: value, slopes, gradient; with a free intercept set to its minimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bmrm.numerics.bracket import Trial
from bmrm.numerics.roots import newton_root
from bmrm.problem import LinearMap, Regularizer, ScoreFunction, Scores, Vector, plane_at
from bmrm.problem.risk import pulled
from bmrm.solvers._core.points import Point


@dataclass(frozen=True, eq=False)
class SmoothPoint(Point):
    """A point, R there being minimised over a free intercept b.

    Attributes
    ----------
    b, full : the intercept, 0 where there is none, and the scores with it; `f` are those of w.
    rest : what the slopes sum to, which should be 0 where b is free.
    gradient, objective : of J in w, and J.
    """

    b: float
    full: Scores
    rest: float
    gradient: Vector
    objective: float

    @cached_property
    def finite(self) -> bool:
        """Whether a model can be made here."""
        return math.isfinite(self.objective) and bool(np.isfinite(self.gradient).all())


@dataclass(frozen=True)
class Objective:
    """J(w) = phi(A w) + Omega(w), or its minimum over a constant b added to all scores.

    Parameters
    ----------
    map, phi, regularizer : see above.
    free : whether there is a b; then `phi` has a curvature by rows.
    """

    map: LinearMap
    phi: ScoreFunction
    regularizer: Regularizer
    free: bool

    def shifted(self, f: Scores, b: float) -> Scores:
        """f + b."""
        return f + self.phi.constant(np.array([b])) if self.free else f

    def at(self, w: Vector, f: Scores, b: float = 0.0, *, fresh: bool = True) -> SmoothPoint:
        """The point w with scores f, b moved to its minimum; half a pass.

        `fresh` where f was computed from w; with a free intercept the point is not, see `Monitor.improve`.
        """
        if self.free:
            one, other, share = newton_root(lambda b: self._trial(f, b), self._trial(f, b), self._rate)
            found = one if share >= 0.5 else other
            b, rest, value, (full, slope) = found.t, found.derivative, found.value, found.kept
            a, product = pulled(self.map, self.phi, slope, full)
        else:
            full, rest = f, 0.0
            value, _, a, product = plane_at(self.map, self.phi, f)
        gradient = a + self.regularizer.subgradient(w)
        offset = value - product  # by scores: those of w they may be but for rounding
        offset += rest * b - abs(rest) * (1.0 + abs(b))  # the slopes should sum to 0
        objective = value + self.regularizer.value(w)
        fresh = fresh and not self.free
        return SmoothPoint(w, value, a, offset, f, b, full, rest, gradient, objective, fresh=fresh)

    def _trial(self, f: Scores, b: float) -> Trial:
        full = self.shifted(f, b)
        value, slope = self.phi.value_and_slope(full)
        return Trial(b, value, float(self.phi.total(slope)[0]), (full, slope))

    def _rate(self, trial: Trial) -> float:
        return float(self.phi.total(self.phi.hessian_diagonal(trial.kept[0]))[0])
