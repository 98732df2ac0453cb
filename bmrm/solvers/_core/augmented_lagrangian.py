"""The augmented Lagrangian of f = A w (+ b), and Newton's method on it; see ../semismooth_newton.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.vectors import dot
from bmrm.numerics.bracket import Trial
from bmrm.numerics.line_search import Along, step_length, total
from bmrm.numerics.roots import newton_root
from bmrm.problem import Check, LinearMap, MoreauEnvelope, ScoreFunction, Scores, Vector, unchecked
from bmrm.problem.abilities import RowPart
from bmrm.solvers._core.dense_matrix import WIDEST
from bmrm.solvers._core.gram_model import GramModel
from bmrm.solvers._core.newton.products import inexact_step
from bmrm.solvers._core.newton.row_space import RowGram, RowQuadratic, rank_of, vectors_of
from bmrm.solvers._core.newton.system import add_to_diagonal, newton_step
from bmrm.solvers._core.rowwise import RowwiseRisk
from bmrm.solvers._core.working_set import chosen, violation
from bmrm.solvers._core.working_set_newton import Aimed

NOISE = 1e-14
"""Rounding error of a difference of sums, relative to the largest absolute value in them."""
MANY, FEW = 400, 0.7
"""Linear systems over rows in place of columns: least dimension, and largest rank of the rows as a share of it. In
fewer dimensions the dense matrix is cheap."""
CHANGED, CORRECTIONS, WIDE = 0.3, 30, 200
"""Largest share of changed rows at a kink with which a Gram matrix is corrected instead of formed anew, most
corrections in succession, and least dimension."""
FLAT = 0.2
"""Share of the first derivative that may remain after a line search."""
COLUMNS, LEFT = 64, 1e-3
"""Size of the first working set of columns under l1, and share of the largest violation that may remain when its
quadratic model has been solved."""
SHORT, LEAST_DAMPING, CALMER = 0.2, 1e-2, 5.0
"""Step length below which damping is added to the Hessian, its first value, and the factor by which it changes."""
UNITS = 40
"""Trials for the unit of the penalty, each four times the last or a quarter of it."""
SHARE = 1.0
"""A subproblem is solved when its error is at most this share of the error of the multipliers."""
FORCING = 0.3
"""Share of the gradient that may remain of a linear system which is solved by conjugate gradients."""
NEAR = 4.0
"""The objective is evaluated when the error of the subproblem is at most this multiple of the last gap."""


@dataclass
class KeptGram:
    """A' C A of the last step, corrected by the rows whose curvature has changed where these are few.

    Curvatures at kinks are proportional to sigma, and exactly so where it changes by powers of 2.
    """

    sigma: float = 1.0
    curvature: Scores | None = None
    matrix: NDArray[np.float64] | None = None
    corrections: int = 0

    def of(self, model: Subproblem, curvature: Scores, sigma: float, dim: int) -> NDArray[np.float64]:
        """A new array (dim, dim)."""
        map = model.map
        if model.phi.facts.scores_per_row > 1 or dim < WIDE:
            return map.gram(curvature)
        ratio, before = sigma / self.sigma, self.curvature
        self.sigma, self.curvature = sigma, curvature
        if self.matrix is not None and before is not None and self.corrections < CORRECTIONS:
            change = curvature - ratio * before
            changed = map.active(change)
            if changed <= CHANGED * map.active(curvature):
                self.matrix *= ratio
                if changed:
                    self.matrix += map.gram(change)
                self.corrections += 1
                return np.array(self.matrix)
        self.matrix, self.corrections = map.gram(curvature), 0
        return np.array(self.matrix)


@dataclass(frozen=True)
class Subproblem:
    """The function to minimise: Omega(w) + <linear_term, w> + intercept_residual b + phi(A w + b).

    Attributes
    ----------
    map, phi, l1, l2 : R(w) = phi(A w), and Omega(w) = l1 ||w||_1 + l2/2 ||w||^2.
    free : whether there is a b, a free intercept.
    linear_term, intercept_residual : the slopes of rows that are not looked at, multiplied by A' and summed; None and 0
        where all are.
    rows : these rows and their inner products; None where they cannot be parted.
    kept : the last Gram matrix.
    inexact : whether linear systems are solved by conjugate gradients, without a matrix.
    check : called now and then where a large system is solved.
    """

    map: LinearMap
    phi: ScoreFunction
    l1: float
    l2: float
    free: bool
    linear_term: Vector | None = None
    intercept_residual: float = 0.0
    rows: RowGram | None = None
    kept: KeptGram = field(default_factory=lambda: KeptGram())
    inexact: bool = False
    check: Check = unchecked

    def constant(self, b: float) -> Scores:
        """Scores that are all b."""
        return self.phi.constant(np.array([b]))

    def shifted(self, f: Scores, b: float) -> Scores:
        """f + b."""
        return f + self.constant(b) if self.free and b else f


@dataclass
class AugmentedLagrangian:
    """The model with env_sigma(A w + b + (mass/sigma) s) for phi, as a function of w and b; s and sigma are fixed.

    Attributes
    ----------
    model, sigma, slope : what is minimised, the penalty, and s (None for 0).
    w, b, f : the point and the scores of w.
    z : A w + b + (mass/sigma) s.
    envelope, risk_gradient : u with what it proves, and A'u.
    rest : the sum of u and `intercept_residual`, 0 but for rounding where b is free.
    gain : about twice by how much the last step was to lower the function.
    damping : what is added to the curvatures of rows where there is an l1, times their mean.
    careful : whether scores are formed anew after every step.
    summed : whether `risk_gradient` is a sum over all rows, not what differences have made of one.
    """

    model: Subproblem
    sigma: float
    slope: Scores | None
    w: Vector
    b: float
    f: Scores
    z: Scores
    envelope: MoreauEnvelope
    risk_gradient: Vector
    rest: float = 0.0
    gain: float = 0.0
    damping: float = 0.0
    careful: bool = False
    summed: bool = True
    _value: float | None = None
    _gradient: Vector | None = None
    _reach: float = 0.0
    """The largest ||A'u||^2 since this was last summed over all rows."""

    @classmethod
    def at(
        cls, model: Subproblem, w: Vector, sigma: float, slope: Scores | None = None, f: Scores | None = None
    ) -> AugmentedLagrangian:
        """The point w, with scores f; 1 pass, or half a pass where these are known."""
        f, b = model.map.matvec(w) if f is None else f, 0.0
        z = f
        if slope is not None:
            z = z + (model.phi.facts.mass / sigma) * slope
        found = cls(model, sigma, slope, w, b, f, z, model.phi.moreau(z, sigma), w)
        if model.free:
            found._centre()
        found._set_risk_gradient(model.map.rmatvec(found.envelope.slope))
        return found

    @classmethod
    def known(
        cls,
        model: Subproblem,
        point: tuple[Vector, float, Scores],
        slope: Scores,
        pull: Vector,
        sigma: float,
        pulled: Callable[[Scores], Vector],
    ) -> AugmentedLagrangian:
        """A point w, b with scores f of w, where A' times the multipliers is known: `pull`.

        `pulled` is asked for A' times what the slopes of the envelope differ from them.
        """
        w, b, f = point
        z = model.shifted(f, b) + (model.phi.facts.mass / sigma) * slope
        found = cls(model, sigma, slope, w, b, f, z, model.phi.moreau(z, sigma), pull)
        if model.free:
            found._centre()
        found._set_risk_gradient(pull + pulled(found.envelope.slope - slope))
        return found

    def multiplied(self, growth: float) -> AugmentedLagrangian:
        """The same point with u for s and a larger sigma; half a pass."""
        slope, sigma = self.envelope.slope, growth * self.sigma
        z = self._shifted_by(self.f, sigma, slope)
        found = replace(self, slope=slope, sigma=sigma, z=z)
        found._look()
        return found

    def aimed_at(self, l1: float) -> AugmentedLagrangian:
        """The same with another l1."""
        return self if l1 == self.model.l1 else replace(self, model=replace(self.model, l1=l1), _value=None)

    def weakened(self, sigma: float) -> AugmentedLagrangian:
        """The same point and multipliers with a smaller sigma; half a pass."""
        return AugmentedLagrangian.at(self.model, self.w, sigma, self.slope, f=self.f)

    def _shifted_by(self, f: Scores, sigma: float, slope: Scores | None) -> Scores:
        z = self.model.shifted(f, self.b)
        return z if slope is None else z + (self.model.phi.facts.mass / sigma) * slope

    # -- what is known here ----------------------------------------------------------------------

    @property
    def pull(self) -> Vector:
        """The gradient in w of all but Omega."""
        linear_term = self.model.linear_term
        return self.risk_gradient if linear_term is None else self.risk_gradient + linear_term

    @property
    def gradient(self) -> Vector:
        """Of the function, in w, but for l1."""
        if self._gradient is None:
            self._gradient = self.model.l2 * self.w + self.pull
        return self._gradient

    @property
    def bound(self) -> float:
        """A lower bound of the model that u proves; without an l2, what it proves once it is made feasible."""
        excess = self._excess()
        if self.model.l2 > 0.0:
            return -self.envelope.conjugate - dot(excess, excess) / (2.0 * self.model.l2)
        return -self.envelope.conjugate - self._scaling(excess)

    def _excess(self) -> Vector:
        """What of -A'u is beyond l1."""
        down, l1 = -self.pull, self.model.l1
        return down - np.clip(down, -l1, l1) if l1 else down

    def _scaling(self, excess: Vector) -> float:
        """About what the bound loses when u is made smaller so that |A'u| <= l1."""
        largest = float(np.abs(excess).max(initial=0.0))
        return largest / (self.model.l1 + largest) * abs(self.objective())

    def objective(self) -> float:
        """The model at w and b."""
        if self._value is None:
            model = self.model
            value = model.phi.value_and_slope(model.shifted(self.f, self.b))[0]
            value += 0.5 * model.l2 * dot(self.w, self.w) + model.intercept_residual * self.b
            value += model.l1 * float(np.abs(self.w).sum()) if model.l1 else 0.0
            self._value = value if model.linear_term is None else value + dot(model.linear_term, self.w)
        return self._value

    def lacks(self) -> float:
        """The error of the subproblem, Omega(w) + Omega*(-A'u) + <w, A'u>: what solving it would take off the gap."""
        model = self.model
        if not model.l1:
            gradient = self.gradient
            return dot(gradient, gradient) / (2.0 * model.l2)
        excess = self._excess()
        within = -self.pull - excess
        unused = float(np.sum(np.abs(self.w) * model.l1 - self.w * within))
        if model.l2 > 0.0:
            away = model.l2 * self.w - excess
            return unused + dot(away, away) / (2.0 * model.l2)
        return unused + float(np.sum(np.abs(self.w * excess))) + self._scaling(excess)

    # -- Newton's method -------------------------------------------------------------------------

    def step(self) -> float:
        """A Newton step; how far it went along the direction, 0.0 where rounding forbids any.

        1 pass, and the Gram matrix of the rows at a kink, or their inner products where these are few, or a pass over
        them for each iteration of conjugate gradients.
        """
        model, curvature, gradient = self.model, self.envelope.curvature, self.gradient
        if model.l1:
            return self._step_of_columns()
        if model.inexact:
            rest = self.rest if model.free else None
            return self.go(*inexact_step(model.map, model.phi, curvature, model.l2, gradient, rest, FORCING))
        if model.rows is not None and self.w.size >= MANY and rank_of(curvature) <= FEW * self.w.size:
            return self.go(*self._step_by_rows(model.rows))
        hessian = model.kept.of(model, curvature, self.sigma, self.w.size)
        if not np.isfinite(hessian).all():
            return 0.0
        add_to_diagonal(hessian, model.l2)
        border, corner = None, 0.0
        if model.free:
            border, corner = model.map.rmatvec(curvature), float(model.phi.total(curvature)[0])
        both = newton_step(hessian, gradient, border, corner, self.rest, model.check)
        return self.go(both[: self.w.size], float(both[-1]) if model.free else 0.0)

    def _step_by_rows(self, rows: RowGram) -> tuple[Vector, float]:
        """In the inner products of all rows where these are few, else of those at a kink."""
        model, slope, curvature = self.model, self.envelope.slope, self.envelope.curvature
        if rows.parts.rows <= FEW * self.w.size:
            residual = model.intercept_residual if model.free else None
            quadratic = RowQuadratic(
                model.map,
                rows.matrix,
                vectors_of(curvature),
                self.f,
                slope,
                model.l2,
                model.linear_term,
                residual,
                model.check,
            )
        else:
            part = rows.parts.part(curvature)
            some, f = part.restrict(slope), part.restrict(self.f)
            quadratic = RowQuadratic(
                part.map,
                part.parts.products(),
                vectors_of(part.restrict(curvature)),
                f,
                some,
                model.l2,
                self.gradient - model.l2 * self.w - part.map.rmatvec(some),
                self.rest - float(part.phi.total(some)[0]) if model.free else None,
                model.check,
            )
        return quadratic.step(self.w, self.gradient, self.rest)

    def _step_of_columns(self) -> float:
        """To the minimum of a quadratic and l1 on a working set of columns; half a pass more for their Gram matrix."""
        model, w = self.model, self.w
        rows = RowwiseRisk(model.map, model.phi, model.free, w.size)
        away, worst = violation(self.pull, w, model.l1, model.l2)
        columns = chosen(away, w, max(COLUMNS, 2 * int(np.count_nonzero(w))), most=WIDEST)
        quadratic = GramModel(rows, rows.damped(self.envelope.curvature, self.damping), columns)
        found, shift, _ = quadratic.minimum(self.pull, w, model.l1, model.l2, LEFT * worst, model.check)
        step = np.zeros_like(w)
        step[columns] = found - w[columns]
        t = self.go(step, shift)
        if t < SHORT:
            self.damping = max(CALMER * self.damping, LEAST_DAMPING)
        elif t >= 1.0:
            self.damping = self.damping / CALMER if self.damping > LEAST_DAMPING else 0.0
        return t

    def go(self, step: Vector, shift: float) -> float:
        """Go along a step of w and b as far as the function falls; how far, as a share of the step. 1 pass."""
        model = self.model
        with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is not gone
            scores = model.map.matvec(step)
            whole = model.shifted(scores, shift)
            size = dot(step, step) + model.phi.product(whole, whole)
        if not math.isfinite(size):
            self.gain = 0.0
            return 0.0
        gradient = self.gradient
        slope = dot(gradient, step) + self.rest * shift
        if model.l1:
            slope += model.l1 * float(np.sum(np.where(self.w == 0.0, np.abs(step), np.sign(self.w) * step)))
        self.gain = -slope
        t = step_length(self._along(step, shift, whole), slope, flat=FLAT)
        if t > 0.0:
            self.w = self.w + t * step
            self.b += t * shift
            if self.careful:
                self.f = model.map.matvec(self.w)
                self.z = self._shifted_by(self.f, self.sigma, self.slope)
            else:
                self.f = self.f + t * scores
                self.z = self.z + t * whole
            self._look()
        return t

    def _along(self, step: Vector, shift: float, scores: Scores) -> Along:
        l2, curve = self.model.l2, self.model.phi.moreau_along(self.z, scores, self.sigma)
        ww, ws, ss = dot(self.w, self.w), dot(self.w, step), dot(step, step)
        linear = self.model.intercept_residual * shift
        linear += 0.0 if self.model.linear_term is None else dot(self.model.linear_term, step)

        def function(t: Vector) -> tuple[Vector, Vector]:
            (value, derivative), rate = curve(t), t * ss
            value, derivative = value + 0.5 * l2 * (ww + t * (2.0 * ws + rate)), derivative + l2 * (ws + rate)
            return (value + t * linear, derivative + linear) if linear else (value, derivative)

        return total(function, Aimed(self.model.l1, 0.0).along(self.w, step)) if self.model.l1 else function

    def _look(self) -> None:
        """Bring the envelope up to date, at the b where u sums to 0 if b is free; half a pass over what has changed."""
        before, self._value = self.envelope.slope, None
        self.envelope = self.model.phi.moreau(self.z, self.sigma)
        if self.model.free:
            self._centre()
        # most slopes stay where they are, and rows of 0 cost nothing
        self._set_risk_gradient(self.risk_gradient + self.model.map.rmatvec(self.envelope.slope - before))
        self.summed = False
        if self.lacks() < self._noise():
            self.sum()

    def sum(self) -> None:
        """Compute `risk_gradient` from the slopes of all rows; half a pass."""
        if not self.summed:
            self._reach = 0.0
            self._set_risk_gradient(self.model.map.rmatvec(self.envelope.slope))
            self.summed = True

    def _set_risk_gradient(self, risk_gradient: Vector) -> None:
        self.risk_gradient, self._gradient = risk_gradient, None
        self._reach = max(self._reach, dot(risk_gradient, risk_gradient))

    def _noise(self) -> float:
        """What the rounding of the differences that make `risk_gradient` may add to `lacks`."""
        if self.model.l2 > 0.0:
            return NOISE**2 * self._reach / (2.0 * self.model.l2)
        return NOISE * math.sqrt(self._reach) / self.model.l1 * abs(self.objective())

    # -- the free intercept ----------------------------------------------------------------------

    def _centre(self) -> None:
        first, phi = self.b, self.model.phi

        def trial(b: float) -> Trial:
            return self._trial(b, phi.moreau(self.model.shifted(self.z, b - first), self.sigma))

        one, other, share = newton_root(
            trial, self._trial(first, self.envelope), lambda at: float(phi.total(at.kept.curvature)[0])
        )
        self.b, self.rest, self.envelope = one.t, one.derivative, one.kept
        if share < 1.0:
            self.b, self.rest = share * one.t + (1.0 - share) * other.t, 0.0
            self.envelope = _mixed(one.kept, other.kept, share)
        self.z = self.model.shifted(self.z, self.b - first)

    def _trial(self, b: float, envelope: MoreauEnvelope) -> Trial:
        rest = float(self.model.phi.total(envelope.slope)[0]) + self.model.intercept_residual
        return Trial(b, envelope.value, rest, envelope)

    # -- rows near a kink ------------------------------------------------------------------------

    def near(self, width: float, most: float) -> AugmentedLagrangian | None:
        """The same function of the rows alone whose slopes can change when their scores do by width/sigma.

        The others give the linear term. None where these rows are more than `most` of all. Half a pass over them, and 2
        envelopes.
        """
        model = self.model
        parts = cast(RowGram, model.rows).parts
        weights = parts.curved_rows(self.z, self.sigma, width / self.sigma)
        if not 0 < model.map.active(weights) <= most * parts.rows:
            return None
        return self.restricted(parts.part(weights))

    def restricted(self, part: RowPart) -> AugmentedLagrangian:
        """The same function of some rows alone; the slopes of the others stay. Half a pass over them."""
        take = part.restrict
        slope = None if self.slope is None else take(self.slope)
        z = take(self.z)
        envelope = part.phi.moreau(z, self.sigma)
        risk_gradient = part.map.rmatvec(envelope.slope)
        intercept_residual = -float(part.phi.total(envelope.slope)[0]) + self.rest if self.model.free else 0.0
        model = Subproblem(
            part.map,
            part.phi,
            self.model.l1,
            self.model.l2,
            self.model.free,
            self.risk_gradient - risk_gradient,
            intercept_residual,
            cast(RowGram, self.model.rows).of(part),
            inexact=self.model.inexact,
            check=self.model.check,
        )
        return AugmentedLagrangian(
            model, self.sigma, slope, self.w, self.b, take(self.f), z, envelope, risk_gradient, self.rest
        )


