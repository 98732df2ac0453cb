"""Newton's method for smooth losses of one score, which are functions of one row."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from bmrm.kernels.jit import fast_jit, specialised
from bmrm.kernels.rows import little
from bmrm.kernels.rows.little import CENTRED, CENTRING
from bmrm.losses._core.prepared import NO_WEIGHTS
from bmrm.problem import Vector
from bmrm.problem.abilities import AtPoint, ReachedAtOnce
from bmrm.risk.little.rows import HALVINGS, MOST_DAMPING, SHARE, SUMS, Goal, Rows, damped, rounding


@cache
def _kernels(value_slope: Any, curvature: Any) -> Any:
    return specialised(little.fall, fast_jit, value_slope=value_slope, curvature=curvature)


def kernel_of(loss: Any) -> Any:
    """`bmrm.kernels.rows.little.fall` for a loss whose value and derivatives are functions of one row."""
    of: Any = type(loss)
    return _kernels(of.value_slope.compiled, of.curvature.compiled)


def newton(rows: Rows, goal: Goal, start: AtPoint | None) -> ReachedAtOnce | None:
    """Newton's method from 0, or elsewhere, with Armijo steps; None where it does not get there.

    A bound is that of the slopes at w: J(w) - ||J'(w)||^2 / (2 l2), at the constant where they sum to 0. Without steps
    no matrix of weights x weights is formed.
    """
    kernel = kernel_of(rows.loss.loss)
    X, (_, l2, free, wanted, most), mass, y = rows.X, goal, rows.mass, rows.loss.y
    arguments, weights = rows.loss.arguments, NO_WEIGHTS if rows.loss.weights is None else rows.loss.weights
    n, d = X.shape
    there, shift, g, h, ones = np.zeros((5, n))
    a, x, H, factor = np.empty(d), np.empty(d + 1), np.empty((d + 1, d + 1) if most else (0, 0)), 1.0 / mass
    ones[:] = 1.0
    w, (b,) = rows.begin(start)
    f, still = rows.scores(w, b), (float(w @ w), 0.0, 0.0)

    def looked(by: Vector, t: float, most: int, omega: tuple[float, float, float], J: float, slope: float) -> Any:
        return kernel(f, by, t, most, y, weights, mass, l2, omega, J, slope, there, g, h, *arguments)

    _, J, size, total, bent = looked(shift, 0.0, 1, still, math.inf, 0.0)
    damping = 0.0
    for steps in range(most + 1):
        if not math.isfinite(J):
            return None
        enough = SHARE * wanted(J) if steps < most else math.inf
        if damping > 0.0:
            h += damping * (bent / n or 1.0)
        rest, lacks, _, length, *along, slope = little.direction(X, g, h, w, factor, l2, free, enough, a, x, shift, H)
        if lacks <= enough:
            f = rows.scores(w, b)
            move, omega = 0.0, (length, 0.0, 0.0)
            for _ in range(CENTRING):
                _, J, size, total, bent = looked(ones, move, 1, omega, math.inf, 0.0)
                f, there = there, f
                b, move = b + move, -total / bent if bent > 0.0 else 0.0
                if not free or abs(total) <= CENTRED * mass or b + move == b:
                    break
            rest, lacks, *_ = little.direction(X, g, h, w, factor, l2, free, math.inf, a, x, shift, H)
            away = math.sqrt(2.0 * lacks / l2)
            slack = rounding(rows, w, b, g, f, l2, size, away)
            bound = J - lacks - slack - (abs(rest) * (1.0 + abs(b)) if free else 0.0)
            if J - bound <= wanted(J) and (not free or abs(rest) <= SUMS):
                return ReachedAtOnce(w, np.array([b]), J, bound, steps, 2.0 * steps + 1.5)
            if steps == most:
                return None
            rest, lacks, _, length, *along, slope = little.direction(X, g, h, w, factor, l2, free, -1.0, a, x, shift, H)
        if not -math.inf < slope < 0.0:
            return None
        t, J, size, total, bent = looked(shift, 1.0, HALVINGS, (length, *along), J, slope)
        while t == 0.0:  # rows without curvature promise too much, too far away
            if damping >= MOST_DAMPING:
                return None
            damping = damped(damping, t)
            _, J, size, total, bent = looked(shift, 0.0, 1, (length, 0.0, 0.0), math.inf, 0.0)
            h += damping * (bent / n or 1.0)
            *_, length, a_0, a_1, slope = little.direction(X, g, h, w, factor, l2, free, -1.0, a, x, shift, H)
            t, J, size, total, bent = looked(shift, 1.0, HALVINGS, (length, a_0, a_1), J, slope)
        damping = damped(damping, t)
        f, there = there, f
        w += t * x[:d]
        b += t * float(x[d])
    return None
