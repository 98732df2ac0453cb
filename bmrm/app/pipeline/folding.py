"""What moving far features back costs: the intercept of a model is rounded, and J is said of the model that results."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Regularizer, Solution, Status, Vector
from bmrm.problem.risk import ROUNDING

if TYPE_CHECKING:
    from bmrm.risk.intercept import FreeIntercept

Table = NDArray[np.float64]
SPLIT = 2.0**27 + 1.0
"""Factor of Dekker's split of a float64 into two halves whose products are exact."""


def as_folded(
    solution: Solution, risk: FreeIntercept, omega: float, folded: Vector, weights: Table, shift: Vector, solver: Any
) -> Solution:
    """The solution with J of the model, where that is more than J before the intercept was rounded.

    Its status is STALLED where the gap is then beyond what the solver was asked for.

    Parameters
    ----------
    solution : a point of `risk`.
    omega : the value of the regularizer there.
    folded : the intercept of the model, for features that are not moved.
    weights : of the features.
    shift : by which features are less in `risk` than in the model.
    solver : that made it.
    """
    constants = unfolded(folded, weights, shift)
    if not np.isfinite(constants).all():
        return solution
    phi = risk.phi.phi
    value, _ = phi.value_and_slope(risk.map.matvec(solution.w) + phi.constant(constants))
    objective = omega + value
    if not objective > solution.objective + ROUNDING * abs(solution.objective):
        return solution
    found = replace(solution, objective=objective)
    goal = getattr(solver, "goal", None)
    if found.converged and goal is not None and found.relative_gap > goal(objective):
        return replace(found, status=Status.STALLED)
    return found


def unfolded(folded: Vector, weights: Table, shift: Vector) -> Vector:
    """`folded` + `shift` @ `weights`, each number rounded once: they cancel."""
    far = np.flatnonzero(shift)
    columns = weights[far].reshape(far.size, -1).T
    return np.array([math.fsum((b, *_products(shift[far], w))) for b, w in zip(folded, columns, strict=True)])


def _products(a: Vector, b: Vector) -> list[float]:
    """Numbers whose sum is that of the products, exactly but for underflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = a * b
        (a1, a2), (b1, b2) = _halves(a), _halves(b)
        rest = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return [*product.tolist(), *rest.tolist()]


def _halves(a: Vector) -> tuple[Vector, Vector]:
    large = SPLIT * a
    high = large - (large - a)
    return high, a - high


def without_common(solution: Solution, risk: FreeIntercept, regularizer: Regularizer, scores: int) -> Solution:
    """The solution without what the weights of all scores have in common.

    A loss of differences between scores does not see it, but rounding does: in features of 1e14 gradients that
    should cancel leave so much that scores have no digits.

    Parameters
    ----------
    scores : per row.
    """
    table = solution.w.reshape(-1, scores)
    w = (table - table.mean(axis=1, keepdims=True)).ravel()
    value, constants = risk.phi.attained(risk.map.matvec(w))
    objective, bound = value + regularizer.value(w), solution.lower_bound
    risk.settled.note(w, constants, objective)  # the model gets these, not others that a run has met with equal weights
    if 0.0 < bound - objective <= ROUNDING * abs(objective):  # J was rounded differently when the bound was cut to it
        bound = objective
    return replace(solution, w=w, objective=objective, lower_bound=bound)
