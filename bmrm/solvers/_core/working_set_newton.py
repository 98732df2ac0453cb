"""The common part of proximal Newton and coordinate descent: models of the loss, line searches, certificates."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from bmrm.kernels.products.lines import absolute_line
from bmrm.kernels.products.vectors import dot
from bmrm.numerics.line_search import Along
from bmrm.problem import Scores, Vector
from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.gap_safe import SafeZeros
from bmrm.solvers._core.monitor import Monitor
from bmrm.solvers._core.outer import Outer
from bmrm.solvers._core.points import Point
from bmrm.solvers._core.rowwise import ProfiledLoss
from bmrm.solvers._core.working_set import violation

AIM, MOST_AIM = 0.5, 0.1
"""Share of the tolerance that may be spent on a smaller l1, and its largest relative change."""
FINISH = 0.3
"""Accuracy of the last model, as a share of the distance from optimality that the tolerance allows."""

CURVED = 0.5
"""Constant c in c e^2, the loss of the bound when slopes of relative excess e are scaled until they are feasible."""
PROVING = 0.25
"""Most passes that may be spent on feasible slopes, as a share of those of the run."""
PART = 0.1
"""Largest infeasibility of such slopes before they are scaled, as a share of the tolerance."""


@dataclass(frozen=True)
class Aimed:
    """l1 ||w||_1 + l2/2 ||w||^2, for the l1 that models are minimised for."""

    l1: float
    l2: float

    def value(self, w: Vector) -> float:
        """Of the regularizer; inf where it overflows."""
        with np.errstate(over="ignore"):
            return self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * dot(w, w)

    def along(self, w: Vector, step: Vector) -> Along:
        """The function t -> (value at w + t step, its derivative in t)."""

        def evaluate(ts: Vector) -> tuple[Vector, Vector]:
            values, slopes = np.empty(len(ts)), np.empty(len(ts))
            absolute_line(w, step, np.asarray(ts, np.float64), values, slopes)
            if self.l2 == 0.0:  # squares may overflow where they have no part
                return self.l1 * values, self.l1 * slopes
            points = [w + t * step for t in ts]
            squares = np.array([dot(point, point) for point in points])
            rises = np.array([dot(point, step) for point in points])
            return self.l1 * values + 0.5 * self.l2 * squares, self.l1 * slopes + self.l2 * rises

        return evaluate


def aimed(run: Monitor, w: Vector, l1: float, l2: float) -> float:
    """A smaller l1 near w: slopes at its minimum are feasible for `l1` itself in spite of what is left to do."""
    size = l1 * float(np.abs(w).sum())
    if l2 > 0.0 or not size > 0.0:
        return l1
    return l1 * (1.0 - min(MOST_AIM, AIM * run.goal * abs(run.objective) / size))


class Run(Outer):
    """Outer iterations for l1 and l2.

    Planes of extrapolated scores (Massias, Gramfort & Salmon 2018) were tried: between models that are solved roughly
    and ever anew they are no vector autoregression, and their bounds were seldom better than those of the iterates.

    Models are minimised for an l1 that is smaller by a share of the tolerance: slopes then come out feasible for l1
    itself, and their bound is that of the classical duality gap, with no mixing with the lower-bound plane of the loss.

    Parameters
    ----------
    name : of the solver.
    run : the bookkeeping.
    l1, l2 : of the regularizer.
    """

    def __init__(self, name: str, run: Monitor, l1: float, l2: float) -> None:
        super().__init__(name, run)
        self.l1, self.l2 = l1, l2
        self.zeros = SafeZeros(run, self.rows, self.l1)
        self._proving = 0.0
        """Passes spent on feasible slopes."""

    @abstractmethod
    def propose(self, at: Point, aim: float, away: Vector, worst: float) -> tuple[Vector, Scores]:
        """A better point by a model around `at`, for an l1 of `aim`, and the step of the scores towards it.

        `away` are the distances from optimality, `worst` the largest.
        """

    def feasible(self, at: Point, l1: float, goal: float) -> tuple[Vector, Scores] | None:
        """Steps v and A v to where the slopes are feasible for `l1` up to `goal`, nearly; None where there are none."""
        return None

    def step_from(self, at: Point, profiled: ProfiledLoss) -> tuple[Vector, ProfiledLoss] | None:
        """As of `Outer`."""
        self.zeros.update(self.certificate)
        aim = aimed(self.run, at.w, self.l1, self.l2)
        away, worst = violation(at.a, at.w, aim, self.l2)
        with np.errstate(over="ignore", invalid="ignore"):
            after, step = self.propose(at, aim, away, worst)
        return self.moved(at, profiled, Aimed(aim, self.l2), after, step)

    def _prove(self, at: Point) -> None:
        """Raise the bound by slopes near those of `at` that are feasible, where that is all that is missing.

        With max |A's| = (1 + e) l1, slopes s divided by 1 + e lose e J, for one column's sake. The feasible ones that
        are nearest in the metric of phi* are s + diag(phi''(A w)) A v, where v minimises
        <A's, v> + 1/2 <A v, phi'' A v> + l1 ||v||_1: to first order those of w + v. They lose about e^2 J, and what
        columns in use have below l1.
        """
        run = self.run
        if self.l2 > 0.0 or at.offset == -math.inf or run.relative_gap <= run.goal:
            return
        wanted = run.goal * run.objective
        excess = float(np.abs(at.a).max()) / self.l1 - 1.0
        with np.errstate(over="ignore", invalid="ignore"):  # slopes far from the minimum: then too much is lost
            below = float(np.maximum(self.l1 * np.abs(at.w) + at.w * at.a, 0.0).sum())
            lost = below + CURVED * (excess * excess) * run.objective
        if not lost <= wanted or self._proving > PROVING * run.meter.reading:
            return
        before = run.meter.reading
        part = PART * run.goal * self.l1
        found = self.feasible(at, self.l1 - part, part)
        if found is not None:
            w = at.w + found[0]
            there = self._profiled(w, at.f + found[1])
            if there.finite and there.offset != -math.inf:
                a = self.rows.map.rmatvec(there.slope)
                run.take_plane(self.certificate, w, there.value, a, there.offset)
        self._proving += run.meter.reading - before

    def least_goal(self, aim: float) -> float:
        """A distance from optimality below which nothing is gained."""
        allowed = max(self.l1 - aim, self.run.goal * self.l1)
        return max(FINISH * allowed, 0.1 * ROUNDING * self.l1)
