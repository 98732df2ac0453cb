"""Newton's method on J, exact in few features, truncated in many: Dembo & Steihaug 1983, Keerthi & DeCoste 2005."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bmrm.problem import Callback, Regularizer, Risk, Solution, Vector
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.newton_run import Run

HESSIANS = ("auto", "dense", "cg")


@register(
    "newton",
    problem="smooth losses with a second derivative, piecewise quadratic ones too; l2 and other smooth regularizers",
    needs="Scored with curvature; a regularizer with curvature",
    certificate="the conjugate of the regularizer at the slopes (eq. 15), mixed over iterations",
    cost="1 pass, and a Gram matrix with its Cholesky factor or 1 pass for each CG iteration",
    source="Dembo & Steihaug 1983; Keerthi & DeCoste 2005",
    abilities=("Scored",),
    refuses=("kinked loss", "kinked regularizer"),
)
@dataclass(frozen=True)
class Newton(IterativeSolver):
    """w - t H^-1 g, with g and H the gradient and the (generalised) Hessian of J, t by a search on the scores.

    H = A' phi''(A w) A + Omega''. `dense` forms it and factors it by Cholesky; where few rows have changed their
    curvature since the last time (`squared_hinge`) only these are counted anew. `cg` solves H d = -g by conjugate
    gradients, preconditioned, until the residual is `forcing` times min(1, (|g| / |g_0|)^1/2) of |g|. The
    step t = 1 is taken where the derivative of J has fallen by half there, else one is searched.

    The preconditioner is the blocks of the Hessian that belong to one score, factored, where they are known and cost
    little, at most 128 megabytes: of full rows a sample makes them, so that in hundreds of features `auto` takes `cg`
    with one score, too. Of losses like `softmax`, the same for a number added to all scores of a row, the mean over
    scores is left to the regularizer. Else it is the diagonal (Jacobi's), with several scores none.

    Each point gives the plane of its slopes. A free intercept is one more variable, set to its minimum at every
    point. With several scores per row there is `cg` only.

    Memory: 18 dim^2 + 72 scores bytes (`dense`), 96 dim + 72 scores bytes (`cg`), scores being rows times the scores of
    each; with blocks 96 dim + 72 scores + 16 dim^2 / K bytes, K being the scores of a row.

    Parameters
    ----------
    hessian : `dense`, `cg`, or `auto`: what takes fewer operations, by the size of the data.
    forcing : how exactly `cg` solves.
    sample : share of the rows that the start is found from, 0 for none; not with a `start`. Null: 0.05, but none for
        up to 150,000 entries, nor for a quadratic loss.
    seed : of the sample, and of the rows that make a preconditioner.

    Raises
    ------
    IncompatibleError
        Where the loss has no second derivative (`semismooth_newton`, `line_search_bundle` or `lbfgs` would do), or
        the regularizer is kinked (`proximal_newton` or `bundle`).
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

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`."""
        with self.monitor(risk, regularizer, start, callback) as monitor:
            return Run(self, monitor).go(fresh=start is None)
