"""The master of the elastic net: a piecewise quadratic program over simplices, by warm-started Newton steps.

    min over w:      l1 ||w||_1 + l2/2 ||w||^2 + sum_k max(infimum_k, max over planes j of block k of <a_j, w> + b_j)
    max over alpha:  b'alpha - ||soft(A alpha, l1)||^2 / (2 l2),  alpha in a product of simplices

with w = -soft(A alpha, l1) / l2 and soft(x, l1) = sign(x) max(|x| - l1, 0). The dual has a continuous gradient, the
plane values at w, and an element of its generalised Hessian is -A_S'A_S / l2 with S the features where |A alpha| > l1,
those of non-zero weight. So each round solves the quadratic program over simplices that these two define (the same
kernel as for L2), and searches the line to its solution for the exact maximum of the dual: a semismooth Newton method
(Qi & Sun, 1993), finite where the Hessian is regular at the solution. Where features differ by many decades, the small
curvatures are lost in the rounding of the Gram matrix, and rounds go to and fro: so each is followed by a search along
the line from the multipliers of two rounds ago (parallel tangents: Shah, Buehler & Kempthorne, 1964), on one piece a
conjugate gradient method that the rounded Hessian preconditions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.masters.elastic import change_gram, longest_rise, slope_along, weights_of
from bmrm.kernels.masters.simplex_qp import values_of_planes
from bmrm.kernels.products.planes import combine, products
from bmrm.masters._core.planes import PlaneStore
from bmrm.masters._core.screening import ScreenedRows
from bmrm.masters._core.simplex_program import SimplexProgram, tops
from bmrm.problem import MasterSolution, Vector

EPS = float(np.finfo(np.float64).eps)
ROUNDS = 200
"""Most Newton steps."""
PATIENCE = 2
"""Rounds without progress after which rounding is taken to be the limit."""
CHECK_EVERY, SHARE = 20, 0.01
"""The solution ends if this many rounds have not closed this share of the gap."""
LOOK = 5
"""Rounds between two tests of the gap against the rounding of the planes' values; within it the solution ends."""
REFINEMENTS = 6
"""Most corrections of w once the rounding of the multipliers is the limit."""


@dataclass
class _Point:
    """Quantities computed from multipliers: A alpha and w on the screened features, plane values, both objectives."""

    pull: Vector
    w: Vector
    values: Vector
    upper: float
    lower: float


