"""The linear systems of Newton's method in many dimensions, by conjugate gradients on products with the Hessian."""

from __future__ import annotations

import numpy as np

from bmrm.kernels.products.vectors import dot, norm
from bmrm.numerics.conjugate_gradients import ConjugateGradients
from bmrm.problem import LinearMap, ScoreFunction, Scores, Vector
from bmrm.solvers._core.newton.preconditioners import jacobi

LONGEST = 500
"""Most iterations: beyond, the point is better evaluated again."""


def inexact_step(
    map: LinearMap,
    phi: ScoreFunction,
    curvature: Scores,
    l2: float,
    gradient: Vector,
    rest: float | None,
    share: float,
) -> tuple[Vector, float]:
    """About -H^-1 g of the weights, H = A' C A + l2, and of a free intercept.

    An iteration is a pass over the rows whose curvature is not 0; H is preconditioned by its diagonal.

    Parameters
    ----------
    map, phi : A, and the loss, which adds up curvatures.
    curvature : C, of scores.
    l2, gradient : as named.
    rest : derivative with respect to a free intercept, which is eliminated; None where there is none.
    share : of the gradient's length that the residual may have.
    """
    border, corner = None, 0.0
    if rest is not None:
        corner = float(phi.total(curvature)[0])
        border = map.rmatvec(curvature) if corner > 0.0 else None  # without curvature along it, leave it
    if border is not None and rest is not None:
        gradient = gradient - border * (rest / corner)
    step, goal = np.zeros_like(gradient), share * norm(gradient)
    eliminated = 0.0 if border is None else border**2 / corner
    cg = ConjugateGradients(-gradient, jacobi(map.diagonal(curvature), l2, eliminated))
    for _ in range(LONGEST):
        if not (cg.size > 0.0 and norm(cg.residual) > goal):
            break
        along = cg.direction
        product = map.gram_product(curvature, along) + l2 * along
        if border is not None:
            product -= border * (dot(border, along) / corner)
        t = cg.advance(product)
        if t is None:
            break
        step += t * along
    shift = 0.0 if border is None or rest is None else -(rest + dot(border, step)) / corner
    return step, shift
