"""Smooth losses of rows with l1 or elastic net along lambdas: Newton's method on copies of the columns in use.

Friedman, Hastie & Tibshirani 2010 (glmnet): quadratic approximations by coordinate descent, warm starts. Tibshirani et
al. 2012 (strong rules): columns are taken in by their slopes, and what was left out is checked. Here the check is the
duality gap of all rows and columns, of some points at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.problem import Elastic, Regularizer, Risk, Vector, provides
from bmrm.problem.abilities import FullColumns
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import FULL_SPEED, Meter
from bmrm.solvers._core.gram_model import RIDGE, minimum
from bmrm.solvers._core.kept_walk import ROOM, SPARE, Guess, KeptWalk, Proved, served
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.row_proofs import RowProofs
from bmrm.solvers._core.rowwise import RowwiseRisk
from bmrm.solvers._core.working_set_newton import AIM, MOST_AIM

FEW = 32
"""Most columns that are first taken in."""
AT_ONCE = 5
"""Points whose proofs read the rows together: the more, the farther ahead columns must be taken in."""
STEPS, HALVINGS = 40, 30
"""Most Newton steps for a point, and halvings of one that does not lower J."""
STALE = 0.3
"""A matrix of second derivatives is kept from step to step, and from point to point, while steps leave no more than
this share of what slopes are off by."""
NEAR = 0.8
"""Slopes from this share of l1 on are among those that second derivatives are computed for: weights of smaller ones
will stay 0 for some steps."""
FINE = 0.1
"""Accuracy of the model's minimum, relative to what slopes may be off by in the end."""


def walk_of(risk: Risk, regularizer: Regularizer, solver: IterativeSolver) -> KeptWalk | None:
    """The walk, where it is such a problem, in one process, on rows that are mostly full.

    Copies of columns are full ones: where fewer entries than one of `FULL_SPEED` are stored, sparse products are
    faster.
    """
    found = served(risk, solver)
    if found is None or not (provides(regularizer, Elastic) and regularizer.l1 > 0.0):
        return None
    scored, size = found
    facts = scored.of_rows.facts
    smooth = facts.smooth and facts.curved and not facts.quadratic
    full = size.entries * FULL_SPEED >= float(size.rows) * risk.dim and 8 * FEW * size.rows <= ROOM
    if not (smooth and full and provides(scored.map, FullColumns)):
        return None
    return KeptWalk(solver, SmoothDescent, "columns kept for all lambdas")


