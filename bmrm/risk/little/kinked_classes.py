"""The method of multipliers for losses with kinks of several scores (Crammer and Singer's), as `kinked`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bmrm.kernels.blas_threads import lapack
from bmrm.kernels.products import laplacian
from bmrm.kernels.rows.little import CENTRED, CENTRING
from bmrm.problem.abilities import AtPoint, ReachedAtOnce
from bmrm.risk.little.classes import step_of
from bmrm.risk.little.kinked import Multipliers
from bmrm.risk.little.rows import SUMS, Array, Goal, Rows, rounding

FLAT = 1e-9
"""Damping of the constants, as a share of the curvature that they have if all rows are at kinks."""


def multipliers(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    """As of `kinked`."""
    return _Run(rows, goal, start).reached()


class _Run(Multipliers):
    """Slopes of a row are shares of the classes, so that they prove a bound wherever they are taken."""

    def _begin(self, start: AtPoint | None) -> None:
        (n, d), K = self.rows.X.shape, self.rows.loss.scores_per_row
        w, b = self.rows.begin(start)
        self.w, self.b = w.reshape(d, K), b
        self.f = self.rows.scores(self.w, self.b)
        self.Z = np.column_stack((self.rows.X, np.ones(n))) if self.goal.free else self.rows.X
        self.x, self.move = np.zeros((d, K)), np.zeros(K)

    def _at_once(self, z: Array, omega: Any, first: float) -> bool:
        return False

    def _go(self, t: float) -> None:
        self.w = self.w + t * self.x
        self.b = self.b + t * self.move

    def _centre(self, z: Array) -> None:
        """As of `Multipliers`: Newton with a line search, for all constants together."""
        still = 0.0, 0.0, 0.0
        for _ in range(CENTRING):
            sums = self.u.sum(axis=0) * self.factor
            if float(np.abs(sums).max()) <= CENTRED:
                return
            H = laplacian.total(self.c) * self.factor
            flat = FLAT * self.sigma * len(z) * self.factor
            H += max(float(np.trace(H)), flat) / len(H) ** 2
            H.flat[:: len(H) + 1] += flat
            _, move, failed = lapack().dposv(H, -sums, lower=1)
            first = float(sums @ move)
            if failed or not -math.inf < first < 0.0 or np.array_equal(self.b + move, self.b):
                return
            self.shift = np.broadcast_to(move, z.shape)
            t = self._searched(z, still, first)
            self.b = self.b + t * move
            self.f += t * move
            z += t * move

    def _direction(self) -> Any:
        rows, l2, free = self.rows, self.goal.l2, self.goal.free
        a = rows.X.T @ self.u * self.factor
        rest, gradient = self.u.sum(axis=0) * self.factor, a + l2 * self.w
        lacks = 0.5 * float(np.vdot(gradient, gradient)) / l2
        flat = FLAT * self.sigma * len(rows.X) * self.factor
        found = step_of(self.Z, self.c, self.factor, l2, gradient, rest if free else None, flat)
        if found is None:
            return rest, math.nan, 0.0, 0.0, 0.0, 0.0, 0.0
        self.x, self.move = found
        self.shift = rows.X @ self.x + self.move
        slope = float(np.vdot(gradient, self.x)) + (float(rest @ self.move) if free else 0.0)
        omega = float(np.vdot(self.w, self.w)), float(np.vdot(self.w, self.x)), float(np.vdot(self.x, self.x))
        return rest, lacks, float(np.vdot(a, a)), *omega, slope

    def _proved(self) -> bool:
        if not self.best - self.likely <= self.goal.wanted(self.best):
            return False
        rows, l2, u = self.rows, self.goal.l2, self.u
        a, rest = rows.X.T @ u * self.factor, u.sum(axis=0) * self.factor
        if self.goal.free and float(np.abs(rest).max()) > SUMS:
            return False
        square, size = float(np.vdot(a, a)), abs(self.total) + abs(self.inner)
        steep = 1.0 if rows.loss.weights is None else float(rows.loss.weights.max())
        slack = rounding(rows, self.w, self.b, u, self.f, l2, size, math.sqrt(square) / l2, 2.0 * steep)
        bound = (self.total - self.inner) * self.factor - 0.5 * square / l2 - slack
        self.low = max(self.low, bound - self._left(rest))
        w, b = self.kept
        value, _ = rows.loss.value_and_slope(rows.scores(w, b))
        self.best = value * self.factor + 0.5 * l2 * float(np.vdot(w, w))
        return self.best - self.low <= self.goal.wanted(self.best)
