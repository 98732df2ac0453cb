"""Newton's method on J, exact or truncated: Dembo & Steihaug 1983, Keerthi & DeCoste 2005."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bmrm.kernels.products.vectors import norm
from bmrm.numerics.line_search import step_length, total
from bmrm.problem import Elastic, IncompatibleError, Scored, Vector, ability, provides
from bmrm.problem.abilities import ProblemSize, RowParts
from bmrm.problem.loss import HasCurvature
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.certificate import Certificate
from bmrm.solvers._core.dense_matrix import WIDEST, refused
from bmrm.solvers._core.instead import instead, name_of
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Step, Steps
from bmrm.solvers._core.newton.ahead import MOST, ahead
from bmrm.solvers._core.newton.models import CgModel, DenseModel, NewtonStep, model_for
from bmrm.solvers._core.newton.preconditioners import Costs, rows_for_blocks
from bmrm.solvers._core.newton.row_space import RowGram, rank_at_most
from bmrm.solvers._core.newton.smooth_point import Objective, SmoothPoint
from bmrm.solvers._core.newton.system import factoring
from bmrm.solvers._core.row_start import start_from_sample
from bmrm.solvers._core.rowwise import OF_SCORES

HESSIANS = ("auto", "dense", "rows", "cg")


@register(
    "newton",
    problem="smooth losses with a second derivative, piecewise quadratic ones too; l2 and other smooth regularizers",
    needs="Scored with curvature; a regularizer with curvature",
    certificate="the conjugate of the regularizer at the slopes (eq. 15), mixed over iterations",
    cost="1 pass, and a Cholesky factor of a Gram matrix, of features or of rows, or 1 pass for each CG iteration",
    source="Dembo & Steihaug 1983; Keerthi & DeCoste 2005",
    abilities=("Scored",),
    refuses=("kinked loss", "kinked regularizer"),
    vectors=14,
)
@dataclass(frozen=True)
class Newton(IterativeSolver):
    """w - t H^-1 g, with g and H the gradient and the (generalised) Hessian of J, t by a search on the scores.

    H = A' phi''(A w) A + Omega''. `dense` forms it and factors it by Cholesky; if few rows have changed their curvature
    since the last iteration (`squared_hinge`), H is updated by these. `rows` takes the same step, with `l2`, in the
    inner products A A' of the rows (Woodbury), which are formed once: for more features than rows, in one process.
    `cg` solves H d = -g by conjugate gradients, preconditioned, until the residual is `forcing` times min(1, (|g| /
    |g_0|)^1/2) of |g|, or an iteration gains less than one and a half times that share of the mean gain of all (Nash &
    Sofer 1990). The step t = 1 is taken if the derivative of J is at most half there, else a step is searched.

    The preconditioner has the blocks of the Hessian that belong to one score, factored, if they are available and cheap
    (at most 128 megabytes). For dense rows they are computed from a sample, so that in hundreds of features `auto`
    takes `cg` also with one score. For shift-invariant losses such as `softmax`, the mean over scores is preconditioned
    by the regularizer alone. Otherwise the preconditioner is the diagonal (Jacobi), or none with several scores. With
    several scores it is kept over steps until the iterations with it have cost what it does.

    Each point gives the plane of its slopes. A free intercept is one more variable, minimised over at every point. With
    several scores per row `dense` is not available, and with a free intercept, too, only `cg` is.

    On little data (at most 150,000 entries, on one rank) bookkeeping takes longer than steps: where `auto` chooses
    `dense`, the loss is no quadratic, and nobody asks for each iteration (`callback`), only the point is recorded where
    steps have nearly met the tolerance.

    Memory: 18 dim^2 + 72 scores bytes (`dense`), 96 dim + 24 scores^2 bytes (`rows`), 96 dim + 72 scores bytes (`cg`),
    scores being rows times the scores of each; with blocks 96 dim + 72 scores + 16 dim^2 / K bytes, K being the scores
    of a row; by `cg` 0.3 times the rows more, where few of them have a second derivative (`squared_hinge`).

    Parameters
    ----------
    hessian : `dense`, `rows`, `cg`, or `auto`: the one with the fewest operations for the size of the data.
    forcing : relative accuracy of `cg`.
    sample : share of the rows in a subproblem that provides the start, 0 for none; not used with a `start`. Null: 0.05,
        but none for up to 150,000 entries, nor for a quadratic loss.
    seed : of the sample, and of the rows that make a preconditioner.

    Raises
    ------
    IncompatibleError
        The loss has no second derivative (use `semismooth_newton`, `line_search_bundle` or `lbfgs`), or the regularizer
        is not smooth (use `proximal_newton` or `bundle`).
    """

    superlinear: ClassVar[bool] = True
    hessian: str = parameter("auto", choices=HESSIANS, doc="how Newton's system is solved", example="cg")
    forcing: float = parameter(
        0.1, above=0.0, below=1.0, doc="residual that cg leaves", example=0.5, beside={"hessian": "cg"}
    )
    sample: float | None = parameter(
        None, least=0.0, below=1.0, doc="share of rows for the start; null chooses", example=0.3
    )
    seed: int | None = parameter(
        None, doc="of the sample; null = the config's", least=0, example=1, beside={"sample": 0.3}
    )

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`."""
        return Run(self, run).go()


