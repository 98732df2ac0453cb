"""All masters by cvxopt's interior-point methods, from scratch at each call: the cross-check of our own engines.

The dual problems are solved, whose size is the number of planes; the primal solution comes with them. See
`l2_active_set.py`, `l1_simplex.py` and `elastic_newton.py` for the problems.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cvxopt import matrix, solvers, spdiag
from numpy.typing import NDArray

from bmrm.masters._core.cone_program import Constraints, Eliminated
from bmrm.masters._core.linear import Infima, flatter
from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import BmrmError, MasterSolution, Vector

Array = NDArray[np.float64]

TIGHTEST, LOOSEST = 1e-12, 1e-5
SAFETY = 0.01
"""Accuracy requested of cvxopt, as a share of that of the master: multipliers are projected onto the simplices
afterwards."""
TINIEST = 1e-100
"""Least divisor by which slopes are scaled."""
LEAST_SHARE = 1e-300
"""Least unit of the multipliers."""
ENDED = 10.0
"""Tolerances within which constraints hold well enough, and an end that rounding stopped: `SAFETY` leaves that much."""
SCALES = (1.0, 1e2, 1e-2, 1e4, 1e-4)
"""Scalings of the objective that are tried in turn."""
TURNS = len(SCALES)
"""How often a program is solved whose solution was too inexact to lead anywhere, by another scaling each time."""
USUAL = 3
"""How many of them are tried where a point is near already."""
NEAR = 1e-3
"""How short of a solution such a point is."""


class CvxoptMaster:
    """Base class of the masters: the planes, and one block of multipliers per term of the model."""

    def __init__(self, planes: PlaneStore, lam: float) -> None:
        self.planes, self._lam = planes, lam
        self._blocks = len(planes.infima)

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """As of `Master`."""
        return self.planes.add(a, b, block)

    def remove(self, planes: Sequence[int]) -> None:
        """Forget planes."""
        self.planes.drop(planes)

    def _rows(self) -> Array:
        """A', one row per plane."""
        return self.planes.saved("").slopes

    def _sums(self, infima: NDArray[np.int64]) -> Array:
        """The matrix that sums multipliers of planes, then of the infima of some blocks, per block."""
        block = np.concatenate([self.planes.blocks, infima])
        sums: Array = np.equal.outer(np.arange(self._blocks), block).astype(np.float64)
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
            accuracy,
            P / unit,
            -above / unit,
            -np.eye(count),
            np.zeros(count),
            sums[present] * most,
            np.ones(int(present.sum())),
        )
        alpha = np.maximum(np.array(found["x"]).ravel(), 0.0) * most
        alpha /= (sums @ alpha) @ sums
        w = planes.combine(alpha[:n]) / -lam
        bound = float(np.dot(alpha, b)) - 0.5 * lam * planes.space.dot(w, w) if present.all() else -math.inf
        return MasterSolution(w, planes.multipliers(alpha[:n]), bound)


class CvxoptThresholds(CvxoptMaster):
    """Base class of the masters with an l1 norm: |A alpha| <= l1, or <= l1 + u where u >= 0 costs ||u||^2 / (2 l2)."""

    def __init__(self, planes: PlaneStore, l1: float, l2: float) -> None:
        super().__init__(planes, l1)
        self._l1, self._l2 = l1, l2

    def _solved(
        self, accuracy: float, offsets: Vector, infima: NDArray[np.int64], most: Vector
    ) -> tuple[Vector, Vector]:
        """The multipliers of planes, then of the infima of some blocks, computed in units of `most`; and the weights.

        `offsets` are those of all these, in this order.
        """
        planes, count, n = self.planes, len(offsets), len(self.planes)
        slopes = np.zeros((planes.space.dim, count))
        slopes[:, :n] = self._rows().T
        # features that no multipliers can bring to l1 have weight 0
        screened = np.flatnonzero(np.abs(slopes).max(axis=1, initial=0.0) > self._l1 / self._blocks)
        slopes, scaled, sums = slopes[screened] * most, offsets * most, self._sums(infima)
        present = sums.any(axis=1)
        d = len(screened)
        steepest = np.maximum(self._l1, np.abs(slopes).max(axis=1, initial=0.0))
        level, room = slopes / steepest[:, None], self._l1 / steepest
        # u in units between l1 and the largest slopes, the objective in units of its largest coefficient
        p, curvature = (d, self._l1 * steepest / self._l2) if self._l2 > 0.0 else (0, np.zeros(0))
        unit = max(float(np.abs(scaled).max()), float(curvature.max(initial=0.0))) or 1.0
        more = -np.diag(np.sqrt(room))[:, :p]
        found = interior_point(
            accuracy,
            np.concatenate([np.zeros(count), curvature / unit]) if p else None,
            np.concatenate([-scaled / unit, np.zeros(p)]),
            np.concatenate([np.hstack([level, more]), np.hstack([-level, more]), -np.eye(count + p)]),
            np.concatenate([room, room, np.zeros(count + p)]),
            np.hstack([sums[present] * most, np.zeros((int(present.sum()), p))]),
            np.ones(int(present.sum())),
        )
        z, w = np.array(found["z"]).ravel(), planes.space.zeros()
        # from the multipliers of the thresholds: A alpha would bring its inexactness divided by l2
        w[screened] = (z[d : 2 * d] - z[:d]) / steepest * unit
        return np.array(found["x"]).ravel()[:count] * most, w


