"""All masters by cvxopt's interior-point methods, from scratch at each call: the cross-check of our own engines.

The dual problems are solved, whose size is the number of planes; the primal solution comes with them. See
`l2_active_set.py`, `l1_simplex.py` and `elastic_newton.py` for the problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from cvxopt import matrix, solvers
from numpy.typing import NDArray

from bmrm.masters._core.bounds import flatter, l1_bound, onto_simplices
from bmrm.masters._core.infima import Infima
from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import BmrmError, MasterSolution, Vector

TIGHTEST, LOOSEST = 1e-12, 1e-5
SAFETY = 0.01
"""Share of the accuracy that is requested of cvxopt: multipliers are projected onto the simplices afterwards."""
TINIEST = 1e-100
"""A slope so small is none."""
LEAST_SHARE = 1e-300
"""Multipliers are counted in no smaller units."""
SCALES = (1.0, 1e2, 1e-2)
"""Scalings of the objective that are tried in turn."""


class CvxoptMaster:
    """What the masters share: the planes, and one block of multipliers per term of the model."""

    def __init__(self, planes: PlaneStore, lam: float) -> None:
        self.planes, self._lam = planes, lam
        self._blocks = len(planes.infima)

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """As of `Master`."""
        return self.planes.add(a, b, block)

    def remove(self, planes: Sequence[int]) -> None:
        """Forget planes."""
        self.planes.drop(planes)

    def _rows(self) -> NDArray[np.float64]:
        """A', one row per plane."""
        return self.planes.saved("").slopes

    def _sums(self, infima: NDArray[np.int64]) -> NDArray[np.float64]:
        """The matrix that sums multipliers of planes, then of the infima of some blocks, per block."""
        block = np.concatenate([self.planes.blocks, infima])
        sums: NDArray[np.float64] = np.equal.outer(np.arange(self._blocks), block).astype(np.float64)
        return sums


