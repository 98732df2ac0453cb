"""Newton's system at a point, solved exactly by features or by rows, or roughly by conjugate gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, cast

import numpy as np

from bmrm.kernels.products.vectors import norm
from bmrm.numerics.conjugate_gradients import ConjugateGradients
from bmrm.problem import Check, Elastic, Regularizer, Scored, ScoreFunction, Scores, Vector, provides, unchecked
from bmrm.problem.loss import HasCurvature
from bmrm.solvers._core.newton.preconditioners import BlockPreconditioner, Preconditioner, by_diagonal
from bmrm.solvers._core.newton.row_space import RowGram, RowQuadratic, vectors_at
from bmrm.solvers._core.newton.smooth_point import Objective, SmoothPoint
from bmrm.solvers._core.newton.system import Matrix, add_to_diagonal, newton_step

FEW = 0.5
"""Largest share of changed rows, among those with curvature, with which the Gram matrix is corrected instead of formed
anew."""
CORRECTIONS = 30
"""Most corrections in succession, each of which adds its rounding."""
LITTLE = 1.5
"""CG ends when the gain of an iteration is below this multiple of `forcing` times the mean gain: measured."""
LONGEST = 1000
"""Most CG iterations."""


@dataclass(frozen=True)
class NewtonStep:
    """A change of w and b, with the change of the scores: of w alone, and of both.

    `computed` says whether `f` is a product of the data with w, not a sum of such products.
    """

    w: Vector
    b: float
    f: Scores
    full: Scores
    computed: bool = False


class NewtonModel(Protocol):
    """Solves for steps."""

    def step(self, point: SmoothPoint) -> NewtonStep | None:
        """Newton's step; None where the Hessian is not finite."""
        ...


@dataclass
class DenseModel:
    """H = A' phi'' A + Omega'', kept between calls."""

    objective: Objective
    weights: Scores | None = None
    gram: Matrix | None = None
    corrections: int = 0
    check: Check = unchecked

    def step(self, point: SmoothPoint) -> NewtonStep | None:
        """By Cholesky; the Gram matrix and half a pass, 1 with a free intercept."""
        goal = self.objective
        curvature = weights_of(goal.phi, point.full)
        assert curvature is not None
        self._bring(curvature)
        assert self.gram is not None
        if not np.isfinite(self.gram).all():
            self.gram = self.weights = None
            return None
        hessian = self.gram.copy()
        add_hessian(hessian, goal.regularizer, point.w)
        border, corner = None, 0.0
        if goal.free:
            border, corner = goal.map.rmatvec(curvature), float(goal.phi.total(curvature)[0])
        both = newton_step(hessian, point.gradient, border, corner, point.rest, self.check)
        w, b = both[: point.w.size], float(both[-1]) if goal.free else 0.0
        f = goal.map.matvec(w)
        return NewtonStep(w, b, f, goal.shifted(f, b), computed=True)

    def _bring(self, curvature: Scores) -> None:
        """Make `gram` that of `curvature`."""
        map = self.objective.map
        if self.gram is not None and self.corrections < CORRECTIONS and self.objective.phi.facts.separable:
            change = curvature - self.weights
            changed = map.active(change)
            if changed == 0:
                return
            if changed <= FEW * map.active(curvature):
                self.gram += map.gram(change)
                self.weights, self.corrections = curvature, self.corrections + 1
                return
        self.gram, self.weights, self.corrections = map.gram(curvature), curvature, 0


@dataclass
class RowsModel:
    """The same step in the inner products of the rows, which are formed once; see `rows`.

    Attributes
    ----------
    rows : all rows of a loss that is a sum over them.
    l2 : of the regularizer.
    """

    objective: Objective
    rows: RowGram
    l2: float
    check: Check = unchecked

    def step(self, point: SmoothPoint) -> NewtonStep | None:
        """By Cholesky; 1 or one and a half passes, and the inner products at first."""
        goal = self.objective
        vectors = vectors_at(goal.phi, point.full)
        if vectors is None or not np.all(np.isfinite(self.rows.matrix)):
            return None
        slope, residual = goal.phi.value_and_slope(point.full)[1], 0.0 if goal.free else None
        model = RowQuadratic(goal.map, self.rows.matrix, vectors, point.f, slope, self.l2, None, residual, self.check)
        w, b = model.step(point.w, point.gradient, point.rest)
        f = goal.map.matvec(w)
        return NewtonStep(w, b, f, goal.shifted(f, b))


