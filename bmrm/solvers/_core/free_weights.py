"""Lower bounds where Omega leaves weights free: the dual point nearby whose slope is 0 in them.

    min J >= -phi*(s) - Omega*(-A's)   for slopes s with A_F's = 0,  F the free weights and the free intercept.

At a point of scores f the slopes phi'(f) are orthogonal to the columns F only at the minimum. Those of Newton's step z
in F, phi'(f) - H A_F z with H = phi''(f), are so everywhere, and differ little. They are brought into the domain of
phi* by one proximal step, far out, whose minimiser also has the conjugate: the bound is true for the slopes that come
out, if these are orthogonal up to rounding.

Losses without a proximal map, such as those of several scores, have a second way: slopes at any scores are in the
domain, and those at the scores that Newton's steps in F lead to are orthogonal to A_F where these steps end at the
minimum.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blocks import separable
from bmrm.numerics.conjugate_gradients import ConjugateGradients
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
FALLS = 0.1
"""Share of the slopes in the free weights that a step of Newton's leaves at most, where another one is worth it."""
CURVED = 1e-13
"""Least second derivative in a direction, over the largest one met, that is not rounding."""
PRODUCTS = 300
"""Most products with the second derivative that such a step takes."""
EPS, TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


def free_proof(run: Best, penalty: BlockPenalty) -> Proof:
    """What the slopes near those of the best point prove; without a bound where that is nothing."""
    scored, rounding, free = ability(run.risk, Scored), ability(run.risk, Rounding), penalty.free
    if scored is None or rounding is None or not 0 < free.size <= WIDEST:
        return Proof()
    if not serves(scored.of_rows):
        return _stepped(run, scored, penalty, ROUNDINGS * EPS * rounding.at(run.w).sizes)
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


def _stepped(run: Best, scored: Scored, penalty: BlockPenalty, sizes: Vector) -> Proof:
    """What the slopes prove at the scores that Newton's steps in the free weights lead to.

    Parameters
    ----------
    sizes : (dim,), slopes that count as 0.
    """
    map, phi, free, w = scored.map, scored.phi, penalty.free, run.w.copy()
    if not (phi.facts.smooth and phi.facts.curved):
        return Proof()
    units, before = sizes[free] + math.ulp(0.0), math.inf
    for _ in range(TRIES + 1):
        f = map.matvec(w)
        value, slope = phi.value_and_slope(f)
        a = map.rmatvec(slope)
        with np.errstate(over="ignore"):  # slopes all but 0 are units of next to nothing
            left = float(np.abs(a[free] / units).max())
        if left <= 1.0:
            lost = ROUNDINGS * EPS * float(phi.magnitude(slope).sum())
            if scored.intercept is not None and np.any(np.abs(phi.total(slope)) > lost):
                break
            return _proof(run, penalty, a, phi.product(slope, f) - value, abs(value))
        if not left <= FALLS * before:
            break
        before = left
        z = _newton_by_products(scored, f, free, len(w), a[free], units)
        if z is None:
            break
        w[free] -= z
    return Proof()


def _newton_by_products(
    scored: Scored, f: Scores, free: NDArray[np.int64], dim: int, a: Vector, units: Vector
) -> Vector | None:
    """Newton's step in the free weights by conjugate gradients in these units; None where there is none."""
    map, phi = scored.map, scored.phi
    full = units > TINY
    # columns without entries keep their weights
    unit = np.divide(np.median(units[full]) if full.any() else 0.0, units, out=np.zeros_like(units), where=full)

    def product(step: Vector) -> Vector:
        wide = np.zeros(dim)
        wide[free] = unit * step
        return unit * map.rmatvec(phi.hessian_product(f, map.matvec(wide)))[free]

    search, z = ConjugateGradients(unit * a, lambda r: r), np.zeros(free.size)
    goal, largest = EPS * search.size, 0.0
    for _ in range(min(PRODUCTS, 2 * free.size + 10)):
        direction = search.direction
        bent = product(direction)
        curvature = float(direction @ bent) / max(float(direction @ direction), math.ulp(0.0))
        largest = max(largest, curvature)
        if not curvature > CURVED * largest:  # what all scores have in common, say
            break
        t = search.advance(bent)
        if t is None:
            break
        z += t * direction
        if not search.size > goal:
            break
    return unit * z if z.any() and np.all(np.isfinite(z)) else None


def serves(phi: ScoreFunction) -> bool:
    """Whether slopes brought into the domain of the conjugate of this loss can prove a bound where weights are free."""
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
    with np.errstate(over="ignore", invalid="ignore"):  # where the curvature of a column underflows
        level, right = matrix / np.outer(unit, unit), right / unit
        if not (np.all(np.isfinite(level)) and np.all(np.isfinite(right))):
            return None
        z, *_ = np.linalg.lstsq(level, right, rcond=1e-13)
        found: Vector = z / unit
    return found if np.all(np.isfinite(found)) else None


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
