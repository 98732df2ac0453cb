"""Newton's method for smooth losses of several scores that know their second derivatives by shares (softmax)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm.kernels.blas_threads import lapack
from bmrm.kernels.rows.little import ARMIJO, CENTRED, CENTRING
from bmrm.problem import Vector
from bmrm.problem.abilities import AtPoint, ReachedAtOnce
from bmrm.risk.little.rows import HALVINGS, SHARE, SUMS, Array, Goal, Rows, rounding


def newton(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    """Newton's method from 0, or elsewhere, with Armijo steps; None where it does not get there.

    A bound is that of the slopes at w: J(w) - ||J'(w)||^2 / (2 l2), at the constants where their sums are 0.
    """
    of = _Objective(rows, goal)
    d, K = rows.X.shape[1], rows.loss.scores_per_row
    w, b = rows.begin(start)
    here = of.at(w.reshape(d, K), b)
    for steps in range(goal.most + 1):
        if not math.isfinite(here.J):
            return None
        enough = SHARE * goal.wanted(here.J)
        if here.lacks <= enough:
            here = of.centred(of.at(here.W, here.b))
            bound = of.bound(here)
            if here.J - bound <= goal.wanted(here.J) and (not goal.free or here.largest_sum <= SUMS):
                return ReachedAtOnce(here.W.ravel(), here.b, here.J, bound, steps, 2.0 * steps + 1.5)
        there = of.stepped(here)
        if there is None:
            return None
        here = there
    return None


@dataclass(frozen=True, eq=False)
class _Point:
    """Weights and constants with their scores f, slopes u there, J, its gradient and the sums of the slopes."""

    W: Array
    b: Vector
    f: Array
    u: Array
    value: float
    J: float
    gradient: Array
    sums: Vector
    lacks: float

    @property
    def largest_sum(self) -> float:
        """Of slopes, over the mass."""
        return float(np.abs(self.sums).max())


class _Objective:
    def __init__(self, rows: Rows, goal: Goal) -> None:
        self.rows, self.goal, self.factor = rows, goal, 1.0 / rows.mass
        n = len(rows.X)
        self.Z = np.column_stack((rows.X, np.ones(n))) if goal.free else rows.X

    def at(self, W: Array, b: Vector, f: Array | None = None) -> _Point:
        f = self.rows.scores(W, b) if f is None else f
        value, u = self.rows.loss.value_and_slope(f)
        gradient = self.rows.X.T @ u
        gradient *= self.factor
        gradient += self.goal.l2 * W
        J = value * self.factor + 0.5 * self.goal.l2 * float(np.vdot(W, W))
        lacks = 0.5 * float(np.vdot(gradient, gradient)) / self.goal.l2
        return _Point(W, b, f, u, value, J, gradient, u.sum(axis=0) * self.factor, lacks)

    def stepped(self, here: _Point) -> _Point | None:
        """Where J has fallen along Newton's step; None where it does not."""
        loss: Any = self.rows.loss
        sums = here.sums if self.goal.free else None
        found = step_of(self.Z, loss.hessian_shares(here.f), self.factor, self.goal.l2, here.gradient, sums)
        if found is None:
            return None
        dW, db = found
        slope = float(np.vdot(here.gradient, dW)) + (float(here.sums @ db) if self.goal.free else 0.0)
        if not -math.inf < slope < 0.0:
            return None
        shift, t = self.rows.X @ dW + db, 1.0
        for _ in range(HALVINGS):
            there = self.at(here.W + t * dW, here.b + t * db, here.f + t * shift)
            if here.J + ARMIJO * t * slope >= there.J:
                return there
            t *= 0.5
        return None

    def centred(self, here: _Point) -> _Point:
        """At the constants where slopes sum to 0."""
        loss: Any = self.rows.loss
        for _ in range(CENTRING if self.goal.free else 0):
            if here.largest_sum <= CENTRED:
                break
            H = loss.hessian_total(here.f) * self.factor
            H += max(float(np.trace(H)), 1e-300) / len(H) ** 2
            _, move, failed = lapack().dposv(H, -here.sums, lower=1)
            b = here.b + move
            if failed or not np.isfinite(move).all() or np.array_equal(b, here.b):
                break
            there = self.at(here.W, b)
            if there.largest_sum >= here.largest_sum:
                break
            here = there
        return here

    def bound(self, here: _Point) -> float:
        """A lower bound of min J, less what rounding may have done."""
        away, size = math.sqrt(2.0 * here.lacks / self.goal.l2), abs(here.value)  # no row has less than 0
        slack = rounding(self.rows, here.W, here.b, here.u, here.f, self.goal.l2, size, away)
        rest = float(np.abs(here.sums) @ (1.0 + np.abs(here.b))) if self.goal.free else 0.0
        return here.J - here.lacks - slack - rest


def step_of(
    Z: Array, shares: Array, factor: float, l2: float, gradient: Array, sums: Vector | None, flat: float = 0.0
) -> tuple[Array, Vector] | None:
    """Newton's step of weights and constants; None where there is none.

    Parameters
    ----------
    Z : the features, and the constant feature last if constants are free.
    shares : (rows, K), c: the second derivative of a row is diag(c) - c c' / sum(c), times `factor`.
    gradient, sums : of J in the weights, (dim / K, K), and in the constants; None where these are not free.
    flat : what is added to the second derivatives in the constants.
    """
    used = shares.any(axis=1)
    if not used.all():
        Z, shares = Z[used], shares[used]
    (n, D), K, size = Z.shape, shares.shape[1], gradient.size
    B = (Z[:, :, None] * shares[:, None, :]).reshape(n, D * K)
    mass = shares.sum(axis=1)
    weighed = B / np.sqrt(np.where(mass > 0.0, mass, 1.0))[:, None]
    H = -(weighed.T @ weighed)
    diagonal, every = (Z.T @ B).reshape(D, D, K), np.arange(K)
    H.reshape(D, K, D, K)[:, every, :, every] += diagonal.transpose(2, 0, 1)
    H *= factor
    H.reshape(-1)[: size * (D * K + 1) : D * K + 1] += l2
    right = -gradient.ravel()
    if sums is not None:  # a shift of all constants changes nothing
        H[size:, size:] += max(float(np.trace(H[size:, size:])), 1e-300) / K**2
        H.reshape(-1)[size * (D * K + 1) :: D * K + 1] += flat
        right = np.append(right, -sums)
    _, step, failed = lapack().dposv(H, right, lower=1, overwrite_a=1)
    if failed:
        return None
    return step[:size].reshape(gradient.shape), step[size:] if sums is not None else np.zeros(K)
