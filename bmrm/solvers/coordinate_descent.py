"""Coordinate descent for l1, elastic net and sums over blocks on second-order models, with working sets.

Yuan, Ho & Lin 2012 (newGLMNET, in LIBLINEAR); Massias, Gramfort & Salmon 2018 (Celer); Friedman, Hastie &
Tibshirani 2010 (glmnet). Ndiaye, Fercoq, Gramfort & Salmon 2017 (Gap Safe rules).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bmrm.problem import BlockSeparable, IncompatibleError, Scored, Scores, Vector, ability, provides
from bmrm.problem.abilities import ColumnModel, ProblemSize, QuadraticModel
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.block_descent import COLUMNS_NEEDED, BlockRun
from bmrm.solvers._core.covariance import Covariance
from bmrm.solvers._core.gram_model import GramModel
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Steps
from bmrm.solvers._core.outer import UNTRUE
from bmrm.solvers._core.points import Point
from bmrm.solvers._core.rowwise import lambdas
from bmrm.solvers._core.working_set import GROWTH, Columns, chosen, violation
from bmrm.solvers._core.working_set_newton import Run


@register(
    "coordinate_descent",
    problem="smooth losses of one score by rows; l1, elastic_net, sums over blocks",
    needs="Scored with curvature by rows; QuadraticModel: one process",
    certificate="the conjugate of the regularizer, mixed over iterations",
    cost="1 pass over the data, and sweeps over the columns of the working set, or over their Gram matrix",
    source="Yuan, Ho & Lin 2012; Massias, Gramfort & Salmon 2018; Friedman, Hastie & Tibshirani 2010",
    abilities=("QuadraticModel", "Scored"),
    refuses=("kinked loss", "smooth regularizer"),
    vectors=12,
)
@dataclass(frozen=True)
class CoordinateDescent(IterativeSolver):
    """Second-order models of the risk, minimised together with Omega by coordinate descent on the data.

    With g = R'(w), s = phi''(A w) and the columns W (those in use, and those that violate optimality most), sweeps
    over W minimise `<g, d> + 1/2 <A d, s A d> + Omega(w + d)`, each step exact in its coordinate; r = sqrt(s) A d is
    updated, so that a step costs the entries of its column. Coordinates at 0 that are far from moving are skipped. The
    better the last model predicted the decrease, the more accurately the next is solved. Then w moves along d: by a
    full step if this brings a tenth of the predicted decrease, else to the minimum along the line, through scores.
    After every step a free intercept is minimised over.

    For least squares the model is the problem itself, and is kept. In few features it is minimised on the Gram matrix
    H = A' s A of W (covariance updates, Friedman, Hastie & Tibshirani 2010, section 2.2): a step costs |W| operations
    instead of a column of entries. Slopes and gap are then computed from the data, and steps repeated if the gap asks
    for it. H is formed if |W|^2 is at most the entries in W, at once if it costs up to 40 sweeps, i.e. up to 239
    entries of W in a row, else once the run has taken as many passes as H costs. If steps by H leave more than a fifth
    of the largest violation, or do not decrease J, rounding has spoilt H, and r is updated from there on. Dense columns
    are copied around their shifts or, with a free intercept, their means, so that features may be far from 0.
    `details["grams"]` is how many were formed, `passes_gram` what they cost.

    Where sweeps converge slowly, conjugate gradients are run on the coordinates in use; coordinates that would change
    sign are fixed at 0, and the others solved for again. With few, collinear columns `proximal_newton` is much faster.
    In long runs, weights that the gap proves to be 0 at the minimum are removed from all later working sets (Gap Safe
    screening; `details["screened"]` is how many).

    Where Omega is a sum over blocks (`group_l2`, `sparse_group`, `box`) a step is a block (Tseng & Yun 2009): its
    columns are read for the slope g, the block is minimised with its own Gram matrix G, and its columns are read again
    to update r. With a norm and no |w| that is exact: in the eigenbasis of G only the length of x is unknown (Yang &
    Hastie 2024). Else `x <- prox(x - (g + G (x - w)) / L, 1 / L)` is repeated, L the largest eigenvalue of G (one step
    with the trace for L where a block has more than 128 columns). Working sets are of blocks, by the distance of the
    slope from the subdifferential. After five sweeps the model is tried at the affine combination of them with the
    least change, in place of conjugate gradients (Bertrand & Massias 2021, algorithm 1). H is formed for every model of
    a loss that is not quadratic, too, where W has up to 89 entries in a row. Screening takes the Frobenius norm of the
    columns of a block (Ndiaye et al. 2017, section 5). Where Omega leaves weights free, slopes near those of the point
    that are orthogonal to their columns prove the bound, for losses with a proximal map and curvature.

    Memory: 89 dim + 80 scores + 24 nnz of W bytes, W the columns of the working set, copied twice, scores the rows. A
    Gram matrix and its factor, 16 |W|^2 bytes, take the place of the copies, and less than they.

    Parameters
    ----------
    first_columns : columns of the first working set (500 was chosen without a sweep); later ones have four times as
        many as are in use. With blocks it has a fiftieth of all columns at most, or 50 where that is less, and later
        ones have twice as many as are in use.
    sweeps : most sweeps over the columns of a model; conjugate gradient steps count as sweeps.

    Raises
    ------
    IncompatibleError
        A loss with kinks, of several scores or without curvature by rows, a smooth regularizer, or data on several
        ranks.
    """

    superlinear: ClassVar[bool] = True

    first_columns: int = parameter(500, least=1, doc="size of the first working set", example=1)
    sweeps: int = parameter(200, least=1, doc="over the columns of a model, at most", example=1)

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`."""
        if provides(run.regularizer, BlockSeparable) and not run.regularizer.smooth:
            return BlockRun(run, run.regularizer.penalty, self.first_columns, self.sweeps).go()
        return _ColumnRun(self, run, *lambdas("coordinate_descent", run)).go()