class CvxoptLP(CvxoptThresholds):
    """The master of L1 (see `SimplexLP`, whose parameters and results these are)."""

    def __init__(self, planes: PlaneStore, lam: float) -> None:
        super().__init__(planes, flatter(lam, planes.infima, 1e-7), 0.0)
        self._lam = lam
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
        if self._infima.makeshift.any():
            # what is not flat to the margin of `flatter` proves nothing
            accuracy = min(accuracy, 1e-8)
        offsets, blocks = np.concatenate([planes.offsets, self._infima.values]), np.arange(K)
        most = np.concatenate([usable_shares(self._rows(), self._l1), np.ones(K)])
        try:
            x, w = self._solved(accuracy, offsets, blocks, most)
        except BmrmError:  # planes that balance one another can have larger multipliers than each could alone
            x, w = self._solved(accuracy, offsets, blocks, np.ones(n + K))
        return self._infima.solution(planes, self._lam, w, x[:n], x[n:])


class CvxoptElastic(CvxoptThresholds):
    """The cross-check of `ElasticQP`, whose parameters and results these are."""

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model to `accuracy`, relative, 1e-12 at the least; raises BmrmError when cvxopt fails."""
        planes, l1, l2, n = self.planes, self._l1, self._l2, len(self.planes)
        infima = np.flatnonzero(np.isfinite(planes.infima))
        if n + len(infima) == 0:
            return MasterSolution(planes.space.zeros(), {}, -math.inf)
        b = np.concatenate([planes.offsets, np.array(planes.infima)[infima]])
        most = np.ones(len(b))
        most[:n] = usable_shares(self._rows(), l1, l2 * np.maximum(planes.offsets, 0.0))
        first = self._solution(*self._solved(accuracy, b, infima, most), b, infima)
        short = self._value(first.w) - first.lower_bound
        if not max(accuracy, ENDED * TIGHTEST) * abs(first.lower_bound) < short < math.inf:
            return first
        try:  # planes that balance one another can have larger multipliers than each could alone
            again = self._solution(*self._solved(accuracy, b, infima, np.ones(len(b))), b, infima)
        except BmrmError:
            return first
        return again if self._value(again.w) - again.lower_bound < short else first

    def _solution(self, x: Vector, w: Vector, b: Vector, infima: NDArray[np.int64]) -> MasterSolution:
        """Of multipliers, and the weights found with them."""
        planes, n, sums = self.planes, len(self.planes), self._sums(infima)
        alpha = np.maximum(x, 0.0)
        alpha /= (sums @ alpha) @ sums
        excess = np.maximum(np.abs(planes.combine(alpha[:n])) - self._l1, 0.0)
        covered = sums.any(axis=1).all()
        bound = float(np.dot(alpha, b)) - 0.5 * float(np.dot(excess, excess)) / self._l2 if covered else -math.inf
        return MasterSolution(w, planes.multipliers(alpha[:n]), bound)

    def _value(self, w: Vector) -> float:
        """Omega and the model at w."""
        tops = np.array(self.planes.infima)
        np.maximum.at(tops, self.planes.blocks, self.planes.products(w) + self.planes.offsets)
        return float(tops.sum()) + self._l1 * float(np.abs(w).sum()) + 0.5 * self._l2 * float(np.dot(w, w))


def usable_shares(rows: Array, flat: float, curved: Array | float = 0.0) -> Array:
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
        shares: Array = np.minimum(1.0, (flat + curved / steepest) / steepest)
    return shares


def interior_point(accuracy: float, P: Array | None, q: Vector, *constraints: Array) -> dict[str, Any]:
    """cvxopt's solver of 1/2 x'P x + q'x; its "x" and "z".

    `P` is a matrix, or the diagonal of one; None for a linear program. The constraints are G x <= h and A x = b, the
    latter left out where there are none. The LDL factorisation is slower than Cholesky's, but works where that fails.
    """
    program: Any = solvers.lp if P is None else solvers.qp
    objective = [q] if P is None else [np.diag(P) if P.ndim == 1 else P, q]
    data = [matrix(part) for part in constraints]

    def attempt(scale: float, kkt: str, options: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = program(*(matrix(scale * p) for p in objective), *data, kktsolver=kkt, options=options)
        return found

    return _tried(accuracy, attempt, ("chol", "ldl"), Reached())


@dataclass
class Reached:
    """What rounding let the last of many similar programs reach: the next one is asked for no less.

    Attributes
    ----------
    tolerance : relative; it falls tenfold with every program whose first attempt succeeds.
    turn : how often the same program was solved before; each time another scaling is the first.
    """

    tolerance: float = 0.0
    turn: int = 0


def cone_program(accuracy: float, P: Vector, q: Vector, G: Constraints, reached: Reached) -> tuple[Vector, Vector]:
    """The minimum of 1/2 x' diag(P) x + q'x where h - G x is in its cones (both in `G`), and the multipliers."""

    def times(x: Any, y: Any, trans: str = "N", alpha: float = 1.0, beta: float = 0.0) -> None:
        product = (G.times if trans == "N" else G.transposed_times)(np.array(x).ravel())
        y[:] = matrix(alpha * product + beta * np.array(y).ravel() if beta else alpha * product)

    def attempt(scale: float, augmented: bool, options: dict[str, Any]) -> dict[str, Any]:
        systems = Eliminated(G, scale * P, augmented)

        def kkt(W: Any) -> Callable[[Any, Any, Any], None]:
            solved = systems.factored(W)

            def solve(x: Any, _: Any, z: Any) -> None:
                found, scaled = solved(np.array(x).ravel(), np.array(z).ravel())
                x[:], z[:] = matrix(found), matrix(scaled)

            return solve

        # `conelp` solves for h beside residuals, which loses the small slacks to its rounding
        found: dict[str, Any] = solvers.coneqp(
            spdiag(matrix(scale * P)), matrix(scale * q), times, matrix(G.h), G.dims, kktsolver=kkt, options=options
        )
        return found

    found = _tried(accuracy, attempt, (False, True), reached)
    return np.array(found["x"]).ravel(), np.array(found["z"]).ravel()


def _short(found: Mapping[str, Any], scale: float) -> float:
    """How far from a solution a point is: its relative gap, or what it violates; inf for none."""
    if any(found[part] is None or not np.all(np.isfinite(found[part])) for part in ("x", "z")) or found["gap"] is None:
        return math.inf  # a program that is called infeasible has one of the two at most
    gap = found["relative gap"]
    parts = [found["gap"] / scale if gap is None else gap, found["primal infeasibility"], found["dual infeasibility"]]
    return max((math.inf if part is None or math.isnan(part) else part) for part in parts)


def _tried(
    accuracy: float, attempt: Callable[..., dict[str, Any]], ways: Sequence[Any], reached: Reached
) -> dict[str, Any]:
    """The first attempt that is exact enough, or else the best; raises BmrmError when there is none.

    With a tolerance below rounding an interior-point method diverges, so the tolerance is loosened until it is met. If
    all ways cycle, another scaling of the objective, and so another start, helps. If nothing does, the best point is
    returned: any multipliers prove a bound.
    """
    tolerance = min(max(SAFETY * accuracy, TIGHTEST, reached.tolerance), LOOSEST)
    at_once, first = True, reached.turn % len(SCALES)
    scales = SCALES[first:] + SCALES[:first]
    reason, least, nearest = "no point found", math.inf, None
    while tolerance <= LOOSEST:
        for trial, scale in enumerate(scales):
            if trial >= USUAL and least <= NEAR:
                break
            limits = {"abstol": 1e-3 * tolerance * scale, "reltol": tolerance, "feastol": ENDED * tolerance}
            for way in ways:
                try:
                    with np.errstate(all="ignore"):  # what overflows is not finite, and seen below
                        found = attempt(scale, way, {"show_progress": False, **limits})
                except (ArithmeticError, ValueError) as error:
                    reason, at_once = str(error), False
                    continue
                point = {"x": found["x"], "z": found["z"] and found["z"] / scale}
                if found["status"] == "optimal":
                    reached.tolerance = 0.1 * tolerance if at_once else tolerance
                    return point
                reason, short, at_once = found["status"], _short(found, scale), False
                if short < least:
                    least, nearest = short, point
                if nearest is not None and least <= ENDED * tolerance:
                    reached.tolerance = max(least, tolerance)
                    return nearest
        tolerance *= 10.0
    if nearest is not None:
        reached.tolerance = least
        return nearest
    raise BmrmError(f"cvxopt could not solve the master problem: {reason}")
