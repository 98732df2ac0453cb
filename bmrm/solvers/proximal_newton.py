"""Proximal Newton for l1 and elastic net: quadratic models on working sets, solved on their Gram matrix.

Lee, Sun & Saunders 2014; Yuan, Ho & Lin 2012 (newGLMNET); working sets as in Johnson & Guestrin 2015 (Blitz).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blas_threads import lapack_threads
from bmrm.kernels.masters.soft_descent import gram_sweeps, violations
from bmrm.problem import Callback, Check, Regularizer, Risk, Scores, Solution, Vector, unchecked
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.monitor import IterativeSolver, Monitor
from bmrm.solvers._core.newton.system import solve_positive
from bmrm.solvers._core.points import Point
from bmrm.solvers._core.row_scores import RowScores, lambdas
from bmrm.solvers._core.row_start import start_from_sample
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

    Memory: 137 dim + 56 scores + 16 W^2 bytes, W the columns of the working set, scores the rows.

    Parameters
    ----------
    first_columns : size of the first working set; later ones are twice the number of columns in use.
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

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`."""
        l1, l2 = lambdas("proximal_newton", regularizer)
        with self.monitor(risk, regularizer, start, callback) as run:
            if start is None:
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
        size = max(self.options.first_columns, 2 * int(np.count_nonzero(at.w)))
        self.model = GramModel(self.rows, at.f, chosen(away, at.w, size, self.zeros.found), self.damping)
        self.grams += 1
        return self.model


Matrix = NDArray[np.float64]
Columns = NDArray[np.int64]

SWEEPS = 60
"""Sweeps of coordinate descent between two linear systems for the coordinates in use."""
PRODUCTS = 1e8
"""Entries of the matrix between two checks of the clock."""
ROUNDS = 200
TINY = 1e-14
"""Damping of the diagonal of linear systems, relative to its largest entry."""
SOLUTIONS = 30
"""Most consecutive systems, each with one coordinate less, before coordinate descent visits all coordinates again."""
WORK = 1e10
"""Operations in linear systems after which the model is not solved further, since any step that decreases it is
valid."""
RIDGE = 1e-12
"""Damping of the diagonal, relative to its mean: columns may be empty, or have no curvature."""


class GramModel:
    """The second-order model of the loss at some scores, on few columns.

    Parameters
    ----------
    rows : the data and the loss.
    f : scores.
    columns : increasing.
    damping : curvature added to every row, relative to the mean curvature.
    """

    def __init__(self, rows: RowScores, f: Scores, columns: Columns, damping: float) -> None:
        self.columns = columns
        curvature = rows.curvature(f, damping)
        self._total = 0.0
        total = float(rows.phi.total(curvature)[0])
        self.H = rows.map.gram(curvature, None if columns.size == rows.dim else columns)
        if rows.free and total > 0.0:
            self._total = total
            self._border = rows.map.rmatvec(curvature)[columns]
            self.H -= np.outer(self._border, self._border / total)
        diagonal = self.H.diagonal()
        ridge = RIDGE * float(diagonal.mean()) if diagonal.size else 0.0
        self.H.flat[:: columns.size + 1] += ridge if ridge > 0.0 else 1.0

    def minimum(
        self, gradient: Vector, w: Vector, l1: float, l2: float, goal: float, check: Check
    ) -> tuple[Vector, float, float]:
        """The new weights of the columns, the step of the free intercept with them, and what is left to do."""
        old = w[self.columns]
        new, left = minimum(self.H, gradient[self.columns], old, l1, l2, goal, check)
        return new, -float(self._border @ (new - old)) / self._total if self._total else 0.0, left


def minimum(
    H: Matrix, q: Vector, w: Vector, l1: float, l2: float, goal: float, check: Check = unchecked
) -> tuple[Vector, float]:
    """argmin over x of <q, x - w> + 1/2 <x - w, H (x - w)> + l1 ||x||_1 + l2/2 ||x||^2, and what is left to do.

    Coordinate descent finds which coordinates are non-zero, and their signs; where it is slow, a linear system is
    solved for these. Both decrease the objective.

    Parameters
    ----------
    H : (n, n), positive semidefinite with a positive diagonal.
    goal : accepted violation of optimality in each coordinate.
    check : called between sweeps and linear systems, about ten times a second.
    """
    x: Vector = w.copy()
    q = q.copy()
    left, work = math.inf, 0.0
    for _ in range(ROUNDS):
        left = _swept(H, q, x, l1, l2, goal, check)
        if left <= goal or work > WORK:
            break
        for _ in range(SOLUTIONS):
            check()
            work += float(np.count_nonzero(x)) ** 3 / 3.0
            with np.errstate(over="ignore", invalid="ignore"):  # a curvature may be all but 0
                reached = _solved(H, q, x, l1, l2)
            if reached or work > WORK:
                break
        left = violations(q, x, l1, l2, np.empty_like(x))
        if left <= goal:
            break
    return x, left


def _swept(H: Matrix, q: Vector, x: Vector, l1: float, l2: float, goal: float, check: Check) -> float:
    """Coordinate descent, in batches of sweeps that take some tenths of a second."""
    step, left, most = max(1, int(PRODUCTS / H.size)) if H.size else SWEEPS, math.inf, SWEEPS
    while most > 0 and left > goal:
        check()
        left = gram_sweeps(H, q, x, l1, l2, goal, min(step, most))
        most -= step
    return left


def _solved(H: Matrix, q: Vector, x: Vector, l1: float, l2: float) -> bool:
    """Move towards the minimum over the coordinates in use, with fixed signs; returns whether it was reached.

    Where coordinates would change their signs (feature-sign search, Lee et al. 2007), they stay at 0 and the others
    continue in the same direction as long as the objective falls: up to the first, the 2nd, 4th, ... sign change.
    """
    used = np.flatnonzero(x)
    if not used.size:
        return True
    old, signs, system = x[used], np.sign(x[used]), H[np.ix_(used, used)]
    system.flat[:: used.size + 1] += l2 + TINY * float(system.diagonal().max())
    slope = q[used] + l2 * old + l1 * signs
    diagonal = system.diagonal().copy()
    step = -solve_positive(system, slope)
    system.flat[:: used.size + 1] = diagonal
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(step * signs < 0.0, -old / step, np.inf)
    crossings = np.sort(reach[reach <= 1.0])
    if crossings.size:
        with lapack_threads(used.size):
            step = _bent(system, slope, old, step, reach, crossings)
    whole = np.zeros_like(x)
    whole[used] = step
    change = whole @ H
    if not np.all(np.isfinite(change)):  # so flat that the step is of no use
        return True
    x += whole
    q += change
    return not crossings.size


def _bent(system: Matrix, slope: Vector, x: Vector, step: Vector, reach: Vector, crossings: Vector) -> Vector:
    """The best of some steps along `step`, during which coordinates stop at 0; of `system` the upper triangle is used.

    The first is taken in any case: its decrease may be below rounding, but it removes a coordinate.
    """
    from scipy.linalg.blas import dsymv

    best, least, k = np.zeros_like(x), math.inf, 1
    while True:
        t = crossings[k - 1] if k <= crossings.size else 1.0
        moved = np.where(reach <= t, -x, t * step)
        value = float(moved @ (slope + dsymv(0.5, system.T, moved, lower=1)))
        if value >= least:
            return best
        best, least = moved, value
        if k > crossings.size:
            return best
        k *= 2