class _ColumnRun(Run):
    """Models by columns."""

    rough = 0.3

    def __init__(self, options: CoordinateDescent, run: Monitor, l1: float, l2: float) -> None:
        offered = ability(run.risk, QuadraticModel)
        if ability(run.risk, Scored) is not None:  # or the message is the one below
            super().__init__("coordinate_descent", run, l1, l2)
        if offered is None:
            raise IncompatibleError(f"{COLUMNS_NEEDED}; use proximal_newton or bundle")
        self.options, self.columns = options, offered
        self.inside = np.empty(0, np.int64)
        """The last working set."""
        self.model: ColumnModel | None = None
        """Of it, with updates of the residual; as large as the data."""
        self.by_residual = False
        """Whether the last step was by such a model."""
        self.covariance = Covariance(run.meter, self.rows, ability(run.risk, ProblemSize))
        self.ready: tuple[Point, Columns, ColumnModel] | None = None
        """The model around a point that slopes were made feasible by."""
        self.quadratic = self.rows.phi.facts.quadratic

    def details(self) -> dict[str, Any]:
        """Also how often a Gram matrix was formed."""
        return {**super().details(), "grams": self.covariance.grams}

    def rejected(self) -> None:
        """The next model is solved roughly again. A Gram matrix of a quadratic promises too much by rounding alone."""
        self.share = self.rough
        if not self.by_residual:
            self.covariance.trusted = False

    def feasible(self, at: Point, l1: float, goal: float) -> tuple[Vector, Scores] | None:
        """As of `Run`."""
        if not self.by_residual or self.quadratic:
            return None
        away, _ = violation(at.a, at.w, self.l1, self.l2)
        self._drop_model(away)
        W = self._chosen(at, away)
        model = self.columns.model(W, self.rows.curvature(at.f, self.damping), self.rows.free)
        self.ready, v = (at, W, model), np.zeros_like(at.w)
        v[W], _ = model.minimise(at.a[W], v[W], l1, 0.0, goal, 0.0, self.options.sweeps // 2)
        return v, model.scores

    def _chosen(self, at: Point, away: Vector) -> Columns:
        size = max(self.options.first_columns, GROWTH * int(np.count_nonzero(at.w)))
        return chosen(away, at.w, size, self.zeros.found)

    def propose(self, at: Point, aim: float, away: Vector, worst: float) -> tuple[Vector, Scores]:
        """As of `Run`."""
        if not self.by_residual:
            self.covariance.look_back(float(away[self.inside].max(initial=0.0)))
        curvature, kept = self.covariance.curvature_at(at.f, self.damping)
        W = self._chosen(at, away)
        gram = self.covariance.model(W, curvature, kept)
        if gram is not None:
            self.covariance.worst = float(away[gram.columns].max(initial=0.0))
            return self._by_gram(gram, at, aim)
        return self._by_residual(W, kept, at, aim, away)

    def _by_gram(self, model: GramModel, at: Point, aim: float) -> tuple[Vector, Scores]:
        """The model is the problem on these columns: it is solved as accurately as the tolerance asks."""
        self.model, self.by_residual = None, False
        self.inside, after = model.columns, at.w.copy()
        with self.run.master():
            after[self.inside], constant, self.left = model.minimum(
                at.a, at.w, aim, self.l2, self.least_goal(aim), self.run.budget.check
            )
        step = self.rows.map.matvec(after - at.w)
        return after, step + self.rows.ones * constant if self.rows.free else step

    def _by_residual(self, W: Columns, kept: bool, at: Point, aim: float, away: Vector) -> tuple[Vector, Scores]:
        """The model may be solved roughly: the next one, around a better point, will do the rest."""
        self._look_back(away)
        share, model = self.judged(away, self.inside), self.model
        if model is None or not (kept and np.array_equal(W, self.inside)):
            curvature = self.covariance.curvature
            assert curvature is not None
            ready, self.ready = self.ready, None
            if ready is not None and ready[0] is at and np.array_equal(W, ready[1]):
                model = self.model = ready[2]
            else:
                self.model = model = ready = None
                model = self.model = self.columns.model(W, curvature, self.rows.free)
        goal, after = self.least_goal(aim), at.w.copy()
        with self.run.master():
            after[W], self.left = model.minimise(at.a[W], at.w[W], aim, self.l2, goal, share, self.options.sweeps)
        self.inside, self.by_residual = W, True
        return after, model.scores

    def _look_back(self, away: Vector) -> None:
        """How far the last point is from optimal for its model: a sweep sees each coordinate before those after it."""
        if self.model is not None and away[self.inside].max(initial=0.0) > UNTRUE * self.left:
            self.left = max(self.left, self.model.distance())

    def _drop_model(self, away: Vector) -> None:
        """Before another is made, when the last one can only be looked back at."""
        self._look_back(away)
        self.model = None
