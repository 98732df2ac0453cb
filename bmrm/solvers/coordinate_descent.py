"""Coordinate descent for l1 and elastic net on second-order models, with working sets.

Yuan, Ho & Lin 2012 (newGLMNET, in LIBLINEAR); Massias, Gramfort & Salmon 2018 (Celer); Friedman, Hastie &
Tibshirani 2010 (glmnet). Ndiaye, Fercoq, Gramfort & Salmon 2017 (Gap Safe rules).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bmrm.problem import (
    Callback,
    ColumnModel,
    IncompatibleError,
    QuadraticModel,
    Regularizer,
    Risk,
    Scored,
    Scores,
    Solution,
    Vector,
    ability,
)
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.monitor import IterativeSolver, Monitor
from bmrm.solvers._core.points import Point
from bmrm.solvers._core.row_scores import lambdas
from bmrm.solvers._core.working_set import chosen
from bmrm.solvers._core.working_set_newton import UNTRUE, Run

GROWTH = 4
"""Size of a working set, in multiples of the columns in use."""


@register(
    "coordinate_descent",
    problem="smooth losses of one score by rows; l1, elastic_net",
    needs="Scored with curvature by rows; QuadraticModel: one process",
    certificate="the conjugate of the regularizer, mixed over iterations",
    cost="1 pass over the data, and sweeps over the columns of the working set",
    source="Yuan, Ho & Lin 2012; Massias, Gramfort & Salmon 2018; Friedman, Hastie & Tibshirani 2010",
    abilities=("QuadraticModel", "Scored"),
    refuses=("kinked loss", "smooth regularizer"),
)
@dataclass(frozen=True)
class CoordinateDescent(IterativeSolver):
    """Second-order models of the risk, minimised together with Omega by coordinate descent on the data.

    With g = R'(w), s = phi''(A w) and the columns W (those in use, and those that violate optimality most), sweeps
    over W minimise `<g, d> + 1/2 <A d, s A d> + Omega(w + d)`, each step exact in its coordinate; r = sqrt(s) A d is
    updated, so that a step costs the entries of its column. Coordinates at 0 that are far from moving are skipped. The
    better the last model predicted the decrease, the more accurately the next is solved. Then w moves along d: by a
    full step if this brings a tenth of the predicted decrease, else to the minimum along the line, through scores.
    After every step a free intercept is minimised over. For least squares the model is the problem itself.

    Where sweeps converge slowly, conjugate gradients are run on the coordinates in use; coordinates that would change
    sign are fixed at 0, and the others solved for again. With few, collinear columns `proximal_newton` is much faster.
    In long runs, weights that the gap proves to be 0 at the minimum are removed from all later working sets (Gap Safe
    screening; `details["screened"]` is how many).

    Memory: 89 dim + 80 scores + 24 nnz of W bytes, W the columns of the working set, copied twice, scores the rows.

    Parameters
    ----------
    first_columns : size of the first working set; later ones are four times the number of columns in use.
    sweeps : most sweeps over the columns of a model; conjugate gradient steps count as sweeps.

    Raises
    ------
    IncompatibleError
        A loss with kinks or without curvature by rows, a regularizer without an l1 part, or data on several ranks.
    """

    superlinear: ClassVar[bool] = True

    first_columns: int = parameter(500, least=1, doc="size of the first working set", example=1)
    sweeps: int = parameter(200, least=1, doc="over the columns of a model, at most", example=1)

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`."""
        l1, l2 = lambdas("coordinate_descent", regularizer)
        with self.monitor(risk, regularizer, start, callback) as run:
            return _ColumnRun(self, run, l1, l2).go()


class _ColumnRun(Run):
    """Models by columns."""

    rough = 0.3

    def __init__(self, options: CoordinateDescent, run: Monitor, l1: float, l2: float) -> None:
        offered = ability(run.risk, QuadraticModel)
        if ability(run.risk, Scored) is not None:  # or the message is the one below
            super().__init__("coordinate_descent", run, l1, l2)
        if offered is None:
            raise IncompatibleError(
                "coordinate_descent needs the ability QuadraticModel, which a risk on several ranks has not, "
                "nor one that is no LinearRisk; use proximal_newton or bundle"
            )
        self.options, self.columns = options, offered
        self.inside = np.empty(0, np.int64)
        """The last working set."""
        self.model: ColumnModel | None = None
        """Of it."""

    def rejected(self) -> None:
        """The next model is solved roughly again."""
        self.share = self.rough

    def propose(self, at: Point, aim: float, away: Vector, worst: float) -> tuple[Vector, Scores]:
        """As of `Run`."""
        if self.model is not None and away[self.inside].max(initial=0.0) > UNTRUE * self.left:
            self.left = max(self.left, self.model.distance())  # a sweep sees each coordinate before those after it
        share = self.judged(away, self.inside)
        size = max(self.options.first_columns, GROWTH * int(np.count_nonzero(at.w)))
        W = chosen(away, at.w, size, self.zeros.found)
        model = self.model = self.columns.model(W, self.rows.curvature(at.f, self.damping), self.rows.free)
        goal = self.least_goal(aim)
        after = at.w.copy()
        with self.run.master():
            after[W], self.left = model.minimise(at.a[W], at.w[W], aim, self.l2, goal, share, self.options.sweeps)
        self.inside = W
        return after, model.scores
