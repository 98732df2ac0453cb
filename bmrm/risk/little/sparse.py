"""Proximal Newton steps for l1 and elastic net with smooth losses of one score, on the Gram matrix of each model.

Yuan, Ho & Lin 2012 (newGLMNET); Friedman, Hastie & Tibshirani 2010, section 2.2 (covariance updates). For least squares
the first model is the problem.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bmrm.data.matrix.dense import Dense
from bmrm.kernels.rows.little import ARMIJO, CENTRED, CENTRING
from bmrm.losses._core.prepared import NO_WEIGHTS
from bmrm.problem import Vector, unchecked
from bmrm.problem.abilities import AtPoint, ReachedAtOnce
from bmrm.problem.facts import facts_of
from bmrm.risk.little.rows import (
    HALVINGS,
    MOST_DAMPING,
    ROUNDOFF,
    SHARE,
    SUMS,
    TERMS,
    Array,
    Goal,
    Rows,
    damped,
    errors,
)
from bmrm.risk.little.smooth import kernel_of
from bmrm.solvers._core.gram_model import RIDGE, minimum

SHARPER, SHARPEST = 0.2, 1e-7
"""Factor of the violation up to which the next model is solved, and the least share of the first."""
ALL = 1.0 - 1e-15
"""Of the factor that makes slopes feasible: rounding may not bring them back."""


def newton(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    """Proximal Newton steps from 0, or elsewhere, with Armijo's rule; None where they do not get there.

    A bound is that of the slopes at w times s <= 1, beside the infimum of the loss with 1 - s, at the constant where
    the slopes sum to 0.
    """
    run = _Run(rows, goal, start)
    for steps in range(goal.most + 1):
        if not math.isfinite(run.J):
            return None
        if run.proved():
            return ReachedAtOnce(run.w, np.array([run.b]), run.J, run.bound, steps, 2.0 * steps + 1.5)
        if not run.stepped():
            return None
    return None


class _Run:
    """One run.

    Attributes
    ----------
    w, b, f : the point with its scores.
    u, h, a : slopes and curvatures of rows, and the gradient of the risk.
    R, J, bound : the risk, the objective, and the last lower bound.
    """

    def __init__(self, rows: Rows, goal: Goal, start: AtPoint | None) -> None:
        self.rows, self.goal, self.factor = rows, goal, 1.0 / rows.mass
        self.quadratic = facts_of(rows.loss.loss).quadratic
        weights = rows.loss.weights
        self._targets = rows.loss.y, NO_WEIGHTS if weights is None else weights, rows.mass
        self._features = Dense(rows.X)
        self._kernel, self._arguments = kernel_of(rows.loss.loss), rows.loss.arguments
        n = len(rows.X)
        self._there, self.u, self.h, self._still = np.zeros((4, n))
        self._ones, self.share, self.damping = np.ones(n), 1.0, 0.0
        self.model: tuple[Array, Vector, float] | None = None
        self.w, (self.b,) = rows.begin(start)
        self.f = rows.scores(self.w, self.b)
        self.R, self.size, self.total, self.bent = self._looked(self._still, 0.0)
        self._centre()
        self.J, self.bound = self.R + self._omega(self.w), -math.inf

    def _looked(self, by: Vector, t: float) -> Any:
        """The risk at f + t `by`, which is `_there`; sums of absolute values of the loss, of slopes and curvatures."""
        still = 0.0, 0.0, 0.0
        given = (*self._targets, 0.0, still, math.inf, 0.0, self._there, self.u, self.h, *self._arguments)
        return self._kernel(self.f, by, t, 1, *given)[1:]

    def _omega(self, w: Vector) -> float:
        return self.goal.l1 * float(np.abs(w).sum()) + 0.5 * self.goal.l2 * float(w @ w)

    def _centre(self) -> None:
        """To the constant where slopes sum to 0."""
        self.f, self._there = self._there, self.f
        for _ in range(CENTRING if self.goal.free else 0):
            move = -self.total / self.bent if self.bent > 0.0 else 0.0
            if abs(self.total) <= CENTRED * self.rows.mass or self.b + move == self.b:
                break
            self.R, self.size, self.total, self.bent = self._looked(self._ones, move)
            self.f, self._there = self._there, self.f
            self.b += move
        self.a = self.rows.summed(self.u) * self.factor

    def proved(self) -> bool:
        """Whether the gap here is what is wanted, rounding taken off."""
        _, l2, free, wanted, _ = self.goal
        if not self._gap() <= wanted(self.J):
            return False
        self.f = self.rows.scores(self.w, self.b)  # what steps have added up is not what the weights say
        self.R, self.size, self.total, self.bent = self._looked(self._still, 0.0)
        self._centre()
        self.J = self.R + self._omega(self.w)
        product, rest = float(self.a @ self.w), self.total * self.factor
        if free and abs(rest) > SUMS:
            return False
        wrong, slack = errors(self.rows, self.w, self.b, self.u, self.f, self.size, l2, summed=True)
        slack += abs(rest) * (1.0 + abs(self.b)) if free else 0.0
        slack += (len(self.w) + TERMS) * ROUNDOFF * self._omega(self.w)
        sizes = np.abs(self.a) + wrong
        most = float(sizes.max(initial=0.0))
        self.bound = max(self._low(s, sizes, product) for s in self._factors(most)) - slack
        return bool(self.J - self.bound <= wanted(self.J))

    def _gap(self) -> float:
        """J less the bound here, but for rounding; infinite where slopes do not sum to 0 beside a free constant."""
        if self.goal.free and abs(self.total) * self.factor > SUMS:
            return math.inf
        sizes, product = np.abs(self.a), float(self.a @ self.w)
        likely = max(self._low(s, sizes, product) for s in self._factors(float(sizes.max(initial=0.0))))
        return float(self.J - likely)

    def _factors(self, most: float) -> list[float]:
        """By which slopes may be multiplied, the largest of which is `most`."""
        feasible = min(1.0, ALL * self.goal.l1 / most) if most > 0.0 else 1.0
        return [feasible, 1.0] if self.goal.l2 > 0.0 else [feasible]

    def _above(self) -> float:
        """How far the risk is above the infimum of the loss."""
        return float(self.R - self.rows.loss.infimum * self.factor)

    def _low(self, s: float, sizes: Vector, product: float) -> float:
        """The bound by slopes times s."""
        missing = (1.0 - s) * (1.0 - s if self.quadratic else 1.0) * self._above() if s < 1.0 else 0.0
        found = self.R - missing - s * product
        excess = np.maximum(s * sizes - self.goal.l1, 0.0)
        square = float(excess @ excess)
        return float(found - 0.5 * square / self.goal.l2 if square > 0.0 else found)

    def stepped(self) -> bool:
        """Go to the minimum of a model, or as far towards it as J falls; False where it does not."""
        while not self._to_minimum():
            if self.quadratic or self.damping >= MOST_DAMPING:
                return False
            self.damping = damped(self.damping, 0.0)
        return True

    def _to_minimum(self) -> bool:
        H, border, total = self._model()
        l1, l2 = self.goal.l1, self.goal.l2
        wanted, before = self.goal.wanted(self.J), self._omega(self.w)
        above = self._above()
        size = max(float(np.abs(self.w).sum()), above / l1 if above < math.inf else 0.0, 1e-300)
        while self.share >= SHARPEST:
            aim = min(SHARE * wanted / size, l1 * math.sqrt(wanted / max(abs(self.J), 1e-300)))
            after, _ = minimum(H, self.a, self.w, l1, l2, self.share * aim)
            step = after - self.w
            fall = float(self.a @ step) + self._omega(after) - before
            move = -float(border @ step) / total if total > 0.0 else 0.0
            if fall < 0.0:
                self.share *= SHARPER if self.quadratic or -fall <= wanted else 1.0
                return self._moved(step, move, fall)
            self.share *= SHARPER
        return False

    def _moved(self, step: Vector, move: float, fall: float) -> bool:
        """Whether J falls by a share of what is predicted, for the step or a half, a quarter, ... of it.

        A rise that is rounding counts for nothing: J is flat where slopes are not yet exact enough to prove it.
        """
        shift, t = self.rows.X @ step + move, 1.0
        rounding = (TERMS + math.sqrt(len(self.u))) * ROUNDOFF * self.size * self.factor
        for _ in range(HALVINGS):
            w = self.w + t * step
            found = self._looked(shift, t)
            J = found[0] + self._omega(w)
            if self.J + ARMIJO * t * fall + rounding >= J:
                self.w, self.b, (self.R, self.size, self.total, self.bent) = w, self.b + t * move, found
                self._centre()
                self.J = self.R + self._omega(w)
                self.damping = damped(self.damping, t)
                return True
            t *= 0.5
        self._looked(self._still, 0.0)
        return False

    def _model(self) -> tuple[Array, Vector, float]:
        """The Gram matrix here with the constant minimised over, its border, and the sum of the curvatures."""
        if self.model is None or not self.quadratic:
            h = self.h
            if self.damping > 0.0:
                h = h + self.damping * (self.bent / len(h) or 1.0)
            H, border = self._features.gram(h, None, unchecked)
            H *= self.factor
            total = float(h.sum()) * self.factor if self.goal.free else 0.0
            border = (h @ self.rows.X if border is None else border) * self.factor
            if total > 0.0:
                H -= np.outer(border, border / total)
            ridge = RIDGE * float(H.diagonal().mean())
            H.flat[:: len(H) + 1] += ridge if ridge > 0.0 else 1.0
            self.model = H, border, total
        return self.model