class SmoothDescent:
    """The copies, the second derivatives, and the point where the walk is.

    Parameters
    ----------
    risk, meter : that is minimised, and what passes are charged to.
    start : (dim,), None for 0.
    regularizer : the first.

    Attributes
    ----------
    columns : that are in, in the order in which they came.
    grams : how often second derivatives were computed.
    at_once : points whose proofs read the rows together.
    """

    at_once = AT_ONCE

    def __init__(self, risk: Risk, meter: Meter, start: Vector | None, regularizer: Regularizer) -> None:
        self.rows = rows = RowwiseRisk.of("coordinate_descent", metered_risk(risk, meter))
        self.map: Any = rows.map
        whole = np.zeros(risk.dim) if start is None else np.array(start, np.float64)
        scores: Any = rows.map.matvec(whole)
        at: Any = rows.profiled(scores)
        self.size, self.dim, self.grams = len(scores), risk.dim, 0
        self._proofs = RowProofs(rows)
        self._last = rows.map.rmatvec(at.slope)
        """Slopes where the last proof was."""
        self.columns = np.empty(0, np.int64)
        self._table = np.empty((0, self.size))
        self.w, self._constant = np.empty(0), float(at.f[0] - scores[0]) if rows.free else 0.0
        self._H: NDArray[np.float64] | None = None
        self._inside = np.empty(0, np.int64)
        """Which of the columns the second derivatives are of."""
        self._border, self._mass = np.empty(0), 1.0
        self._before: tuple[float, Vector, float] | None = None
        """l1 at the last point, and how its weights and constant changed by it."""
        self._copy(np.flatnonzero(whole))
        self.move(whole)

    @property
    def details(self) -> dict[str, Any]:
        """Of solutions."""
        return {"grams": self.grams}

    def move(self, w: Vector) -> None:
        """To a point whose weights beside the columns are 0."""
        self.w, self._before = w[self.columns], None

    def look(self, omega: Any) -> None:
        """Take columns in that were steeper than this allows at the last point."""
        self._take(np.abs(self._last) - omega.l1)

    def grow(self, proved: Sequence[Proved], omegas: Sequence[Any]) -> bool:
        """Take columns in whose slopes are too steep at some of these points; whether there are any, and room."""
        return self._take(np.max([np.abs(one.slopes) - omega.l1 for one, omega in zip(proved, omegas)], axis=0))

    def _take(self, excess: Vector) -> bool:
        """Those of the largest excess above 0, as many as are in use, or a few: each costs a sum over rows a step."""
        excess[self.columns] = 0.0
        new = np.flatnonzero(excess > 0.0)
        most = min(max(FEW, int(np.count_nonzero(self.w))), ROOM // (8 * self.size) - self.columns.size)
        if not new.size or most <= 0:
            return False
        self._copy(np.sort(new[np.argsort(-excess[new], kind="stable")[:most]]))
        return True

    def _copy(self, new: NDArray[np.int64]) -> None:
        if new.size:
            self._table = np.concatenate((self._table, self.map.full_columns(new)))
            self.columns = np.concatenate((self.columns, new))
            self.w = np.concatenate((self.w, np.zeros(new.size)))
            if self._before is not None:
                last, steps, rise = self._before
                self._before = last, np.concatenate((steps, np.zeros(new.size))), rise

    def guess(self, omega: Any, solver: IterativeSolver) -> Guess:
        """Newton steps until the gap is small enough, as far as the columns tell."""
        l1, l2 = float(omega.l1), float(omega.l2)
        steps, left, before = 0, math.inf, (self.w, self._constant)
        point = self._predicted(l1, l2)
        for steps in range(STEPS):  # noqa: B007 (told at the end)
            value, slope, q = point[1], point[2], self._table @ point[2]
            total = float(slope.sum()) if self.rows.free else 0.0
            size = float(np.abs(self.w).sum())
            objective = value + l1 * size + 0.5 * l2 * dot(self.w, self.w)
            allowed = SPARE * solver.goal(objective) * abs(objective)
            share = min(MOST_AIM, AIM * allowed / (l1 * size)) if size > 0.0 and l2 == 0.0 else 0.0
            off, aim = self._off(q, l1 * (1.0 - share), l2, total), l1 * (1.0 - share)
            tilt = abs(total) * (abs(self._constant) + 1.0)
            offset = value - dot(slope, point[0])
            if objective - self._proofs.bound(offset, q, l1, l2) + tilt <= allowed or not math.isfinite(objective):
                break
            outside = np.abs(q) > aim
            outside[self._inside] = False
            stale = self._H is None or off > STALE * left or bool(outside.any())
            if stale:
                self._second(point[0], q, aim)
            after = self._step(point, q, total, aim, l2, FINE * max(share * l1, allowed / max(size, 1e-300)))
            if after is None and not stale:
                self._second(point[0], q, aim)
                after = self._step(point, q, total, aim, l2, 0.0)
            if after is None:
                break
            point, left = after, off
        self._remember(l1, before)
        w = np.zeros(self.dim)
        w[self.columns] = self.w
        return Guess(w, self._constant, max(1, steps))

    def _at(self, w: Vector, constant: float) -> tuple[Vector, float, Vector]:
        """Scores, value and slope."""
        used = np.flatnonzero(w)
        table = self._table if 2 * used.size > w.size else self._table[used]
        f = (w if table is self._table else w[used]) @ table + constant
        value, slope = self.rows.phi.value_and_slope(f)
        return f, float(value), slope

    def _predicted(self, l1: float, l2: float) -> tuple[Vector, float, Vector]:
        """The point; farther on along lambda as weights in use went, if J falls by that."""
        here = self._at(self.w, self._constant)
        if self._before is None:
            return here
        last, steps, rise = self._before
        ahead = self.w + (l1 - last) * steps
        ahead[self.w * ahead <= 0.0] = 0.0
        constant = self._constant + (l1 - last) * rise
        there = self._at(ahead, constant)
        if there[1] + self._omega(ahead, l1, l2) < here[1] + self._omega(self.w, l1, l2):
            self.w, self._constant = ahead, constant
            return there
        return here

    def _remember(self, l1: float, before: tuple[Vector, float]) -> None:
        last = math.inf if self._before is None else self._before[0]
        steps, rise = 0.0 * self.w, 0.0
        if last != l1 and math.isfinite(last):
            steps, rise = (self.w - before[0]) / (l1 - last), (self._constant - before[1]) / (l1 - last)
        self._before = l1, steps, rise

    def _second(self, f: Vector, q: Vector, l1: float) -> None:
        """The second derivatives in the columns near their kink or beyond; with a free intercept at its best step."""
        self.grams += 1
        self._inside = np.flatnonzero((self.w != 0.0) | (np.abs(q) > NEAR * l1))
        table, curvature = self._table[self._inside], self.rows.curvature(f, 0.0)
        self._mass = float(curvature.sum()) if self.rows.free else 1.0
        self._border = table @ curvature if self.rows.free else np.zeros(self._inside.size)
        table *= np.sqrt(curvature)
        H = table @ table.T
        H -= np.outer(self._border, self._border / self._mass)
        ridge = RIDGE * float(H.diagonal().mean()) if H.size else 0.0
        H.flat[:: len(H) + 1] += ridge if ridge > 0.0 else 1.0
        self._H = H

    def _step(
        self, point: tuple[Vector, float, Vector], q: Vector, total: float, l1: float, l2: float, goal: float
    ) -> tuple[Vector, float, Vector] | None:
        """Towards the minimum of the model, as far as J falls; None where it does not."""
        assert self._H is not None
        inside, after, t = self._inside, self.w.copy(), 1.0
        gradient = q[inside] - self._border * (total / self._mass)
        after[inside], _ = minimum(self._H, gradient, self.w[inside], l1, l2, goal)
        way = after - self.w
        lift = -(total + float(self._border @ way[inside])) / self._mass if self.rows.free else 0.0
        before = point[1] + self._omega(self.w, l1, l2)
        for _ in range(HALVINGS):
            w = after if t == 1.0 else self.w + t * way
            there = self._at(w, self._constant + t * lift)
            if there[1] + self._omega(w, l1, l2) < before:
                self.w, self._constant = w, self._constant + t * lift
                return there
            t *= 0.5
        return None

    def _omega(self, w: Vector, l1: float, l2: float) -> float:
        return l1 * float(np.abs(w).sum()) + 0.5 * l2 * dot(w, w)

    def _off(self, q: Vector, l1: float, l2: float, total: float) -> float:
        """How far slopes are from what is optimal, at most; the free intercept's over all rows."""
        z = q + l2 * self.w
        away = np.where(self.w == 0.0, np.maximum(np.abs(z) - l1, 0.0), np.abs(z + np.copysign(l1, self.w)))
        return max(float(away.max(initial=0.0)), abs(total))

    def proofs(self, guesses: Sequence[Guess], omegas: Sequence[Any], solver: IterativeSolver) -> list[Proved]:
        """J and a lower bound of its minimum at each, from the rows, less what rounding may have done."""
        several, count = self.map.several(len(guesses)), len(guesses)
        found = several.matvec(np.stack([one.w for one in guesses], axis=1).ravel())
        scores = found.reshape(-1, count)
        at = [self.rows.profiled(scores[:, k] + one.constant) for k, one in enumerate(guesses)]
        slopes = np.stack([one.slope for one in at], axis=1)
        gradients = several.rmatvec(np.ascontiguousarray(slopes).reshape(found.shape)).reshape(-1, count)
        columns = [np.ascontiguousarray(gradients[:, k]) for k in range(count)]
        self._last = columns[-1]
        return [self._proofs.of(*each) for each in zip(guesses, at, columns, omegas, scores.T)]