def weights_of(phi: ScoreFunction, f: Scores) -> Scores | None:
    """What `LinearMap.gram` takes for phi''(f); None where phi does not tell."""
    if phi.facts.separable:
        return phi.hessian_diagonal(f)
    return phi.hessian_shares(f) if phi.facts.shared else None


def add_hessian(matrix: Matrix, regularizer: Regularizer, w: Vector) -> None:
    """Add Omega'' to a dense matrix."""
    if provides(regularizer, Elastic):
        add_to_diagonal(matrix, regularizer.l2)
        return
    for k, unit in enumerate(np.eye(w.size)):
        matrix[:, k] += cast(HasCurvature, regularizer).hessian_product(w, unit)


@dataclass(frozen=True)
class EliminatedIntercept:
    """A free intercept that follows every step of w to where J's derivative in it stays 0 (a Schur complement).

    As one more variable of conjugate gradients it would double their iterations where few features, such as frequent
    words, are in most rows: what they have in common is that constant.

    Attributes
    ----------
    goal, curvature : the function, and its second derivative by rows.
    border, corner : derivatives of J's derivative in the intercept, in w and in the intercept.
    """

    goal: Objective
    curvature: Scores
    border: Vector
    corner: float

    @classmethod
    def at(cls, goal: Objective, point: SmoothPoint) -> EliminatedIntercept | None:
        """None where J has no curvature along the intercept, which then stays; half a pass."""
        curvature = goal.phi.hessian_diagonal(point.full)
        corner = float(goal.phi.total(curvature)[0])
        return cls(goal, curvature, goal.map.rmatvec(curvature), corner) if 0.0 < corner < math.inf else None

    def first(self, gradient: Vector, rest: float) -> tuple[Vector, float]:
        """The gradient in w where the derivative in the intercept is 0 instead of `rest`, and the step there."""
        return gradient - (rest / self.corner) * self.border, -rest / self.corner

    def follow(self, product: Scores) -> tuple[Scores, float]:
        """The Hessian's product with scores and the constant that follows them, from that with scores; the constant."""
        b = -float(self.goal.phi.total(product)[0]) / self.corner
        return product + b * self.curvature, b

    @property
    def diagonal(self) -> Vector:
        """What the elimination takes from the diagonal of the Hessian."""
        return self.border**2 / self.corner


@dataclass
class CgProgress:
    """Nash & Sofer's rule (Operations Research Letters 9, 1990): what an iteration gains, against the mean so far.

    Attributes
    ----------
    share : of the mean, below which iterations are `slow`.
    iterations, total : how many, and twice what they have taken from the quadratic model.
    """

    share: float
    iterations: int = 0
    total: float = 0.0

    def slow(self, gain: float) -> bool:
        """Whether the last iteration, which has gained half of this, was one to end with."""
        self.iterations += 1
        self.total += gain
        return self.iterations * gain <= self.share * self.total


