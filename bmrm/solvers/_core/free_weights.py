"""Lower bounds where Omega leaves weights free: the dual point nearby whose slope is 0 in them.

    min J >= -phi*(s) - Omega*(-A's)   for slopes s with A_F's = 0,  F the free weights and the free intercept.

At a point of scores f the slopes phi'(f) are orthogonal to the columns F only at the minimum. Those of Newton's step z
in F, phi'(f) - H A_F z with H = phi''(f), are so everywhere, and differ little. They are brought into the domain of
phi* by one proximal step, far out, whose minimiser also has the conjugate: the bound is true for the slopes that come
out, if these are orthogonal up to rounding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blocks import separable
from bmrm.problem import BlockPenalty, Scored, ScoreFunction, Scores, Vector, ability
from bmrm.problem.abilities import Rounding
from bmrm.solvers._core.best import Best
from bmrm.solvers._core.rounding import Proof

FAR = 1e8
"""Length of the proximal step, in units of the scores over the slopes: errors of the scores come with its inverse."""
WIDEST = 3000
"""Most free weights, of which a dense matrix is made."""
ROUNDINGS = 256.0
"""Largest slope that counts as 0, in units of roundoff of what was added."""
TRIES = 4
EPS = float(np.finfo(np.float64).eps)


def free_proof(run: Best, penalty: BlockPenalty) -> Proof:
    """What the slopes near those of the best point prove; without a bound where that is nothing."""
    scored, rounding, free = ability(run.risk, Scored), ability(run.risk, Rounding), penalty.free
    if scored is None or rounding is None or not 0 < free.size <= WIDEST or not serves(scored.of_rows):
        return Proof()
    map, phi, w = scored.map, scored.of_rows, run.w
    f = map.matvec(w)
    if scored.intercept is not None:
        constants = scored.phi.attained(f)[1]
        f = f if constants is None else f + phi.constant(constants)
    value, slope = phi.value_and_slope(f)
    conjugate = phi.product(slope, f) - value
    sizes = ROUNDINGS * EPS * rounding.at(w).sizes
    intercept = scored.intercept is not None
    for attempt in range(TRIES + 1):
        a = map.rmatvec(slope)
        sums = float(phi.total(slope)[0]) if intercept else 0.0
        lost = ROUNDINGS * EPS * float(phi.magnitude(slope)[0])
        if np.all(np.abs(a[free]) <= sizes[free] + ROUNDINGS * math.ulp(0.0)) and abs(sums) <= lost:
            return _proof(run, penalty, a, conjugate, abs(value))
        if attempt == TRIES or not np.all(np.isfinite(a)):
            break
        z = _newton(scored, f, free, a[free], sums)
        if z is None:
            break
        wide = np.zeros(len(w))
        wide[free] = z[: free.size]
        step = map.matvec(wide)
        step = step + phi.constant(z[free.size :]) if intercept else step
        wanted = slope - phi.hessian_product(f, step)
        f = f - step
        envelope = phi.moreau(f + (FAR * phi.facts.mass) * wanted, 1.0 / FAR)
        slope, conjugate = envelope.slope, envelope.conjugate
    return Proof()


def serves(phi: ScoreFunction) -> bool:
    """Whether the slopes of this loss can prove a bound where weights are free."""
    facts = phi.facts
    return facts.smooth and facts.separable and facts.prox and facts.scores_per_row == 1 and facts.curved


def _newton(scored: Scored, f: Scores, free: NDArray[np.int64], a: Vector, sums: float) -> Vector | None:
    """The step in the free weights, and in the constant, whose slopes are 0; None where there is none."""
    map, phi = scored.map, scored.of_rows
    weights = phi.hessian_diagonal(f)
    matrix, right = map.gram(weights, free), a
    if scored.intercept is not None:
        border = map.rmatvec(weights)[free]
        matrix = np.block([[matrix, border[:, None]], [border[None], phi.total(weights)[None]]])
        right = np.append(a, sums)
    unit = np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
    level = matrix / np.outer(unit, unit)
    if not np.all(np.isfinite(level)):
        return None
    z, *_ = np.linalg.lstsq(level, right / unit, rcond=1e-13)
    found: Vector = z / unit
    return found


def _proof(run: Best, penalty: BlockPenalty, a: Vector, conjugate: float, value: float) -> Proof:
    arrays, down = tuple(penalty), -a
    down[penalty.free] = 0.0
    scale, infimum = float(separable.feasible(down, arrays)), run.risk.infimum
    if scale < 1.0 and not math.isfinite(infimum):
        return Proof()
    rest = (1.0 - scale) * infimum if scale < 1.0 else 0.0
    bound = rest - scale * conjugate - float(separable.conjugate(scale * down, arrays))
    if not math.isfinite(bound):
        return Proof()
    reach = float(np.linalg.norm(run.w))
    return Proof(bound, 2.0 * (abs(conjugate) + value) + abs(bound), reach, None, 1.0 - scale)