def unit_of(phi: ScoreFunction, f: Scores) -> float:
    """The penalty with which the envelope has half the value of the loss: 1 for a hinge at score 0."""
    value = phi.value_and_slope(f)[0]
    unit, factor = 1.0, math.nan
    for _ in range(UNITS if 0.0 < value < math.inf else 0):
        share = phi.moreau(f, unit).value / value
        wanted = 4.0 if share < 0.5 else 0.25
        if wanted * factor == 1.0 or not 0.0 <= share <= 1.0:
            break
        factor = wanted
        unit *= factor
    return unit


def is_solved(state: AugmentedLagrangian, missing: float) -> tuple[bool, float]:
    """Whether the subproblem is solved, and its distance from optimality; `missing` is the last one."""
    lacks = state.lacks()
    if lacks <= NEAR * missing:
        missing = state.objective() - state.bound
    return lacks <= SHARE * (missing - lacks), missing


def _mixed(one: MoreauEnvelope, other: MoreauEnvelope, share: float) -> MoreauEnvelope:
    """Slopes mixed, with what is proved for both."""
    return MoreauEnvelope(
        share * one.value + (1.0 - share) * other.value,
        share * one.slope + (1.0 - share) * other.slope,
        other.curvature,
        share * one.conjugate + (1.0 - share) * other.conjugate,
    )
