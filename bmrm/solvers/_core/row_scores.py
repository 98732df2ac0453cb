"""Values and slopes of a smooth loss by rows, with a free intercept as one more coordinate or without."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bmrm.problem import (
    Elastic,
    IncompatibleError,
    LinearMap,
    Profiled,
    Regularizer,
    Scored,
    ScoreFunction,
    Scores,
    provides,
)
from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.line_search import Along
from bmrm.solvers._core.metered import MeteredRisk

ROUNDS = 200
"""Steps at most to the best constant: far more than bisection to the last bit needs."""
WIDER = 10.0
"""The factor by which steps to a bracket grow at most, the first from the way to the last minimum."""
SHORTER = 0.01
"""The factor by which the second one shrinks at most; WIDER times that each next one."""
TINY = 1e-12
"""The least first step, likewise."""


@dataclass(frozen=True)
class Settled:
    """Scores and what the loss is there.

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


class RowScores:
    """A map and a loss by rows.

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
        self._bend, self._reach = 0.0, 1.0

    @classmethod
    def of(cls, solver: str, risk: MeteredRisk) -> RowScores:
        """What the risk has; IncompatibleError, told in the name of `solver`, where its loss is not of this kind."""
        scored, profiled = risk.ability(Scored), risk.ability(Profiled)
        if scored is None:
            raise IncompatibleError(f"{solver} needs a risk with the ability Scored; use bundle")
        if not scored.phi.facts.smooth:
            raise IncompatibleError(f"{solver} needs a smooth loss; use line_search_bundle")
        inner = scored if profiled is None else profiled
        if not inner.phi.facts.separable:
            raise IncompatibleError(
                f"{solver} needs a loss with second derivatives row by row; use proximal_gradient or line_search_bundle"
            )
        return cls(inner.map, inner.phi, profiled is not None, risk.dim)

    def settled(self, f: Scores) -> Settled:
        """The loss at `f`; with a free intercept at the best constant added to `f`."""
        value, slope = self.phi.value_and_slope(f)
        if not self.free or not math.isfinite(value):
            return Settled(f, value, slope, value - self.phi.product(slope, f))
        here = _Constant(0.0, value, slope, self._total(slope))
        low, high = self._bracket(f, here)
        best = low if low.value <= high.value else high
        self._reach = max(1.0, abs(best.b))
        at = f if best.b == 0.0 else f + self.ones * best.b
        if (low is high and not low.flat) or not math.isfinite(high.sum - low.sum):  # no bracket was found
            return Settled(at, best.value, best.slope, -math.inf)
        share = 1.0 if low is high else high.sum / (high.sum - low.sum)
        mixed = low.slope if low is high else low.slope * share + high.slope * (1.0 - share)
        height = share * (low.value - low.b * low.sum) + (1.0 - share) * (high.value - high.b * high.sum)
        return Settled(at, best.value, mixed, min(height, best.value) - self.phi.product(mixed, at))

    def curvature(self, f: Scores, damping: float) -> Scores:
        """The second derivatives at `f`, every row's raised by `damping` times their mean.

        Where none has any, by 1 before the division by the mass.
        """
        curvature = self.phi.hessian_diagonal(f)
        mean = float(self.phi.total(curvature)[0]) / self._rows
        if mean > 0.0:
            return curvature + self.ones * (damping * mean) if damping else curvature
        return self.ones * (1.0 / self.phi.facts.mass)

    def along(self, f: Scores, step: Scores) -> Along:
        """The function t -> (phi(f + t step), its derivative in t)."""
        return self.phi.along(f, step)

    def _total(self, slope: Scores) -> float:
        return float(self.phi.total(slope)[0])

    def _bracket(self, f: Scores, here: _Constant) -> tuple[_Constant, _Constant]:
        """Constants around the best one whose tangents meet at its value up to rounding."""
        low, high, last = None, None, None
        slow, outward, width = 0, 0, math.inf
        for _ in range(ROUNDS):
            low, high = (here, high) if here.sum <= 0.0 else (low, here)
            if here.flat:
                return here, here
            if low is not None and high is not None:
                if _loss(low, high) <= ROUNDING * min(abs(low.value), abs(high.value)):
                    return low, high
                slow, width = (slow + 1 if high.b - low.b > 0.5 * width else 0), high.b - low.b
                b = _between(low, high, slow)
                if b is None:
                    return low, high
            else:
                b, outward = self._farther(here, last, outward), outward + 1
            last = here
            value, slope = self.phi.value_and_slope(f + self.ones * b)
            here = _Constant(b, value, slope, self._total(slope))
        return (low or high or here), (high or low or here)

    def _farther(self, here: _Constant, last: _Constant | None, steps: int) -> float:
        """Where the slope should have changed its sign, a little beyond Newton's step, after so many steps."""
        if last is not None:
            self._bend = (here.sum - last.sum) / (here.b - last.b)
        elif self._bend <= 0.0:
            self._bend = abs(here.sum)
        newton = 1.01 * abs(here.sum) / max(self._bend, 1e-300)
        # A secant may be all rounding; where slopes fall like the exponential, it sees only the steep end.
        before = self._reach if last is None else abs(here.b - last.b)
        shortest = (TINY if last is None else min(SHORTER * WIDER ** (steps - 1), WIDER)) * before
        step = max(min(max(newton, shortest), WIDER * before), math.ulp(here.b))
        return here.b - math.copysign(step, here.sum)


