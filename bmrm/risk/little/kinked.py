"""The method of multipliers for losses with kinks, one score per row, as the solver `semismooth_newton`.

With multipliers s each subproblem has the envelope of the loss at A w + b + s / sigma in place of it; its slopes u
prove a bound at every step, and are the next multipliers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bmrm.kernels.jit import fast_jit, specialised
from bmrm.kernels.rows import little
from bmrm.kernels.rows.little import CENTRED, CENTRING, FLAT, SEARCHES, direction
from bmrm.losses._core.prepared import NO_WEIGHTS, envelope_kernels
from bmrm.problem import Vector
from bmrm.problem.abilities import AtPoint, ReachedAtOnce
from bmrm.risk.little.rows import SUMS, Array, Goal, Rows, rounding

BESIDE = 1e-9
"""How far from a kink its slopes are taken, as a share of the score, or in units."""
SAME, NOISE = 1e-6, 1e-15
"""Difference of a slope from the derivative of the envelope with which they are the same, and what rounding adds."""
UNITS = 40
"""Trials for the first penalty, each four times the last or a quarter of it."""
FIRST, GROWTH, EASY = 0.3, 2.0, 3
"""The first penalty in units of a row's curvature, its factor when multipliers change, and steps up to which a
subproblem counts as easy, so that the factor is squared."""
NEAR = 4.0
"""The bound is looked at where the error of the subproblem is at most this multiple of the last gap."""
HARD, BACK = 16, 4.0
"""Steps after which a penalty counts as too large, and the factor by which it is reduced."""
STEEPEST = 1e14
"""A penalty above which its products are dominated by rounding."""


@cache
def _kernel(settled: Any) -> Any:
    return specialised(little.advance, fast_jit, settled=settled)


def multipliers(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    """The method of multipliers from 0, or elsewhere, each subproblem by Newton; None where it does not get there."""
    return Multipliers(rows, goal, start).reached()


class Multipliers:
    """One run; for several scores see `kinked_classes`.

    Attributes
    ----------
    w, b, f : the point with its scores.
    s, sigma : multipliers and penalty.
    u, c, p : slopes of the envelope, their derivatives, and the proximal points.
    total, inner : the loss at p, and <u, p>.
    best, kept, low, likely : the least J, the point that has it, the highest bound, and the last one but for rounding.
    """

    def __init__(self, rows: Rows, goal: Goal, start: AtPoint | None) -> None:
        self.rows, self.goal, self.factor = rows, goal, 1.0 / rows.mass
        self._begin(start)
        self.s, self.shift = np.zeros(self.f.shape), np.zeros(self.f.shape)
        value, _ = rows.loss.value_and_slope(self.f)
        self.sigma = FIRST * self._unit(value)
        self.best = value * self.factor + 0.5 * goal.l2 * float(np.vdot(self.w, self.w))
        self.kept, self.low = (self.w, self.b), -math.inf
        self.likely = -math.inf
        self.u = self.c = self.p = self.s
        self.total = self.inner = 0.0

    def _begin(self, start: AtPoint | None) -> None:
        """Weights, constants, scores, and room for the matrix of a step."""
        d = self.rows.X.shape[1]
        self.w, (self.b,) = self.rows.begin(start)
        self.f = self.rows.scores(self.w, self.b)
        self.a, self.x, self.H = np.empty(d), np.zeros(d + 1), np.empty((d + 1, d + 1))

    def reached(self) -> ReachedAtOnce | None:
        """Where it ends."""
        missing = largest = math.inf
        since, omega, slope = 0, (0.0, 0.0, 0.0), 0.0
        for steps in range(self.goal.most + 1):
            self._advance(omega, slope)
            solved = steps == 0
            while True:
                rest, lacks, square, *omega, slope = self._direction()
                if not math.isfinite(lacks):
                    return None
                if lacks <= NEAR * missing or solved:
                    missing = self._looked(omega[0], square, rest)
                    if self._proved():
                        w, b = self.kept
                        at = w.ravel(), np.atleast_1d(b)
                        return ReachedAtOnce(*at, self.best, float(self.low), steps, 2.0 * steps + 1.5)
                if solved or not (lacks <= missing - lacks or steps - since >= HARD):
                    break
                if lacks <= missing - lacks:
                    easy = steps - since <= EASY
                    largest *= GROWTH if easy else 1.0
                    self.s = self.u
                    self.sigma = max(self.sigma, min(largest, self.sigma * (GROWTH * GROWTH if easy else GROWTH)))
                else:
                    self.sigma /= BACK
                    largest, missing = self.sigma, math.inf
                if self.sigma > STEEPEST:
                    return None
                since, solved = steps, True
                self._advance(omega, 0.0)
            if not -math.inf < slope < 0.0:
                return None
        return None

    def proved_with(self, rows: Rows, goal: Goal, weights: Callable[[Vector], Vector]) -> ReachedAtOnce | None:
        """The end of the run proved with other rows, whose scores for `weights` are those of these; or None."""
        w, b = self.kept
        self.rows, self.goal, self.w, self.kept = rows, goal, weights(self.w), (weights(w), b)
        if not self._proved():
            return None
        w, b = self.kept
        return ReachedAtOnce(w.ravel(), np.atleast_1d(b), self.best, float(self.low), 0, 1.5)

    def _direction(self) -> Any:
        free, l2 = self.goal.free, self.goal.l2
        given = (self.rows.X, self.u, self.c, self.w, self.factor, l2, free, -1.0)
        return direction(*given, self.a, self.x, self.shift, self.H)

    def _envelope(self, z: Array) -> None:
        (self.total, self.inner, _), self.u, self.c = self.rows.loss.moreau(z, self.sigma)  # type: ignore[attr-defined]

    def _advance(self, omega: Any, first: float) -> None:
        """Go along the step as far as the envelope falls; then to the constant at which slopes sum to 0.

        Parameters
        ----------
        omega : ||w||^2, <w, x> and ||x||^2, x being the step of w.
        first : the derivative along the step; 0 for none.
        """
        z = self.f + self.s / self.sigma
        if self._at_once(z, omega, first):
            return
        if first < 0.0:
            t = self._searched(z, omega, first)
            self.f += t * self.shift
            z += t * self.shift
            self._go(t)
        else:
            self._envelope(z)
        if self.goal.free:
            self._centre(z)
        self.p = z - self.u / self.sigma

    def _at_once(self, z: Array, omega: Any, first: float) -> bool:
        """The same by a compiled call, where the loss has functions of one row; else False."""
        loss: Any = self.rows.loss
        kernels = envelope_kernels(loss.loss)
        if kernels is None:
            return False
        self.u, self.c = np.empty_like(z), np.empty_like(z)
        weights, rise = NO_WEIGHTS if loss.weights is None else loss.weights, float(self.x[-1])
        given = (
            loss.y,
            weights,
            self.rows.mass,
            self.goal.l2,
            tuple(omega),
            first,
            float(self.b),
            rise,
            self.goal.free,
        )
        t, self.b, self.total, self.inner = _kernel(kernels.settled)(
            z, self.f, self.shift, self.sigma, *given, self.u, self.c, *loss.arguments
        )
        if first < 0.0:
            self.w = self.w + t * self.x[:-1]
        self.p = z - self.u / self.sigma
        return True

    def _go(self, t: float) -> None:
        """Weights and constants, along the step."""
        self.w = self.w + t * self.x[:-1]
        self.b += t * float(self.x[-1])

    def _searched(self, z: Array, omega: Any, first: float) -> float:
        """How far; the envelope there."""
        lower, upper, below, above, t = 0.0, math.inf, first, 0.0, 1.0
        for _ in range(SEARCHES):
            self._envelope(z + t * self.shift)
            rate = float(np.vdot(self.u, self.shift)) * self.factor + self.goal.l2 * (omega[1] + t * omega[2])
            if abs(rate) <= -FLAT * first:
                break
            if rate < 0.0:
                lower, below = t, rate
            else:
                upper, above = t, rate
            t = 2.0 * t if upper == math.inf else lower + (upper - lower) * min(max(below / (below - above), 0.1), 0.9)
        return t

    def _centre(self, z: Array) -> None:
        """Move f, z and b to the constant at which slopes sum to 0: Newton, within a bracket."""
        least, most, width = -math.inf, math.inf, 1.0
        for _ in range(CENTRING):
            total, bent = float(self.u.sum()), float(self.c.sum())
            if abs(total) <= CENTRED * self.rows.mass:
                return
            least, most = (self.b, most) if total < 0.0 else (least, self.b)
            new = self.b - total / bent if bent > 0.0 else math.nan
            if not least < new < most:
                if most - least < math.inf:
                    new = 0.5 * (least + most)
                else:
                    new = self.b + math.copysign(width, -total)
                    width *= 4.0
            move = new - self.b
            if move == 0.0:
                return
            self.b = new
            self.f += move
            z += move
            self._envelope(z)

    def _looked(self, length: float, square: float, rest: Any) -> float:
        """J minus the bound here; the best point and what may be the best bound are remembered."""
        rows, l2 = self.rows, self.goal.l2
        J = rows.loss.value_and_slope(self.f)[0] * self.factor + 0.5 * l2 * length
        inner = self.inner - (0.0 if rows.offset is None else float(self.u @ rows.offset))
        bound = (self.total - inner) * self.factor - 0.5 * square / l2 - self._left(rest)
        if self.best > J:
            self.best, self.kept = J, (self.w, self.b)
        self.likely = bound
        return J - bound

    def _left(self, rest: Any) -> float:
        """What slopes whose sum is not quite 0 count beside a free constant."""
        return float(np.sum(np.abs(rest) * (1.0 + np.abs(self.b)))) if self.goal.free else 0.0

    def _proved(self) -> bool:
        """Whether the gap is small enough with slopes that are those of the loss, and rounding."""
        if not self.best - self.likely <= self.goal.wanted(self.best):
            return False
        rows, l2, b = self.rows, self.goal.l2, self.b
        u, steep, total, size = self._subgradients()
        a, rest = u @ rows.X * self.factor, float(u.sum()) * self.factor
        if self.goal.free and abs(rest) > SUMS:
            return False
        inner = float(u @ self.p) - (0.0 if rows.offset is None else float(u @ rows.offset))
        square = float(a @ a)
        slack = rounding(rows, self.w, b, u, self.p, l2, size, math.sqrt(square) / l2, steep)
        bound = (total - inner) * self.factor - 0.5 * square / l2 - slack
        self.low = max(self.low, bound - self._left(rest))
        w, b = self.kept
        value, _ = rows.loss.value_and_slope(rows.scores(w, b))
        self.best = value * self.factor + 0.5 * l2 * float(w @ w)
        return self.best - self.low <= self.goal.wanted(self.best)

    def _subgradients(self) -> tuple[Vector, float, float, float]:
        """Subgradients at the proximal points, near u; the steepest slope, those beside kinks among them; the loss.

        At a kink rounding may take u beyond the slopes there.
        """
        p, u, loss = self.p, self.u, self.rows.loss
        total, here = loss.value_and_slope(p)
        beside = BESIDE * (1.0 + np.abs(p))
        low, high = loss.value_and_slope(p - beside)[1], loss.value_and_slope(p + beside)[1]
        same = np.abs(here - u) <= SAME * np.abs(u) + NOISE * self.sigma * (np.abs(p + u / self.sigma) + np.abs(p))
        same &= self.c < self.sigma  # else at a kink
        found = np.where(same, here, np.minimum(np.maximum(u, low), high))
        steep = max(float(np.abs(one).max()) for one in (here, low, high, found))
        return found, steep, total, abs(total - loss.infimum) + abs(loss.infimum)

    def _unit(self, value: float) -> float:
        """The penalty with which the envelope has half the value of the loss."""
        unit, factor = 1.0, math.nan
        for _ in range(UNITS):
            (total, _, square), *_ = self.rows.loss.moreau(self.f, unit)  # type: ignore[attr-defined]
            envelope = total + 0.5 * unit * square
            if not 0.0 <= envelope <= value or not 0.0 < value < math.inf:
                break
            wanted = 4.0 if envelope < 0.5 * value else 0.25
            if wanted * factor == 1.0:
                break
            factor = wanted
            unit *= factor
        return unit
