"""The master of L2: a quadratic program over simplices, by a warm-started active-set method.

    min over w:      lambda/2 ||w||^2 + sum_k max(infimum_k, max over planes j of block k of <a_j, w> + b_j)
    max over alpha:  b'alpha - ||A alpha||^2 / (2 lambda),  alpha in a product of simplices,  w = -A alpha / lambda

(eq. 10-12 of Teo, Smola, Vishwanathan & Le, KDD 2007). The kernel sees both problems times lambda, and the planes only
through their Gram matrix, which grows by one row of products per plane; so planes may live on other ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bmrm.masters._core.planes import PlaneStore
from bmrm.masters._core.simplex_program import SimplexProgram, tops
from bmrm.problem import MasterSolution, Vector

EPS = float(np.finfo(np.float64).eps)
NOISE = 4.0 * EPS
"""Rounding of the Gram matrix, relative to its largest diagonal entry in use."""
ROUNDS = 6
"""Most refinements where the rounding of the Gram matrix exceeds the requested accuracy."""


class SimplexQP:
    """min over w of lambda/2 ||w||^2 + the model of the planes (the protocol `Master`).

    A solution starts from the multipliers, the support and the factor of the last one. If rounding of the Gram matrix
    (eps ||a||^2 / lambda) exceeds the requested accuracy, plane values are recomputed from w and a correction is solved
    for, so that accuracy 0 means as accurate as float64 allows. The lower bound is evaluated at w = -combine(alpha) /
    lambda, never from the Gram matrix, whose rounding could make it too high.

    Parameters
    ----------
    planes : as of `HasMaster`.
    lam : lambda > 0.
    """

    def __init__(self, planes: PlaneStore, lam: float) -> None:
        self.planes, self._lam = planes, lam
        self._program = SimplexProgram(self.planes.infima)

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """As of `Master`: one product with all planes."""
        id = self.planes.add(a, b, block)
        self._program.add(self.planes.products(a), b, block)
        return id

    def remove(self, planes: Sequence[int]) -> None:
        """Remove planes; their multipliers go to the rest of their block."""
        self._program.remove(self.planes.drop(planes))

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model; `accuracy` is the duality gap allowed, relative to the model's objective.

        A block without infimum and planes leaves the model unbounded below; then the bound is -inf and w minimises the
        rest.
        """
        n = self._program.n
        accuracy = max(accuracy, 4.0 * EPS)
        c = self._lam * self._program.qp.b[:n]
        v = np.empty(n)
        objective = self._program.run(c, v, False, np.zeros(n), accuracy, NOISE)
        solution, largest = self._evaluate()
        if NOISE * largest > accuracy * abs(objective) and math.isfinite(solution.lower_bound):
            solution = self._refine(solution, c, v, accuracy)
        return solution

    def _refine(self, best: MasterSolution, c: Vector, v: Vector, accuracy: float) -> MasterSolution:
        """Correct from plane values computed at w itself, as long as the gap halves.

        The correction is added to w too: near the solution it is below the last digit of alpha, but not of w.
        """
        w, upper, gap = best.w, math.inf, math.inf
        for _ in range(ROUNDS):
            value = self._model(w, c, v)
            if value < upper:
                upper, best = value, MasterSolution(w, best.multipliers, best.lower_bound)
            before, gap = gap, upper - best.lower_bound
            if gap <= accuracy * abs(best.lower_bound) or gap > 0.5 * before:
                break
            moved = np.zeros(len(c))
            self._program.run(c, v, True, moved, accuracy, 0.0)
            w = w - self.planes.combine(moved[self._program.first :]) / self._lam
            trial, _ = self._evaluate()
            if trial.lower_bound >= best.lower_bound:
                best = MasterSolution(best.w, trial.multipliers, trial.lower_bound)
        return best

    def _model(self, w: Vector, c: Vector, v: Vector) -> float:
        """The regularized model at w; sets v to lambda times the plane values there."""
        first = self._program.first
        v[:first] = c[:first]
        v[first:] = c[first:] + self._lam * self.planes.products(w)
        return 0.5 * self._lam * self.planes.space.dot(w, w) + float(tops(v, self._program).sum()) / self._lam

    def _evaluate(self) -> tuple[MasterSolution, float]:
        """w and the bound, after the multipliers were made feasible; and the largest ||a_j||^2 in use."""
        covered, linear, largest = self._program.conclude()
        alpha = self._program.planes
        w = self.planes.combine(alpha)
        w /= -self._lam
        bound = linear - 0.5 * self._lam * self.planes.space.dot(w, w) if covered else -math.inf
        return MasterSolution(w, self.planes.multipliers(alpha), bound), largest