@dataclass(frozen=True)
class _Constant:
    """A constant added to all scores, and the loss there; `sum` is the derivative in it."""

    b: float
    value: float
    slope: Scores
    sum: float

    @property
    def flat(self) -> bool:
        """Whether the derivative is 0, up to the rounding of a sum over rows."""
        return abs(self.sum) * max(1.0, abs(self.b)) <= ROUNDING * abs(self.value)


def _loss(low: _Constant, high: _Constant) -> float:
    """How far the better end is above where the tangents meet, rounding of the difference included."""
    width, falls, rises = high.b - low.b, -low.sum, high.sum
    better, other, here, there = (low, high, falls, rises) if low.value < high.value else (high, low, rises, falls)
    below = there * width - (other.value - better.value)
    rounding = 0.25 * ROUNDING * (there * width + abs(other.value) + abs(better.value))
    return here / (here + there) * (max(below, 0.0) + rounding)


def _between(low: _Constant, high: _Constant, slow: int) -> float | None:
    """The next constant to try, `slow` rounds after the bracket was last halved; None where none is left.

    The secant of the slopes is right for a parabola, the crossing of the tangents for one kink.
    """
    width = high.b - low.b
    steep = max(-low.sum, high.sum) > 1e3 * min(-low.sum, high.sum)
    if not (steep and width > 1e-3 * (abs(low.b) + abs(high.b))) and slow % 4 < 3:
        share = -low.sum * width if slow % 4 < 2 else high.sum * width - (high.value - low.value)
        b = low.b + share / (high.sum - low.sum)
        if low.b < b < high.b:
            return b
    b = low.b + 0.5 * width
    return b if low.b < b < high.b else None


def lambdas(solver: str, regularizer: Regularizer) -> tuple[float, float]:
    """(l1, l2) of Omega(w) = l1 ||w||_1 + l2/2 ||w||^2; IncompatibleError without an l1 > 0."""
    if not provides(regularizer, Elastic):
        name = type(regularizer).__name__
        raise IncompatibleError(f"{solver} needs regularizer l1 or elastic_net, not {name}; use proximal_gradient")
    if not regularizer.l1 > 0.0:
        raise IncompatibleError(f"{solver} needs a regularizer with an l1 part; with l2 alone use newton")
    return float(regularizer.l1), float(regularizer.l2)
