"""Least squares with l1 or elastic net along lambdas, by a Gram matrix that is kept.

Friedman, Hastie & Tibshirani 2010, section 2.2 (covariance updates), kept over all lambdas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bmrm.kernels.products.vectors import dot
from bmrm.problem import Elastic, Regularizer, Risk, Vector, provides
from bmrm.problem.meter import Meter
from bmrm.solvers._core.gram_model import minimum
from bmrm.solvers._core.kept_walk import SPARE, Guess, KeptWalk
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.quadratic_walk import LONGEST, Descent, Units, quadratic

FIRST, SHARPER, ROUNDS = 0.3, 0.2, 12
"""Distance from optimality up to which the first descent of a point goes, over what the gap allows; factor of that of
each next one; most descents of a point. Chosen by hand on the tuning rows of `benchmarks/paths.py`, without a sweep."""
NARROW = 400
"""Most weights for which the matrix, then of 1.3 MB, has all columns at once."""


def walk_of(risk: Risk, regularizer: Regularizer, solver: IterativeSolver) -> KeptWalk | None:
    """The walk, where it is such a problem."""
    if not (provides(regularizer, Elastic) and regularizer.l1 > 0.0 and quadratic(risk, solver)):
        return None
    return KeptWalk(solver, ElasticDescent, "one Gram matrix for all lambdas")


class ElasticDescent(Descent):
    """By single coordinates."""

    def __init__(self, risk: Risk, meter: Meter, start: Vector | None, regularizer: Regularizer) -> None:
        self._sizes = np.ones(risk.dim, np.int64)
        super().__init__(risk, meter, start, NARROW)

    @property
    def sizes(self) -> Units:
        """As of `Descent`."""
        return self._sizes

    def units_of(self, columns: Units) -> Units:
        """As of `Descent`."""
        return columns

    def columns_of(self, units: Units) -> Units:
        """As of `Descent`."""
        return units

    def excess(self, slopes: Vector, omega: Any) -> Vector:
        """As of `Descent`."""
        found: Vector = np.abs(slopes) - omega.l1
        return found

    def move(self, w: Vector) -> None:
        """As of `Descent`."""
        self.w = w[self.columns]
        self.q = self.first + self.H @ self.w

    def guess(self, omega: Any, solver: IterativeSolver) -> Guess:
        """As of `Descent`."""
        share, rounds, l1, l2 = FIRST, 0, omega.l1, omega.l2
        for rounds in range(ROUNDS):  # noqa: B007 (told at the end)
            value = max(self.value + 0.5 * dot(self.first + self.q, self.w), self.infimum)
            size = float(np.abs(self.w).sum())
            objective = value + l1 * size + 0.5 * l2 * dot(self.w, self.w)
            lower = self.bound(value, self.q, dot(self.q, self.w), omega)
            allowed = SPARE * solver.goal(objective) * abs(objective)
            if objective - lower <= allowed or not math.isfinite(objective):
                break
            goal = share * min(allowed / max(size, 1e-300), l1 * math.sqrt(solver.tolerance))
            after, _ = minimum(self.H, self.q, self.w, l1, l2, goal)
            self.q, self.w, share = self.q + self.H @ (after - self.w), after, share * SHARPER
        return self.guessed(rounds)

    def bound(self, value: float, slopes: Vector, product: float, omega: Any) -> float:
        """As of `Descent`."""
        l1, l2, sizes = omega.l1, omega.l2, np.abs(slopes)
        square, largest = 2.0 * (value - self.infimum), float(sizes.max(initial=0.0))
        most = l1 / largest if largest > 0.0 else math.inf
        s = min(most, 1.0 - product / square if square > 0.0 else 1.0, LONGEST)
        found = value - s * product - 0.5 * square * (s - 1.0) ** 2
        if l2 > 0.0:
            excess = np.maximum(sizes - l1, 0.0)
            found = max(found, value - product - 0.5 * dot(excess, excess) / l2)
        return found
