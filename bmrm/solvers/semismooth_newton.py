"""Semismooth Newton on augmented Lagrangians, after SSNAL: Li, Sun & Toh, SIAM J. Optim. 28 (2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bmrm.problem import Callback, Regularizer, Risk, Scores, Solution, Vector
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.semismooth_newton_run import Run


@register(
    "semismooth_newton",
    problem="losses of one score with a proximal map, kinked or smooth, and multiclass_hinge; l2; few features",
    needs="Scored with a proximal map; a dense Hessian",
    certificate="the multipliers, which are slopes of the loss: a plane, by eq. 15 of the KDD paper",
    cost="1 pass and Newton steps: the Gram matrix of the rows at a kink, or their inner products, a Cholesky factor,"
    " 1 pass over rows near one",
    source="Li, Sun & Toh 2018",
    abilities=("Scored",),
    refuses=("kinked regularizer", "not strongly convex", "free intercept with several scores"),
)
@dataclass(frozen=True)
class SemismoothNewton(IterativeSolver):
    """The method of multipliers on f = A w, its smooth subproblems solved by Newton's method.

    With multipliers s (a slope for each row) and z(w) = A w + (mass/sigma) s, each subproblem is

        minimise over w:   lambda/2 ||w||^2 + env(z(w)),   env(z) = min over f of phi(f) + sigma/(2 mass) ||f - z||^2

    whose gradient is lambda w + A'u with u = env'(z), a subgradient of phi at the minimising f. Newton's matrix
    lambda + A' env''(z) A counts only the rows at a kink of a piecewise linear loss, and shrinks to few; where these
    are fewer than dimensions, the system is solved in their inner products (Woodbury). With several scores per row
    env'' is a matrix for each row, diag(c) - c c' / sum(c) over the classes at the kink. Then s
    becomes u, and sigma grows. At every step u proves the bound -phi*(u) - ||A'u||^2 / (2 lambda); the gap splits into
    what the subproblem lacks, ||gradient||^2 / (2 lambda), and what the multipliers lack, and a subproblem is left as
    soon as the first is the smaller.

    Once a subproblem is solved, the slopes that the next one changes are those of rows near a kink: Newton's method
    goes on with a copy of these rows alone, the slopes of the others being a linear term, until the smaller problem is
    solved; then all rows are looked at again. An iteration is such a look. `details` has `slope`, the multipliers at
    the end (Scores: only for a solver on the same risk), `penalties`, how often they have changed, and the Newton
    `steps`.

    With `sample`, a sample of the rows gives the start. A free intercept is a variable of the subproblems that the
    regularizer does not touch (one score per row).

    Memory: 10 dim^2 + 96 scores + 0.3 data bytes, scores being rows times the scores of each, data those of the rows,
    of which it copies some.

    Parameters
    ----------
    sigma : the first penalty, in units of a row's curvature.
    growth : what it is multiplied by when the multipliers change.
    sample : share of the rows that the start is found from, 0 for none; not with a `start`. Null: 0.05, but none for
        up to 150,000 entries.
    seed : of the sample.

    Raises
    ------
    IncompatibleError
        Where the risk has no proximal map (`line_search_bundle` or `lbfgs` would do), more features than a dense matrix
        can hold, or several scores per row and a free intercept (`dual_coordinate`), or the regularizer is not `l2`
        (`bundle`).
    """

    superlinear: ClassVar[bool] = True
    sigma: float = parameter(0.3, above=0.0, doc="first penalty, per row", example=3.0)
    growth: float = parameter(2.0, above=1.0, doc="factor of the penalty when multipliers change", example=4.0)
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
        slope: Scores | None = None,
    ) -> Solution:
        """As of `Solver`; `slope` of phi, of a dual solver say, makes the first multipliers."""
        with self.monitor(risk, regularizer, start, callback) as monitor:
            return Run(self, monitor, slope).go(fresh=start is None and slope is None)
