"""Newton's steps on little data with nothing kept of them but where they end: there bookkeeping is most of the time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bmrm.problem import Check, Vector
from bmrm.solvers._core.newton.smooth_point import Objective
from bmrm.solvers._core.newton.system import add_to_diagonal, newton_step

MOST = 30
"""Most steps; those that come after them are steps of the run."""
HALVINGS = 10
"""Most of a step that makes J larger."""
ARMIJO = 1e-4
"""Least share of the predicted fall of J with which a step is taken."""
SHARE = 0.25
"""Share of the gap that is wanted with which they end."""
SETTLED = 1e-3
"""Derivative of J in the constant with which they may end: a search for the constant follows."""


class End(NamedTuple):
    """Weights and constant where the steps have led, how many, and the passes over the data that they took."""

    w: Vector
    b: float
    steps: int
    passes: float


def ahead(goal: Objective, l2: float, w: Vector, wanted: Callable[[float], float], most: int, check: Check) -> End:
    """Weights near the minimum of J.

    With Omega = l2/2 ||w||^2 the slopes at w prove J(w) - min J <= ||J'(w)||^2 / (2 l2), where J's derivative in the
    constant is 0: the steps end where that is `SHARE` of the gap that is wanted.

    Parameters
    ----------
    goal : what is minimised; of one score per row, with second derivatives.
    l2 : of the regularizer.
    w : (dim,), where to begin.
    wanted : the relative gap that is wanted where J is this.
    most : steps.
    check : called before each step.
    """
    map, phi, free = goal.map, goal.phi, goal.free
    f, b, passes = map.matvec(w), 0.0, 0.5
    value, slope = phi.value_and_slope(f)
    J = value + 0.5 * l2 * float(w @ w)
    steps = 0
    while steps < most:
        check()
        gradient, rest = map.rmatvec(slope) + l2 * w, float(phi.total(slope)[0]) if free else 0.0
        passes += 0.5
        with np.errstate(over="ignore"):
            size = float(gradient @ gradient)
        if not math.isfinite(size) or (size <= 2.0 * l2 * SHARE * wanted(J) * abs(J) and abs(rest) <= SETTLED):
            break
        curvature = phi.hessian_diagonal(goal.shifted(f, b))
        hessian = map.gram(curvature)
        add_to_diagonal(hessian, l2)
        border, corner = (map.rmatvec(curvature), float(phi.total(curvature)[0])) if free else (None, 0.0)
        if not np.isfinite(hessian).all():
            break
        step = newton_step(hessian, gradient, border, corner, rest)
        dw, db = step[: w.size], float(step[w.size]) if free else 0.0
        df = map.matvec(dw)
        passes += 1.5 + 0.5 * free
        fall, t = -(float(gradient @ dw) + rest * db), 1.0
        if not 0.0 < fall < math.inf:
            break
        for _ in range(HALVINGS):
            there = w + t * dw
            value, slope = phi.value_and_slope(goal.shifted(f + t * df, b + t * db))
            new = value + 0.5 * l2 * float(there @ there)
            if new <= J - ARMIJO * t * fall:
                break
            t *= 0.5
        else:
            break
        w, f, b, J, steps = there, f + t * df, b + t * db, new, steps + 1
    return End(w, b, steps, passes)
