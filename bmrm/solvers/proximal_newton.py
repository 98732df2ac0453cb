"""Proximal Newton for l1 and elastic net: quadratic models on working sets, solved on their Gram matrix.

Lee, Sun & Saunders 2014; Yuan, Ho & Lin 2012 (newGLMNET); working sets as in Johnson & Guestrin 2015 (Blitz).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bmrm.problem import Scores, Vector
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.dense_matrix import WIDEST
from bmrm.solvers._core.gram_model import GramModel
from bmrm.solvers._core.monitor import IterativeSolver, Monitor, Steps
from bmrm.solvers._core.points import Point
from bmrm.solvers._core.row_start import start_from_sample
from bmrm.solvers._core.rowwise import lambdas
from bmrm.solvers._core.working_set import chosen
from bmrm.solvers._core.working_set_newton import Run


@register(
    "proximal_newton",
    problem="smooth losses of one score by rows; l1, elastic_net",
    needs="Scored with curvature by rows and Gram matrices of chosen columns",
    certificate="the conjugate of the regularizer, mixed over iterations",
    cost="1 pass, and half a pass with the Gram matrix where that is renewed",
    source="Lee, Sun & Saunders 2014; Yuan, Ho & Lin 2012; Johnson & Guestrin 2015",
    abilities=("Scored",),
    refuses=("kinked loss", "smooth regularizer"),
    vectors=18,
)
@dataclass(frozen=True)
class ProximalNewton(IterativeSolver):
    """Second-order models of the risk on a working set, minimised with Omega by coordinate descent.

    With g = R'(w) and H = A' diag(phi''(A w)) A on the columns W (those in use, and those that violate optimality
    most), d minimises `<g, d> + 1/2 <d, H d> + Omega(w + d)` over W; then w moves along d: by a full step if this
    brings a tenth of the predicted decrease, else to the minimum along the line, through scores. H is kept until
    progress slows or W has to grow, so for least squares it is formed once per W. A free intercept is one more
    coordinate, eliminated from the model (a Schur complement). Convergence is quadratic if H is recomputed in every
    iteration.

    In long runs, weights that the gap proves to be 0 at the minimum are removed from all later working sets (Gap Safe
    screening, Ndiaye et al. 2017; `details["screened"]` is how many).

    Memory: 137 dim + 56 scores + 16 W^2 bytes, W the columns of the working set, at most 8,192,
    scores the rows.

    Parameters
    ----------
    first_columns : columns of the first working set, later ones have twice as many as are in use, but with l1 alone
        no more beside these than there are rows: so many it leaves in use, unless columns depend on one another. 64 was
        chosen without a sweep: H then takes 32 kB.
    reuse : recompute H when an iteration has not reduced the largest violation to this share; 0 recomputes it always.
    sample : share of the rows in a subproblem that provides the start, 0 for none; not used with a `start`. Null: 0.05,
        but none for up to 150,000 entries, nor for a quadratic loss of a single working set.
    seed : of the sample.

    Raises
    ------
    IncompatibleError
        A loss with kinks or without curvature by rows, or a regularizer without an l1 part.
    """

    superlinear: ClassVar[bool] = True
    first_columns: int = parameter(64, least=1, doc="size of the first working set", example=1)
    reuse: float = parameter(0.1, least=0.0, most=1.0, doc="H is kept while violations fall by this", example=0.0)
    sample: float | None = parameter(
        None, least=0.0, below=1.0, doc="share of rows for the start; null chooses", example=0.3
    )
    seed: int | None = parameter(
        None, doc="of the sample; null = the config's", least=0, example=1, beside={"sample": 0.3}
    )

    def steps(self, run: Monitor) -> Steps:
        """As of `IterativeSolver`."""
        l1, l2 = lambdas("proximal_newton", run)
        if run.chooses_start:
            found = start_from_sample(self, run, steady=True, exact=run.risk.dim <= self.first_columns)
            run.start = run.start if found is None else found.w
        return _GramRun(self, run, l1, l2).go()


class _GramRun(Run):
    """Models by their Gram matrix."""

    rough = 0.01

    def __init__(self, options: ProximalNewton, run: Monitor, l1: float, l2: float) -> None:
        super().__init__("proximal_newton", run, l1, l2)
        self.options = options
        self.model: GramModel | None = None
        self.grams = 0
        self.before = math.inf

    def details(self) -> dict[str, Any]:
        """Also how often H was formed."""
        return {**super().details(), "grams": self.grams}

    def rejected(self) -> None:
        """A new model next time."""
        self.model = None

    def propose(self, at: Point, aim: float, away: Vector, worst: float) -> tuple[Vector, Scores]:
        """As of `Run`."""
        w, model = at.w, self._model(at, away, worst)
        self.before = worst
        with self.run.master():
            after = w.copy()
            goal = max(self.judged(away, model.columns) * worst, self.least_goal(aim))
            after[model.columns], constant, self.left = model.minimum(
                at.a, w, aim, self.l2, goal, self.run.budget.check
            )
        step = self.rows.map.matvec(after - w)
        return after, step + self.rows.ones * constant if self.rows.free else step

    def _model(self, at: Point, away: Vector, worst: float) -> GramModel:
        """The last one where it still does."""
        model, reuse = self.model, self.options.reuse
        falling = worst <= reuse * self.before
        if model is not None and falling and float(away[model.columns].max(initial=0.0)) >= reuse * worst:
            return model
        used = int(np.count_nonzero(at.w))
        others = used if self.l2 > 0.0 else min(used, self.rows.count)
        size = max(self.options.first_columns, used + others)
        columns = chosen(away, at.w, size, self.zeros.found, most=WIDEST)
        self.model = GramModel(self.rows, self.rows.curvature(at.f, self.damping), columns)
        self.grams += 1
        return self.model
