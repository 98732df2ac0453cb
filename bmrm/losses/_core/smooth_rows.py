"""Proximal points of smooth losses: the root f of f - z + step * slope(f), by safeguarded Newton steps.

Compiled for one row: `householder`, one step of fourth order (an exponential costs more than the higher derivatives,
which are products of it), and `wright`, the root that losses of one exponential share. `smooth_points` is their NumPy
twin, for arrays and any loss with `slope` and `curvature`; not `numerics.roots`, since it seeks all rows at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bmrm.kernels.jit import jit
from bmrm.losses._core.prepared import Array

CLOSE = 1e-4
"""A fourth-order step up to this length ends within rounding of the root if no derivative exceeds the first one."""
STEPS = 50
"""Steps after which bisection takes over."""
ROUNDS = 200
ROUNDING = 2.3e-16


@jit
def householder(value: float, first: float, second: float, third: float) -> float:
    """How far back the root lies, from a function's value and its derivatives; Householder 1970, order 3."""
    over = value * (6.0 * first * first - 3.0 * value * second)
    return over / (6.0 * first * (first * first - value * second) + value * value * third)


@jit
def wright(a: float) -> tuple[float, float]:
    """(v, u) with u = exp(v) and v + u = a: u is the Wright omega function of a (Corless & Jeffrey 2002)."""
    if a < -40.0:
        return a, math.exp(a)
    if a < -3.0:
        v = a
    elif a < 3.0:
        v = 0.5 * (a - 1.0) - 0.0625 * (a - 1.0) * (a - 1.0)
    elif a < 1e30:
        v = math.log(a) * (a / (1.0 + a))
    else:
        return math.log(a), a
    while True:
        u = math.exp(v)
        back = householder(v - a + u, 1.0 + u, u, u)
        v -= back
        if abs(back) <= CLOSE:
            # u at the new v, by Taylor's series.
            return v, u * (1.0 - back * (1.0 - back * (0.5 - back / 6.0)))


def smooth_points(loss: Any, z: Array, step: Array | float, y: Array) -> tuple[Array, Array]:
    """The minimiser f of step * loss(f) + 1/2 (f - z)^2 in each row, and its derivative 1 / (1 + step * curvature(f)).

    The root lies between z and z - step * slope(z): a bracket grows from z by doubling, then Newton steps are taken in
    it, or its middle where they do not close in.

    Parameters
    ----------
    loss : with `slope(f, y)` and `curvature(f, y)`, convex and differentiable.
    z, step, y : (rows,), finite, step >= 0; a step of 0 gives z.
    """
    z, step = np.array(z, np.float64), np.broadcast_to(np.asarray(step, np.float64), np.shape(z))

    def height(f: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(f - z + step * loss.slope(f, y))

    def rate(f: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(1.0 / (1.0 + step * loss.curvature(f, y)))

    at = height(z)
    sign = np.sign(at)
    near, far, width = z.copy(), z - sign, np.ones_like(z)
    beyond = sign * height(far) <= 0.0
    while not beyond.all():
        near = np.where(beyond, near, far)
        width = np.where(beyond, width, 2.0 * width)
        far = np.where(beyond, far, z - sign * width)
        beyond = sign * height(far) <= 0.0
    f, last = near.copy(), np.abs(far - near)
    for _ in range(ROUNDS):
        at = height(f)
        near, far = np.where(sign * at > 0.0, f, near), np.where(sign * at > 0.0, far, f)
        new = f - np.where(np.isfinite(at), at, sign) * rate(f)
        slow = (sign * (near - new) < 0.0) | (sign * (new - far) < 0.0) | (np.abs(new - f) > 0.5 * last)
        new = np.where(slow, 0.5 * (near + far), new)
        last = np.abs(new - f)
        f = np.where(at == 0.0, f, new)
        if np.all(last <= ROUNDING * np.abs(f)):
            break
    f = np.where(step == 0.0, z, f)
    return f, rate(f)