CG_ITERATIONS = 40.0
"""Assumed number of Hessian products of a step by CG, when its cost is compared with that of a Cholesky step."""
STEPS = 4.0
"""Steps over which the cost of the inner products of rows, formed once, is distributed."""
CHEAP = 4.0
"""Most passes that the blocks of a preconditioner may cost at every step."""
HALF = 0.5
"""Share of the derivative of J that may remain at step 1 for it to be taken."""
SKEWED = 1e-12
"""Largest sum of slopes for which their plane gives a bound in a problem with a free intercept."""


class Run:
    """The state of a run."""

    def __init__(self, options: Newton, monitor: Monitor) -> None:
        self.options, self.monitor = options, monitor
        risk, regularizer = monitor.risk, monitor.regularizer
        scored = ability(risk, Scored)
        if scored is None or not (scored.phi.facts.smooth and scored.phi.facts.curved):
            needed = OF_SCORES if scored is None else "a smooth loss that has a second derivative"
            facts = None if scored is None else scored.of_rows.facts
            kinked = facts is not None and facts.prox and facts.scores_per_row == 1 and provides(regularizer, Elastic)
            also = "semismooth_newton or " if kinked else ""
            raise IncompatibleError(f"newton needs {needed}; use {also}{instead(monitor)}")
        if not (regularizer.smooth and provides(regularizer, HasCurvature)):
            sparse = provides(regularizer, Elastic) and regularizer.l1 > 0.0 and scored.of_rows.facts.separable
            name = "proximal_newton" if sparse else instead(monitor)
            raise IncompatibleError(
                f"newton needs a regularizer with a second derivative, which {name_of(regularizer)} has not; use"
                f" l2, or solver {name}"
            )
        free = scored.intercept is not None and scored.of_rows.facts.separable
        self.objective = Objective(scored.map, scored.of_rows if free else scored.phi, regularizer, free)
        seed, check = options.seed or 0, monitor.budget.check
        wanted = options.hessian
        blocks = rows_for_blocks(risk, self.objective, seed, check) if wanted in ("auto", "cg") else None
        rows = self._rows() if wanted in ("auto", "rows") and (free or scored.intercept is None) else None
        self.model = model_for(
            self.objective, self._hessian(blocks, rows), options.forcing, blocks, rows, self._patience(blocks), check
        )
        self.certificate = Certificate(regularizer, risk.infimum)

    def _patience(self, blocks: Scored | None) -> float:
        """Iterations of cg that cost as much as the blocks of several scores; 0 where these are cheap."""
        size, several = ability(self.monitor.risk, ProblemSize), self.objective.phi.facts.scores_per_row > 1
        if blocks is None or size is None or not several:
            return 0.0
        found = 0.25 * (size.entries / max(1, size.rows) + 1.0)
        return found if found > CHEAP else 0.0

    def _rows(self) -> RowGram | None:
        """The rows, where Newton's system can be solved in their inner products."""
        phi, regularizer = self.objective.phi, self.objective.regularizer
        parts, known = ability(self.monitor.risk, RowParts), phi.facts.separable or phi.facts.scores_per_row > 1
        if parts is None or not (known and provides(regularizer, Elastic) and regularizer.l2 > 0.0):
            return None
        return RowGram(parts) if rank_at_most(phi.facts, parts.rows) <= WIDEST else None

    def _hessian(self, blocks: Scored | None, rows: RowGram | None) -> str:
        """`dense`, `rows` or `cg`; `blocks` for `cg`."""
        phi, risk, wanted = self.objective.phi, self.monitor.risk, self.options.hessian
        separable = phi.facts.separable and not refused(risk.dim)
        if wanted == "dense" and not separable:
            why = refused(risk.dim) or f"at most {WIDEST} x {WIDEST} are allowed"
            raise IncompatibleError(
                f"newton: hessian dense needs one score per row and a matrix of {risk.dim} x {risk.dim} numbers, {why};"
                " use cg or auto"
            )
        if wanted == "rows" and rows is None:
            raise IncompatibleError(
                "newton: hessian rows needs a loss that is a sum over rows, all of them in one process, at most"
                f" {WIDEST} scores of rows, no free intercept with several of them, and l2; use dense, cg or auto"
            )
        if wanted != "auto":
            return wanted
        size, costs = ability(risk, ProblemSize), Costs.of(risk, phi.facts.scores_per_row)
        if size is None or costs is None:
            return "dense" if separable and blocks is None else "cg"
        a_pass = 2.0 * phi.facts.scores_per_row * size.entries / size.ranks
        of = {"cg": CG_ITERATIONS * a_pass}
        if separable and blocks is None:
            of["dense"] = costs.passes * a_pass + factoring(risk.dim)
        if rows is not None:
            rank = rank_at_most(phi.facts, rows.parts.rows)
            of["rows"] = costs.of_rows * a_pass / STEPS + factoring(rank)
        return min(of, key=lambda name: of[name])

    def go(self) -> Steps:
        """The whole run."""
        monitor, goal = self.monitor, self.objective
        monitor.finish = self._details
        start, b = self._ahead() if monitor.chooses_start else (monitor.start, 0.0)
        point = goal.at(start, goal.map.matvec(start), b)
        self._note(point)
        afresh = yield Step.ITERATION
        found = start_from_sample(self.options, monitor, steady=True, exact=True) if monitor.chooses_start else None
        if found is not None:
            sampled = goal.at(found.w, goal.map.matvec(found.w), point.b)
            point = sampled if sampled.objective < point.objective else point
            self._note(point)
            afresh = yield Step.ITERATION
        steepest = norm(point.gradient)
        while not monitor.flat(norm(point.gradient), norm(point.a), steepest):
            if afresh:
                point = goal.at(monitor.w, goal.map.matvec(monitor.w), point.b)
            moved = self._moved(point)
            if moved is not None:
                point = moved
                self._note(point)
            afresh = yield Step.STALLED if moved is None else Step.ITERATION
        return ""

    def _ahead(self) -> tuple[Vector, float]:
        """Weights and constant where steps of which nothing is kept lead, on little data; else the start."""
        goal, monitor, omega = self.objective, self.monitor, self.objective.regularizer
        chosen = self.options.hessian == "auto" and isinstance(self.model, DenseModel) and not goal.phi.facts.quadratic
        if not (
            monitor.unwatched and chosen and not self.options.sample and provides(omega, Elastic) and omega.l2 > 0.0
        ):
            return monitor.start, 0.0
        scored = ability(monitor.given, Scored)
        assert scored is not None
        bare = Objective(scored.map, scored.of_rows if goal.free else scored.phi, omega, goal.free)
        most = min(MOST, self.options.max_iterations)
        end = ahead(bare, omega.l2, monitor.start, monitor.options.goal, most, monitor.budget.check)
        monitor.meter.charge(end.passes)
        monitor.ahead = end.steps
        return end.w, end.b

    def _details(self) -> dict[str, Any]:
        return {"cg_iterations": np.array(self.model.iterations)} if isinstance(self.model, CgModel) else {}

    def _note(self, point: SmoothPoint) -> None:
        """Bound and objective of a point."""
        self.monitor.improve(point.w, point.objective, fresh=point.fresh)
        if abs(point.rest) <= SKEWED:
            self.monitor.take_plane(self.certificate, point.w, point.value, point.a, point.offset)

    def _moved(self, point: SmoothPoint) -> SmoothPoint | None:
        """The next point; None where no step makes J smaller."""
        step = self.model.step(point) if point.finite else None
        if step is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            slope = float(point.gradient @ step.w) + point.rest * step.b
        if not -math.inf < slope < 0.0:
            return None
        there = self._at(point, step, 1.0)
        if there.finite:
            left = float(there.gradient @ step.w) + there.rest * step.b
            if abs(left) <= HALF * -slope:
                return there
        goal = self.objective
        function = total(goal.regularizer.along(point.w, step.w), goal.phi.along(point.full, step.full))
        t = step_length(function, slope)
        return self._at(point, step, t) if t > 0.0 else None

    def _at(self, point: SmoothPoint, step: NewtonStep, t: float) -> SmoothPoint:
        w, anew = point.w + t * step.w, self.monitor.careful
        f = self.objective.map.matvec(w) if anew else point.f + t * step.f
        # A whole step from 0, all that a quadratic takes, has the scores of its end.
        anew = anew or (step.computed and t == 1.0 and not point.w.any())
        return self.objective.at(w, f, point.b + t * step.b, fresh=anew)