class CvxoptQP(CvxoptMaster):
    """The master of L2 (see `SimplexQP`, whose parameters and results these are)."""

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model to `accuracy`, relative, 1e-12 at the least; raises BmrmError when cvxopt fails."""
        planes, lam = self.planes, self._lam
        infima = np.flatnonzero(np.isfinite(planes.infima))
        n, count = len(planes), len(planes) + len(infima)
        b = np.concatenate([planes.offsets, np.array(planes.infima)[infima]])
        sums = self._sums(infima)
        present = sums.any(axis=1)
        if count == 0:
            return MasterSolution(planes.space.zeros(), {}, -math.inf)
        # Above the infima, and each multiplier in units of the most that it can usefully be: planes may differ in size
        # by more than an interior point can tell apart, and their products overflow in other units.
        above = b - np.where(np.isfinite(planes.infima), planes.infima, 0.0) @ sums
        depth = float(above.max()) or 1.0
        rows, total = self._rows(), planes.space.total
        steepest = np.maximum(total(np.abs(rows).max(axis=1, initial=0.0)), TINIEST)
        level = rows / steepest[:, None]
        most = np.ones(count)
        with np.errstate(divide="ignore", over="ignore"):  # slopes of no size have no most
            most[:n] = np.clip(
                abs(depth) * lam / total(np.square(level).sum(axis=1)) / steepest / steepest, LEAST_SHARE, 1.0
            )
        level *= (steepest * most[:n])[:, None]
        P = np.zeros((count, count))
        P[:n, :n] = total(level @ level.T) / lam
        above *= most
        unit = max(float(np.abs(above).max()), float(np.diagonal(P).max()), 1e-300)
        found = interior_point(
            solvers.qp,
            accuracy,
            matrix(P / unit),
            matrix(-above / unit),
            matrix(-np.eye(count)),
            matrix(np.zeros(count)),
            matrix(sums[present] * most),
            matrix(np.ones(int(present.sum()))),
        )
        alpha = np.maximum(np.array(found["x"]).ravel(), 0.0) * most
        alpha /= (sums @ alpha) @ sums
        w = planes.combine(alpha[:n]) / -lam
        bound = float(np.dot(alpha, b)) - 0.5 * lam * planes.space.dot(w, w) if present.all() else -math.inf
        return MasterSolution(w, planes.multipliers(alpha[:n]), bound)


class CvxoptLP(CvxoptMaster):
    """The master of L1 (see `SimplexLP`, whose parameters and results these are)."""

    def __init__(self, planes: PlaneStore, lam: float) -> None:
        super().__init__(planes, lam)
        self._flat = flatter(lam, planes.infima, 1e-7)
        self._infima = Infima(planes.infima)

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """As of `Master`."""
        id = super().add(a, b, block)
        self._infima.begin(a, b, block)
        return id

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model to `accuracy`, relative, 1e-12 at the least; raises BmrmError when cvxopt fails."""
        planes, K, n = self.planes, self._blocks, len(self.planes)
        self._infima.deepen(planes)
        most = np.concatenate([usable_shares(self._rows(), self._flat), np.ones(K)])
        if self._infima.makeshift.any():
            # what is not flat to the margin of `flatter` proves nothing
            accuracy = min(accuracy, 1e-8)
        try:
            x, w = self._solved(accuracy, most)
        except BmrmError:  # planes that balance one another can have larger multipliers than each could alone
            x, w = self._solved(accuracy, np.ones(n + K))
        alpha, rest = onto_simplices(x[:n], x[n:], planes, K)
        self._infima.noted(planes, w, rest)
        return MasterSolution(w, planes.multipliers(alpha), l1_bound(alpha, rest, planes, self._lam))

    def _solved(self, accuracy: float, most: Vector) -> tuple[Vector, Vector]:
        """Multipliers of planes and infima, computed in units of `most`, and the weights."""
        planes, K, n = self.planes, self._blocks, len(self.planes)
        b = np.concatenate([planes.offsets, self._infima.values])
        slopes = np.zeros((planes.space.dim, n + K))
        slopes[:, :n] = self._rows().T
        # features that no multipliers can bring to lambda have weight 0
        screened = np.flatnonzero(np.abs(slopes).max(axis=1, initial=0.0) > self._flat / K)
        slopes, b_scaled = slopes[screened] * most, b * most
        unit = float(np.abs(b_scaled).max()) or 1.0
        steepest = np.maximum(self._flat, np.abs(slopes).max(axis=1, initial=0.0))
        level = slopes / steepest[:, None]
        found = interior_point(
            solvers.lp,
            accuracy,
            matrix(-b_scaled / unit),
            matrix(np.concatenate([level, -level, -np.eye(n + K)])),
            matrix(np.concatenate([self._flat / steepest, self._flat / steepest, np.zeros(n + K)])),
            matrix(self._sums(np.arange(K)) * most),
            matrix(np.ones(K)),
        )
        x, z = np.array(found["x"]).ravel() * most, np.array(found["z"]).ravel()
        w = planes.space.zeros()
        d = len(screened)
        w[screened] = (z[d : 2 * d] - z[:d]) / steepest * unit
        return x, w


def usable_shares(
    rows: NDArray[np.float64], flat: float, curved: NDArray[np.float64] | float = 0.0
) -> NDArray[np.float64]:
    """About the largest multipliers that planes of these slopes, one a row, can usefully have, at most 1; (planes,).

    Multipliers in these units are numbers that an interior point can tell apart, where planes are not: those taken far
    away may be steeper by hundreds of orders of magnitude.

    Parameters
    ----------
    flat : the size of slopes that costs nothing.
    curved : the height of each plane above 0, over the curvature of what larger slopes cost.
    """
    steepest = np.maximum(np.abs(rows).max(axis=1, initial=0.0), TINIEST)
    with np.errstate(over="ignore"):
        shares: NDArray[np.float64] = np.minimum(1.0, (flat + curved / steepest) / steepest)
    return shares


