"""The master of the elastic net by cvxopt's interior-point method, from scratch at each call."""

from __future__ import annotations

import math

import numpy as np
from cvxopt import matrix, solvers

from bmrm.masters.cvxopt import CvxoptMaster, interior_point
from bmrm.problem import MasterSolution, Planes


class CvxoptElastic(CvxoptMaster):
    """The cross-check of `ElasticQP`, whose parameters and results these are.

    The dual with its thresholds written as constraints: min over alpha, u >= 0 of ||u||^2 / (2 l2) - b'alpha with
    |A alpha| <= l1 + u and alpha on the simplices.
    """

    def __init__(self, planes: Planes, l1: float, l2: float, blocks: int = 1) -> None:
        super().__init__(planes, l1, blocks)
        self._l1, self._l2 = l1, l2

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model to `accuracy`, relative, 1e-12 at the least; raises BmrmError when cvxopt fails."""
        roster, planes, l1, l2 = self._roster, self._roster.planes, self._l1, self._l2
        floors = np.flatnonzero(np.isfinite(planes.floors))
        n, count = len(roster), len(roster) + len(floors)
        if count == 0:
            return MasterSolution(np.zeros(planes.dim), {}, -math.inf)
        b = np.concatenate([roster.b, np.array(planes.floors)[floors]])
        sums = self._sums(floors)
        present = sums.any(axis=1)
        slopes = self._rows().T
        steep = np.flatnonzero(np.abs(slopes).max(axis=1, initial=0.0) * self._blocks > l1)
        p = len(steep)
        # u in units of l1, the objective in units of its largest coefficient
        A = np.hstack([slopes[steep] / l1, np.zeros((p, count - n))])
        curvature = l1 * l1 / l2
        unit = max(float(np.abs(b).max()), curvature, 1e-300)
        P = np.diag(np.concatenate([np.zeros(count), np.full(p, curvature / unit)]))
        G = np.vstack(
            [np.hstack([A, -np.eye(p)]), np.hstack([-A, -np.eye(p)]), -np.eye(count + p)],
        )
        found = interior_point(
            solvers.qp,
            accuracy,
            matrix(P),
            matrix(np.concatenate([-b / unit, np.zeros(p)])),
            matrix(G),
            matrix(np.concatenate([np.ones(2 * p), np.zeros(count + p)])),
            matrix(np.hstack([sums[present], np.zeros((int(present.sum()), p))])),
            matrix(np.ones(int(present.sum()))),
        )
        alpha = np.maximum(np.array(found["x"]).ravel()[:count], 0.0)
        alpha /= (sums @ alpha) @ sums
        # from the multipliers of the thresholds: A alpha would bring its inexactness divided by l2
        z = np.array(found["z"]).ravel()
        w = np.zeros(planes.dim)
        w[steep] = (z[p : 2 * p] - z[:p]) * (unit / l1)
        excess = np.maximum(np.abs(planes.combine(roster.spread(alpha[:n]))) - l1, 0.0)
        bound = float(np.dot(alpha, b)) - 0.5 * float(np.dot(excess, excess)) / l2 if present.all() else -math.inf
        return MasterSolution(w, roster.multipliers(alpha[:n]), bound)
