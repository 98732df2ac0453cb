"""The minimum of a smooth loss over several constants added to the scores of all rows: Newton's method, damped.

In several dimensions there is no bracket, as of `numerics.bracket`: values decide, and sums where values tell no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blas_threads import lapack, lapack_threads
from bmrm.numerics.conjugate_gradients import ConjugateGradients
from bmrm.problem import Check, ScoreFunction, Scores, Vector
from bmrm.risk.constants.mixture import EPS, Point, point_at, vanishes

Array = NDArray[np.float64]
STEPS = 100
TRIALS = 60
"""Most step halvings of a line search; each trial is at most half as long as the one before."""
FALL = 1e-4
"""Sufficient decrease (Armijo): least decrease of the value, as a share of that predicted by the slope."""
FAST = 0.1
"""An old Hessian is kept while a step reduces the sums at least to this share."""
NOISE = 16.0 * EPS
"""Relative rounding error of a value."""
UNTOLD = 1e-8
"""Relative predicted decrease below which rounding decides the Armijo test on values: one on the gradient replaces it,
the sums must shrink."""
FEW = 128
"""Most constants for which the Hessian is decomposed (eigenvalues) at once."""
RIDGE = 1e-10
"""Damping of the Hessian, relative to its mean eigenvalue, so that flat directions have finite steps."""
ACCURATE, PRODUCTS = 1e-8, 100
"""Residual at which CG ends, as a share of the sums, and most Hessian products."""


@dataclass(frozen=True, eq=False)
class Curvature:
    """A second derivative in the constants, (K, K)."""

    matrix: Array

    @cached_property
    def spectrum(self) -> tuple[Vector, Array]:
        """The eigenvalues, not negative, and their directions, a column each; for 2,000 constants it takes seconds."""
        values, directions = np.linalg.eigh(self.matrix)
        return np.maximum(values, 0.0), directions

    @property
    def resolved(self) -> bool:
        """Whether the spectrum is at hand."""
        return "spectrum" in vars(self)


@dataclass
class Memory:
    """The second derivative of an earlier search, which need not be that of this one."""

    curvature: Curvature | None = None


def newton(
    phi: ScoreFunction, f: Scores, here: Point, memory: Memory, rounding: float, least: Vector, check: Check
) -> tuple[Point, bool]:
    """The best point found from `here` on, and whether the sums vanish there (`rounding` and `least` as of `vanishes`).

    The value falls with every step, but for rounding: sums alone say nothing, since they also shrink where the slope
    of a loss that rises linearly happens to sum to less.
    """
    for _ in range(STEPS):
        check()
        if vanishes(phi, here.slope, here.sums, rounding, least):
            return here, True
        fresh = memory.curvature is None
        if memory.curvature is None:
            matrix = second_derivative(phi, f + phi.constant(here.b), check)
            memory.curvature = Curvature(matrix) if np.all(np.isfinite(matrix)) else None
        step = None if memory.curvature is None else step_to_zero(memory.curvature, here, least, check)
        if step is None:
            memory.curvature = None
            break
        if fresh:
            after = _descent(phi, f, here, step, check)
            if after is None:
                break
            after = _farther(phi, f, here, after, check)
            if after.size > FAST * here.size:
                memory.curvature = None
            here = after
            continue
        after = point_at(phi, f, here.b + step)
        better = _better(here, after, float(step @ here.sums), 1.0)
        if not better or after.size > FAST * here.size:
            memory.curvature = None
        if better:
            here = after
    return here, vanishes(phi, here.slope, here.sums, rounding, least)


def _descent(phi: ScoreFunction, f: Scores, here: Point, step: Vector, check: Check) -> Point | None:
    """A point along the step where the value falls enough, or, where values tell no more, the sums; None without."""
    promised, length = float(step @ here.sums), 1.0
    for _ in range(TRIALS):
        check()
        after = point_at(phi, f, here.b + length * step)
        if _better(here, after, length * promised, 0.5):
            return after
        rise = after.value - here.value if after.finite else math.inf
        # Where the tangents meet, far enough inside: far from the minimum, losses are as good as piecewise linear.
        slope = float(step @ after.sums) if math.isfinite(rise) else 0.0
        share = (slope - rise / length) / (slope - promised) if slope > 0.0 else 0.0
        length *= min(max(share, 0.01), 0.5)
        if not np.any(here.b + length * step != here.b):
            return None
    return None


def _farther(phi: ScoreFunction, f: Scores, here: Point, after: Point, check: Check) -> Point:
    """`after`, or a point 2, 4, ... times as far, as long as the value falls and the sums along the step stay large.

    In an exponential tail Newton's steps are short, and values cost less than second derivatives.
    """
    while after.size > FAST * here.size:
        check()
        step = after.b - here.b
        beyond = point_at(phi, f, here.b + 2.0 * step)
        promised = float(step @ after.sums)
        if not (promised < 0.0 and beyond.finite and beyond.value - after.value <= 0.1 * promised):
            break
        after = beyond
    return after


def _better(here: Point, after: Point, promised: float, share: float) -> bool:
    """Whether the value falls as the slope promised; where values tell no more, whether that share of the sums is left.

    A second derivative of another search may promise far too much, and lead to where scores have lost their digits.
    """
    if not after.finite:
        return False
    rise = after.value - here.value
    if rise <= FALL * promised:
        return True
    silent = abs(rise) <= NOISE * abs(here.value) or -promised <= UNTOLD * abs(here.value)
    return silent and after.size <= share * here.size


def step_to_zero(curvature: Curvature, here: Point, least: Vector, check: Check) -> Vector | None:
    """Newton's step; None where the sums are but rounding, `least`.

    Nothing along directions in which the sums are no more than that: flat ones, as a shift of all classes, or of some
    that are compared only with each other, would be followed for ever.
    """
    ridge = RIDGE * max(float(np.trace(curvature.matrix)), here.size) / len(here.b)
    step = None
    if len(here.b) > FEW and not curvature.resolved:
        step = _by_products(curvature.matrix, ridge, here, float(least.max()), check)
    if step is None:
        check()
        step = _by_spectrum(curvature, ridge, here, float(least.max()))
    return step if np.all(np.isfinite(step)) and step @ here.sums < 0.0 else None


def _by_spectrum(curvature: Curvature, ridge: float, here: Point, least: float) -> Vector:
    values, directions = curvature.spectrum
    sums = directions.T @ here.sums
    sums[np.abs(sums) <= least] = 0.0
    with np.errstate(divide="ignore"):  # no second derivative at all: no step
        shares = np.divide(-sums, values + ridge, out=np.zeros_like(sums), where=sums != 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(directions @ shares, np.float64)


def _by_products(matrix: Array, ridge: float, here: Point, least: float, check: Check) -> Vector | None:
    """By conjugate gradients, which end before they follow flat directions; None where they take long.

    Then a spectrum takes no longer, which no check can end.
    """
    diagonal = matrix.diagonal() + ridge
    if not diagonal.min() > 0.0:
        return None
    gradients = ConjugateGradients(-here.sums, lambda residual: residual / diagonal)
    step, goal = np.zeros_like(here.sums), max(least, ACCURATE * here.size)
    for _ in range(PRODUCTS):
        if np.abs(gradients.residual).max() <= goal:
            return step
        check()
        direction = gradients.direction
        length = gradients.advance(matrix @ direction + ridge * direction)
        if length is None:
            break
        step = step + length * direction
    return None


def inverse_of(matrix: Array, check: Check) -> Array:
    """The inverse of a second derivative in the constants, for sums that have no part along its flat directions."""
    size = len(matrix)
    if size > FEW:  # of a pseudoinverse, which a check cannot end, a factor takes a tenth
        mean = float(np.trace(matrix)) / size
        raised = matrix + RIDGE * mean * np.eye(size)
        if np.abs(matrix.sum(axis=1)).max() <= size * EPS * mean:  # a common shift is flat, and would cost digits
            raised += mean / size
        functions = lapack()
        with lapack_threads(size):
            factor, failed = functions.dpotrf(raised, lower=1, overwrite_a=1)
        check()
        if not failed:
            with lapack_threads(size):
                lower = np.tril(functions.dpotri(factor, lower=1)[0])
            return np.asarray(lower + np.tril(lower, -1).T)
    with np.errstate(over="ignore", invalid="ignore"):
        inverse = np.asarray(np.linalg.pinv(matrix, hermitian=True))
    return inverse if np.all(np.isfinite(inverse)) else np.zeros_like(matrix)  # all but flat in every direction


def second_derivative(phi: ScoreFunction, at: Scores, check: Check) -> Array:
    """That in constants added to the scores `at`, (K, K): in one pass, or one for each constant."""
    if phi.facts.hessian_total:
        return phi.hessian_total(at)
    columns = []
    for unit in np.eye(phi.facts.scores_per_row):
        check()
        columns.append(phi.total(phi.hessian_product(at, phi.constant(unit))))
    inner = np.array(columns)
    return np.asarray(0.5 * (inner + inner.T))