class ElasticQP:
    """min over w of l1 ||w||_1 + l2/2 ||w||^2 + the model of the planes (the protocol `Master`).

    A solution starts from the multipliers, the Gram matrix and, while the non-zero weights stay the same, the factor
    of the last one. The lower bound is the dual at multipliers that are projected onto the simplices to the last digit.
    Memory is (planes) x (features that ever passed the screening) x 8 bytes, and the square of the number of planes.

    Parameters
    ----------
    planes : as of `HasMaster`.
    l1, l2 : > 0.
    """

    def __init__(self, planes: PlaneStore, l1: float, l2: float) -> None:
        self._l1, self._l2 = l1, l2
        self.planes = planes
        self._program = SimplexProgram(planes.infima)
        self._rows = ScreenedRows(planes, len(planes.infima), l1, self._program.first)
        self._used: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._drift = 0

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """As of `Master`: one product with all planes, over the features of non-zero weight."""
        id = self.planes.add(a, b, block)
        self._rows.add(a, block)
        matrix, j = self._rows.matrix, self._program.n
        self._used = np.concatenate([self._used, np.zeros(matrix.shape[1] - len(self._used), dtype=np.bool_)])
        row = np.empty(j + 1)
        products(matrix[: j + 1], matrix[j] * self._used, row)
        self._program.add(row[self._program.first :], b, block)
        return id

    def remove(self, planes: Sequence[int]) -> None:
        """Remove planes; their multipliers go to the rest of their block."""
        order = self.planes.drop(planes)
        self._rows.keep(order)
        self._program.remove(order)

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model; `accuracy` is the duality gap allowed, relative to the model's objective.

        A block without infimum and planes leaves the model unbounded below; then the bound is -inf and w minimises the
        rest.
        """
        accuracy = max(accuracy, 4.0 * EPS)
        covered = self._program.conclude()[0]
        point = best = self._evaluate()
        since, before = 0, math.inf
        older: Vector | None = None
        for k in range(ROUNDS):
            gap = best.upper - point.lower
            if gap <= accuracy * abs(point.lower) or since > PATIENCE:
                break
            if k % CHECK_EVERY == 0:
                if gap > (1.0 - SHARE) * before:
                    break
                before = gap
            if k % LOOK == LOOK - 1 and gap <= self._rounding(point):
                break
            newer = self._program.qp.alpha[: self._program.n].copy()
            self._newton(point, accuracy)
            last, point = point, self._evaluate()
            if older is not None:
                point = self._beyond(older, point)
            older = newer
            risen = point.lower - last.lower > 8.0 * EPS * abs(point.lower)
            since = 0 if risen or point.upper < best.upper else since + 1
            best = min(best, point, key=lambda one: one.upper)
        multipliers = self.planes.multipliers(self._program.planes)
        lower = point.lower if covered else -math.inf
        if covered and best.upper - lower > accuracy * abs(lower):
            best = self._refine(best, point, accuracy)
        return MasterSolution(self._rows.spread(best.w), multipliers, lower)

    def _refine(self, best: _Point, point: _Point, accuracy: float) -> _Point:
        """Correct w from `point` alone, as long as the gap halves: multipliers determine w only to eps ||A|| / l2.

        The corrections are below the last digit of the multipliers, but not of w.
        """
        lower, gap = point.lower, math.inf
        for _ in range(REFINEMENTS):
            step, t = self._newton(point, accuracy)
            w = point.w - t / self._l2 * np.where(point.w != 0.0, step, 0.0)
            w[w * point.w < 0.0] = 0.0
            absolute, square = float(np.abs(w).sum()), float(w @ w)
            point = self._at(point.pull, w, absolute, square, lower)
            if point.upper < best.upper:
                best = point
            before, gap = gap, best.upper - lower
            if gap <= accuracy * abs(lower) or gap > 0.5 * before:
                break
        return best

    def _evaluate(self) -> _Point:
        """The point that the multipliers determine."""
        program, rows = self._program, self._rows.matrix[: self._program.n]
        _, linear, _ = program.conclude()
        pull = np.zeros(rows.shape[1])
        combine(program.qp.alpha[: program.n], rows, pull)
        w = np.empty_like(pull)
        absolute, square = weights_of(pull, self._l1, self._l2, w)
        return self._at(pull, w, absolute, square, linear - 0.5 * self._l2 * square)

    def _rounding(self, point: _Point) -> float:
        """What the rounding of A alpha, times 1 / l2 in the weights, may do to the value of a plane."""
        used, n = np.flatnonzero(point.w), self._program.n
        sizes = np.abs(self._rows.matrix[:n, used])
        return EPS / self._l2 * float(np.max(sizes @ (self._program.qp.alpha[:n] @ sizes), initial=0.0))

    def _at(self, pull: Vector, w: Vector, absolute: float, square: float, lower: float) -> _Point:
        """The point with these weights, whose norms are given: the planes' values and the objective."""
        program = self._program
        values = np.empty(program.n)
        products(self._rows.matrix[: program.n], w, values)
        values += program.qp.b[: program.n]
        top = tops(values, program)
        upper = self._l1 * absolute + 0.5 * self._l2 * square + float(top[np.isfinite(top)].sum())
        return _Point(pull, w, values, upper, lower)

    def _newton(self, point: _Point, accuracy: float) -> tuple[Vector, float]:
        """Solve the quadratic program at `point`; the multipliers move towards its solution as long as the dual rises.

        Returns the step of A alpha to the solution and the fraction of it that was taken.
        """
        program, n, l2 = self._program, self._program.n, self._l2
        self._follow(np.abs(point.pull) > self._l1)
        before = program.qp.alpha[:n].copy()
        v = l2 * point.values
        # c = v + G alpha, and a constant with which the program's objective is the dual, both times l2
        c = np.empty(n)
        values_of_planes(program.qp.G, np.zeros(n), n, before, c)
        c = v - c
        blocks = float(before.sum())
        with np.errstate(invalid="ignore", over="ignore"):
            c += (2.0 * l2 * point.lower - float(before @ (c + v))) / blocks
        if not np.all(np.isfinite(c)):  # slopes whose products overflow
            return np.zeros_like(point.pull), 0.0
        moved = np.zeros(n)
        program.run(c, v, True, moved, 0.1 * accuracy, 0.0)
        step = np.zeros_like(point.pull)
        combine(moved, self._rows.matrix[:n], step)
        t = longest_rise(point.pull, step, self._l1, l2 * float(moved @ program.qp.b[:n]))
        if t < 1.0:
            program.qp.alpha[:n] = (1.0 - t) * before + t * program.qp.alpha[:n]
        return step, min(t, 1.0)

    def _beyond(self, older: Vector, point: _Point) -> _Point:
        """The best point on the line from multipliers `older` through `point` and on; the multipliers follow."""
        program, n, rows = self._program, self._program.n, self._rows.matrix[: self._program.n]
        here = program.qp.alpha[:n].copy()
        way = here - older
        falling = way < 0.0
        farthest = float(np.min(here[falling] / -way[falling], initial=math.inf))
        if not 0.0 < farthest < math.inf:
            return point
        way *= farthest
        step = np.zeros_like(point.pull)
        combine(way, rows, step)
        linear = self._l2 * float(way @ program.qp.b[:n])
        if not linear > slope_along(point.pull, step, self._l1, 0.0)[0]:
            return point
        t = longest_rise(point.pull, step, self._l1, linear)
        program.qp.alpha[:n] = np.maximum(here + t * way, 0.0)
        beyond = self._evaluate()
        if beyond.lower > point.lower:
            return beyond
        program.qp.alpha[:n] = here
        return point

    def _follow(self, used: NDArray[np.bool_]) -> None:
        """Bring the Gram matrix to the features `used`."""
        changed = np.flatnonzero(used != self._used)
        if len(changed) == 0:
            return
        program, count = self._program, int(used.sum())
        self._drift += len(changed)
        if self._drift > 100 + 4 * count or len(changed) > count:
            changed = np.flatnonzero(used)
            program.qp.G[: program.n, : program.n] = 0.0
            self._drift = 0
        sign = np.where(used[changed], 1.0, -1.0)
        change_gram(self._rows.matrix, program.first, program.n, changed, sign, program.qp.G)
        self._used = used
        program.changed()