@dataclass
class CgModel:
    """Conjugate gradients on Hessian products, preconditioned.

    Parameters
    ----------
    forcing : share of the gradient that the residual may have, times min(1, (|g| / |g_0|)^1/2); and of the mean gain of
        the iterations `LITTLE` times this is too little to go on.
    rows : those of whose Hessian the blocks that belong to one score are the preconditioner; None for its diagonal.
    patience : iterations with a preconditioner, in one step or several, after which it is made anew: as many as cost
        what it does, so that both together cost at most twice what they must.

    Attributes
    ----------
    iterations : of each step.
    kept, spent : the preconditioner, and the iterations with it.
    """

    objective: Objective
    forcing: float
    rows: Scored | None = None
    first_norm: float = math.nan
    iterations: list[int] = field(default_factory=list)
    patience: float = 0.0
    kept: Preconditioner | None = None
    spent: int = 0

    def step(self, point: SmoothPoint) -> NewtonStep | None:
        """One pass for each iteration, and the preconditioner; with a free intercept a pass more."""
        goal = self.objective
        weights = None if goal.free else weights_of(goal.phi, point.full)
        return self._by_scores(point) if weights is None else self._by_weights(point, weights)

    def _by_weights(self, point: SmoothPoint, weights: Scores) -> NewtonStep | None:
        """By products of Gram matrices, half a pass for the scores of all."""
        map, omega = self.objective.map, cast(HasCurvature, self.objective.regularizer)
        stale = self.kept is not None and self.spent < self.patience
        if not stale:
            self._renew(point)
        assert self.kept is not None
        cg = ConjugateGradients(-point.gradient, self.kept)
        share, w = self._forcing(norm(point.gradient)), np.zeros(point.w.size)
        goal_norm, progress = share * norm(point.gradient), CgProgress(LITTLE * share)
        self.iterations.append(0)
        while cg.size > 0.0 and self.iterations[-1] < LONGEST and norm(cg.residual) > goal_norm:
            if stale and self.spent >= self.patience:
                self._renew(point)
                cg, stale = ConjugateGradients(cg.residual, self.kept), False
            dw = cg.direction
            size = cg.size
            t = cg.advance(map.gram_product(weights, dw) + omega.hessian_product(point.w, dw))
            if t is None:
                break
            w += t * dw
            self.iterations[-1] += 1
            self.spent += 1
            if progress.slow(t * size):
                break
        if self.iterations[-1] == 0:  # no curvature
            w = cg.residual
        f = map.matvec(w)
        return NewtonStep(w, 0.0, f, f, computed=True) if np.all(np.isfinite(w)) else None

    def _renew(self, point: SmoothPoint) -> None:
        self.kept, self.spent = self._preconditioner(point, None), 0

    def _by_scores(self, point: SmoothPoint) -> NewtonStep | None:
        """By second derivatives of phi along scores."""
        goal = self.objective
        map, phi, omega = goal.map, goal.phi, cast(HasCurvature, goal.regularizer)
        intercept = EliminatedIntercept.at(goal, point) if goal.free else None
        gradient, b = point.gradient, 0.0
        if intercept is not None:
            gradient, b = intercept.first(gradient, point.rest)
        step = NewtonStep(np.zeros(point.w.size), b, 0.0 * point.f, goal.shifted(0.0 * point.full, b))
        cg = ConjugateGradients(-gradient, self._preconditioner(point, intercept))
        share = self._forcing(norm(gradient))
        goal_norm, progress = share * norm(gradient), CgProgress(LITTLE * share)
        self.iterations.append(0)
        # Products of tiny residuals underflow to 0: no direction is left then.
        while cg.size > 0.0 and self.iterations[-1] < LONGEST and norm(cg.residual) > goal_norm:
            dw = cg.direction
            fd = map.matvec(dw)
            product, db = phi.hessian_product(point.full, fd), 0.0
            if intercept is not None:
                product, db = intercept.follow(product)
            size = cg.size
            t = cg.advance(map.rmatvec(product) + omega.hessian_product(point.w, dw))
            if t is None:
                break
            full = goal.shifted(fd, db)
            step = NewtonStep(step.w + t * dw, step.b + t * db, step.f + t * fd, step.full + t * full)
            self.iterations[-1] += 1
            if progress.slow(t * size):
                break
        if self.iterations[-1] == 0:  # no curvature
            r = cg.residual
            f = map.matvec(r)
            return NewtonStep(r, b, f, goal.shifted(f, b)) if np.all(np.isfinite(r)) else None
        return step

    def _preconditioner(self, point: SmoothPoint, intercept: EliminatedIntercept | None) -> Preconditioner:
        goal, rows = self.objective, self.rows
        if rows is None:
            return by_diagonal(goal, point, 0.0 if intercept is None else intercept.diagonal)
        f = point.full if rows.map is goal.map else rows.map.matvec(point.w)
        return BlockPreconditioner(rows, f, cast(Elastic, goal.regularizer).l2)

    def _forcing(self, length: float) -> float:
        """Share of a gradient of this length that the residual may have."""
        if math.isnan(self.first_norm):
            self.first_norm = length
        ratio = length / self.first_norm if self.first_norm > 0.0 else 1.0
        return self.forcing * min(1.0, math.sqrt(ratio))


def model_for(
    objective: Objective,
    hessian: str,
    forcing: float,
    blocks: Scored | None,
    rows: RowGram | None,
    patience: float = 0.0,
    check: Check = unchecked,
) -> NewtonModel:
    """The model that `hessian` names.

    Parameters
    ----------
    objective : what is minimised.
    hessian : `dense`, `rows` or `cg`.
    forcing : of `cg`.
    blocks : the rows of whose Hessian the blocks are the preconditioner of `cg`; None for the diagonal.
    rows : for `rows`.
    patience : of `cg`.
    check : called now and then where a large system is solved.
    """
    if hessian == "rows":
        assert rows is not None
        return RowsModel(objective, rows, cast(Elastic, objective.regularizer).l2, check)
    if hessian == "dense":
        return DenseModel(objective, check=check)
    return CgModel(objective, forcing, blocks, patience=patience)