def interior_point(program: Any, accuracy: float, *data: Any) -> dict[str, Any]:
    """One of cvxopt's solvers, with its options for this call only; its "x" and "z".

    With a tolerance below rounding an interior-point method diverges, so the tolerance is loosened until it is met. The
    LDL factorisation is slower than Cholesky's, but works where that one fails. If both cycle, another scaling of the
    objective, and so another start, helps. If nothing does, the best point is returned: any multipliers prove a bound.
    """
    terms = 2 if program is solvers.qp else 1
    tolerance = min(max(SAFETY * accuracy, TIGHTEST), LOOSEST)
    reason, nearest, rough = "no point found", math.inf, None
    while tolerance <= LOOSEST:
        for scale in SCALES:
            limits = {"abstol": 1e-3 * tolerance * scale, "reltol": tolerance, "feastol": tolerance}
            problem = [scale * part for part in data[:terms]] + list(data[terms:])
            for factorisation in ("chol", "ldl"):
                try:
                    found = program(*problem, kktsolver=factorisation, options={"show_progress": False, **limits})
                except (ArithmeticError, ValueError) as error:
                    reason = str(error)
                    continue
                if found["status"] == "optimal":
                    return {"x": found["x"], "z": found["z"] / scale}
                reason = found["status"]
                # a program that is called infeasible has one of the two at most
                whole = all(found[part] is not None and np.all(np.isfinite(found[part])) for part in ("x", "z"))
                if whole and found["gap"] is not None and found["gap"] / scale < nearest:
                    nearest, rough = found["gap"] / scale, {"x": found["x"], "z": found["z"] / scale}
        tolerance *= 10.0
    if rough is not None:
        return rough
    raise BmrmError(f"cvxopt could not solve the master problem: {reason}")


class CvxoptElastic(CvxoptMaster):
    """The cross-check of `ElasticQP`, whose parameters and results these are.

    The dual with its thresholds written as constraints: min over alpha, u >= 0 of ||u||^2 / (2 l2) - b'alpha with
    |A alpha| <= l1 + u and alpha on the simplices.
    """

    def __init__(self, planes: PlaneStore, l1: float, l2: float) -> None:
        super().__init__(planes, l1)
        self._l1, self._l2 = l1, l2

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model to `accuracy`, relative, 1e-12 at the least; raises BmrmError when cvxopt fails."""
        planes, l1, l2 = self.planes, self._l1, self._l2
        infima = np.flatnonzero(np.isfinite(planes.infima))
        n, count = len(planes), len(planes) + len(infima)
        if count == 0:
            return MasterSolution(planes.space.zeros(), {}, -math.inf)
        b = np.concatenate([planes.offsets, np.array(planes.infima)[infima]])
        sums = self._sums(infima)
        present = sums.any(axis=1)
        slopes = self._rows().T
        screened = np.flatnonzero(np.abs(slopes).max(axis=1, initial=0.0) > l1 / self._blocks)
        p = len(screened)
        # u in units of l1, the objective in units of its largest coefficient
        most = np.ones(count)
        most[:n] = usable_shares(self._rows(), l1, l2 * np.maximum(planes.offsets, 0.0))
        A = np.hstack([slopes[screened] * most[:n] / l1, np.zeros((p, count - n))])
        curvature = l1 * l1 / l2
        unit = max(float(np.abs(b * most).max()), curvature, 1e-300)
        P = np.diag(np.concatenate([np.zeros(count), np.full(p, curvature / unit)]))
        G = np.vstack(
            [np.hstack([A, -np.eye(p)]), np.hstack([-A, -np.eye(p)]), -np.eye(count + p)],
        )
        found = interior_point(
            solvers.qp,
            accuracy,
            matrix(P),
            matrix(np.concatenate([-b * most / unit, np.zeros(p)])),
            matrix(G),
            matrix(np.concatenate([np.ones(2 * p), np.zeros(count + p)])),
            matrix(np.hstack([sums[present] * most, np.zeros((int(present.sum()), p))])),
            matrix(np.ones(int(present.sum()))),
        )
        alpha = np.maximum(np.array(found["x"]).ravel()[:count], 0.0) * most
        alpha /= (sums @ alpha) @ sums
        # from the multipliers of the thresholds: A alpha would bring its inexactness divided by l2
        z = np.array(found["z"]).ravel()
        w = planes.space.zeros()
        w[screened] = (z[p : 2 * p] - z[:p]) * (unit / l1)
        excess = np.maximum(np.abs(planes.combine(alpha[:n])) - l1, 0.0)
        bound = float(np.dot(alpha, b)) - 0.5 * float(np.dot(excess, excess)) / l2 if present.all() else -math.inf
        return MasterSolution(w, planes.multipliers(alpha[:n]), bound)
