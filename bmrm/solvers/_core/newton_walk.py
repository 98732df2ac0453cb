"""Smooth losses of rows with l2 along lambdas: Newton's method with second derivatives that are kept.

Allgower & Georg 1990: a predictor, then chord steps. Their matrix needs no new rows where lambda changes, since it is
that of the loss plus lambda times the identity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.problem import Elastic, Regularizer, Risk, Vector, provides
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import Meter
from bmrm.solvers._core.kept_walk import SPARE, AllColumns, Guess, KeptWalk, Proved, served
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.newton.system import add_to_diagonal, solve_positive
from bmrm.solvers._core.predicted import ORDER, predicted
from bmrm.solvers._core.row_proofs import RowProofs
from bmrm.solvers._core.rowwise import ProfiledLoss, RowwiseRisk

LONGEST, DEAREST = 200.0, 300.0
"""Most entries of a row for which second derivatives cost little beside reading the rows, and most operations of a
factorisation, in thirds, for each of all entries."""
STEPS, HALVINGS = 40, 30
"""Most Newton steps for a point, and halvings of one that does not lower J."""
STALE = 0.3
"""Second derivatives are kept where one more step, if it leaves the share of the gap that the last one left, would
leave no more than this share of what is wanted, and for the first step."""


def walk_of(risk: Risk, regularizer: Regularizer, solver: IterativeSolver) -> KeptWalk | None:
    """The walk, where it is such a problem, in one process, of few weights."""
    found = served(risk, solver)
    if found is None or solver.name != "auto":
        return None
    scored, size = found
    facts = scored.of_rows.facts
    few = size.entries <= LONGEST * size.rows and risk.dim**3 <= DEAREST * size.entries and risk.dim <= size.rows
    ridge = provides(regularizer, Elastic) and regularizer.l1 == 0.0 and regularizer.l2 > 0.0
    if not (facts.smooth and facts.curved and few and ridge):
        return None
    return KeptWalk(solver, NewtonDescent, "second derivatives kept for all lambdas", "newton")


@dataclass(frozen=True, eq=False)
class _Point:
    """Weights with what is known there.

    Attributes
    ----------
    w, scores, at, slopes : the weights, A w, the loss with its slope, and A' times this.
    gradient, objective, gap : of J; the gap is what the slopes prove, but for rounding.
    """

    w: Vector
    scores: Vector
    at: ProfiledLoss
    slopes: Vector
    gradient: Vector
    objective: float
    gap: float


class NewtonDescent(AllColumns):
    """The second derivatives, and the points through which the walk goes.

    Parameters
    ----------
    risk, meter : that is minimised, and what passes are charged to.
    start : (dim,), None for 0.
    regularizer : the first.

    Attributes
    ----------
    hessians : how often second derivatives were computed.
    at_once : points whose proofs read the rows together: each begins where those before lead to.
    """

    at_once = 1

    def __init__(self, risk: Risk, meter: Meter, start: Vector | None, regularizer: Regularizer) -> None:
        self.rows = rows = RowwiseRisk.of("newton", metered_risk(risk, meter))
        self.size, self.hessians = len(rows.ones), 0  # type: ignore[arg-type]
        self._w = np.zeros(risk.dim) if start is None else np.array(start, np.float64)
        self._proofs = RowProofs(rows)
        self._places: list[tuple[float, Vector]] = []
        self._H: NDArray[np.float64] | None = None
        self._point: _Point | None = None

    @property
    def details(self) -> dict[str, Any]:
        """Of solutions."""
        return {"hessians": self.hessians}

    def move(self, w: Vector) -> None:
        """To a point."""
        self._w, self._places = w, []

    def guess(self, omega: Any, solver: IterativeSolver) -> Guess:
        """From where the last points lead to, Newton steps until the gap is small enough."""
        l2 = float(omega.l2)
        place = math.log(l2)
        start = predicted(self._places, place, kinked=False) if self._places else self._w
        point, steps = self._descended(start, l2, solver)
        self._point = point
        # a step more costs no rows, and what is extrapolated from is then better than what is asked for
        beyond = point.w + self._way(point, l2) if self._H is not None and math.isfinite(point.gap) else point.w
        self._places = [*self._places[1 - ORDER :], (place, beyond if np.isfinite(beyond).all() else point.w)]
        return Guess(point.w, 0.0, max(1, steps))

    def proofs(self, guesses: Sequence[Guess], omegas: Sequence[Any], solver: IterativeSolver) -> list[Proved]:
        """J and a lower bound of its minimum, from what was read last, less what rounding may have done."""
        (guess,), (omega,), point = guesses, omegas, self._point
        assert point is not None
        return [self._proofs.of(guess, point.at, point.slopes, omega, point.scores)]

    def _descended(self, w: Vector, l2: float, solver: IterativeSolver) -> tuple[_Point, int]:
        """The last point, and steps."""
        point, last = self._at(w, self._scores(w), l2), math.inf
        for step in range(min(STEPS, solver.max_iterations)):
            allowed = SPARE * solver.goal(point.objective) * abs(point.objective)
            if point.gap <= allowed or not math.isfinite(point.gap):
                return point, step
            new = self._H is None or point.gap * min(1.0, point.gap / last) > STALE * allowed
            if new:
                self._second(point)
            after = self._stepped(point, l2)
            if after is None and not new:
                self._second(point)
                after = self._stepped(point, l2)
            if after is None:
                return point, step
            point, last = after, point.gap
        return point, STEPS

    def _scores(self, w: Vector) -> Vector:
        found: Any = self.rows.map.matvec(w)
        return found  # type: ignore[no-any-return]

    def _at(self, w: Vector, scores: Vector, l2: float) -> _Point:
        """Half a pass."""
        at = self.rows.profiled(scores)
        slopes = self.rows.map.rmatvec(at.slope)
        gradient = slopes + l2 * w
        objective = at.value + 0.5 * l2 * dot(w, w)
        return _Point(w, scores, at, slopes, gradient, objective, 0.5 * dot(gradient, gradient) / l2)

    def _second(self, point: _Point) -> None:
        """Of the loss; with a free intercept at its best step."""
        self.hessians += 1
        curvature = self.rows.curvature(point.at.f, 0.0)
        H = self.rows.map.gram(curvature)
        if self.rows.free:
            border, mass = self.rows.map.rmatvec(curvature), float(self.rows.phi.total(curvature)[0])
            H -= np.outer(border, border / mass)
        self._H = H

    def _way(self, point: _Point, l2: float) -> Vector:
        assert self._H is not None
        matrix = np.array(self._H)
        add_to_diagonal(matrix, l2)
        return -solve_positive(matrix, point.gradient)

    def _stepped(self, point: _Point, l2: float) -> _Point | None:
        """Along the step, as far as J falls; None where it does not, or rounding forbids any."""
        way = self._way(point, l2)
        if not np.isfinite(way).all():
            return None
        beyond, t = self._scores(point.w + way), 1.0
        for _ in range(HALVINGS):
            w = point.w + t * way
            scores = beyond if t == 1.0 else point.scores + t * (beyond - point.scores)
            if self.rows.profiled(scores).value + 0.5 * l2 * dot(w, w) < point.objective:
                return self._at(w, beyond if t == 1.0 else self._scores(w), l2)
            t *= 0.5
        return None
