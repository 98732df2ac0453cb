"""Maximise c'alpha - 1/2 alpha' G alpha over a product of simplices: a primal active-set method in compiled code.

The support (the variables that may be positive) carries a Cholesky factor of its part of the Hessian from call to
call. A step is a Newton step on the support with the sums of the blocks held, cut at the first variable that reaches
zero, which then leaves; when the support is optimal the most violated variable enters. Each change costs
O(support^2 + n support). The Hessian is G + shift within blocks, which changes nothing on the simplices and makes it
regular where G has a zero row, plus a ridge of 1e-14 of its diagonal for planes that are alike: so the direction is
inexact, but the step along it is exact and feasible, and the objective never falls.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit, inlined, jit
from bmrm.kernels.masters.simplex_variables import QuadraticProgram
from bmrm.kernels.masters.support_factor import Factor, delete, join, lower_solve, small_solve, upper_solve

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STALLED = 40
"""Changes of the support without progress after which rounding is taken to be the limit."""
SHARE = 1e-3
"""Share of the gap that must be gained in as many changes of the support as there are variables (and STALLED more),
else the solution ends: at a lower rate the limit of changes would be reached first."""

DONE, NEEDS_ROOM = 0, 1


class StopRule(NamedTuple):
    """When a solution is good enough, or has cost enough.

    The duality gap may be `accuracy` of the objective, or `noise` times the largest ||a_j||^2 of the support; the
    support may change `limit` times.
    """

    accuracy: float
    noise: float
    limit: int


@inlined
def direction(qp: QuadraticProgram, factor: Factor, s: int, v: Floats, level: Floats, d: Floats) -> float:
    """Newton's direction d on the support and the slope along it; `level` is the mean plane value per block."""
    alpha, block, blocks = qp.alpha, qp.block, level.size
    support, L, U = factor
    for p in range(s):
        d[p] = v[support[p]] - level[block[support[p]]]
    lower_solve(L, s, d)
    M = np.empty((blocks, blocks))
    x = np.empty(blocks)
    for k in range(blocks):
        u = U[k]
        total = 0.0
        for p in range(s):
            total += u[p] * d[p]
        x[k] = total
        for j in range(k + 1):
            other = U[j]
            total = 0.0
            for p in range(s):
                total += u[p] * other[p]
            M[k, j] = total
            M[j, k] = total
    small_solve(M, x, blocks)
    for k in range(blocks):
        u = U[k]
        for p in range(s):
            d[p] -= x[k] * u[p]
    upper_solve(L, s, d)
    # rounding leaves block sums that are not zero when planes are alike
    x[:] = 0.0
    for p in range(s):
        x[block[support[p]]] += d[p]
    slope = 0.0
    for p in range(s):
        d[p] -= x[block[support[p]]] * alpha[support[p]]
        slope += d[p] * (v[support[p]] - level[block[support[p]]])
    return slope


@inlined
def add_rows(G: Floats, support: Ints, weights: Floats, s: int, q: Floats) -> None:
    """q += the first entries of sum_p weights[p] G[support[p]], four rows at a time."""
    n = q.size
    p = 0
    while p + 4 <= s:
        r0, r1, r2, r3 = G[support[p]], G[support[p + 1]], G[support[p + 2]], G[support[p + 3]]
        a, b, c, d = weights[p], weights[p + 1], weights[p + 2], weights[p + 3]
        for i in range(n):
            q[i] += (a * r0[i] + b * r1[i]) + (c * r2[i] + d * r3[i])
        p += 4
    while p < s:
        row = G[support[p]]
        a = weights[p]
        for i in range(n):
            q[i] += a * row[i]
        p += 1


@inlined
def refresh(G: Floats, c: Floats, n: int, alpha: Floats, v: Floats) -> None:
    """v = c - G alpha, the values of the planes times lambda."""
    for i in range(n):
        v[i] = c[i]
    for j in range(n):
        a = alpha[j]
        if a != 0.0:
            row = G[j]
            for i in range(n):
                v[i] -= a * row[i]


@jit
def values_of_planes(G: Floats, c: Floats, n: int, alpha: Floats, v: Floats) -> None:
    """`refresh` for callers that are not compiled; what is inlined would be compiled in every process."""
    refresh(G, c, n, alpha, v)


@inlined
def duality_gap(qp: QuadraticProgram, support: Ints, s: int, v: Floats, top: Floats) -> float:
    """The gap sum_k max v - alpha'v, times lambda."""
    alpha, block = qp.alpha, qp.block
    top[:] = -np.inf
    for i in range(v.size):
        if v[i] > top[block[i]]:
            top[block[i]] = v[i]
    gap = 0.0
    for p in range(s):
        gap += alpha[support[p]] * (top[block[support[p]]] - v[support[p]])
    return gap


@inlined
def survey(
    qp: QuadraticProgram, support: Ints, s: int, c: Floats, v: Floats, level: Floats, top: Floats
) -> tuple[float, float, float]:
    """The objective, the gap that the support alone shows, and the largest diagonal entry of the support.

    `level` gets the mean plane value per block, `top` the largest of the support.
    """
    alpha, block, blocks = qp.alpha, qp.block, level.size
    mass = np.zeros(blocks)
    level[:] = 0.0
    top[:] = -np.inf
    objective = 0.0
    largest = 0.0
    for p in range(s):
        j = support[p]
        k = block[j]
        level[k] += alpha[j] * v[j]
        mass[k] += alpha[j]
        top[k] = max(top[k], v[j])
        objective += 0.5 * alpha[j] * (c[j] + v[j])
        largest = max(largest, qp.diagonal[j])
    inside = 0.0
    for p in range(s):
        inside += alpha[support[p]] * (top[block[support[p]]] - v[support[p]])
    for k in range(blocks):
        if mass[k] > 0.0:
            level[k] /= mass[k]
    return objective, inside, largest


@fast_jit
def solve_simplex_qp(
    variables: tuple[Any, ...],
    factors: tuple[Any, ...],
    s: int,
    shift: float,
    c: Floats,
    v: Floats,
    moved: Floats,
    rule: tuple[Any, ...],
) -> tuple[int, int, float, float, float, int]:
    """Improve a feasible alpha until the duality gap is small enough, or rounding rules.

    Parameters
    ----------
    variables : the fields of a `QuadraticProgram` of n variables; alpha, feasible on entry, and `where` change.
    factors : those of a `Factor`; the first `s` of the support are in it; changed.
    shift : what was added to G within blocks when the factor was made.
    c : (n,), as in the objective.
    v : (n,), c - G alpha on entry (see `refresh`) and on exit; it may differ by rounding of G, so that a caller who
        knows better values gets the correction that they ask for.
    moved : (n,), zero on entry; what was added to alpha, to more digits than alpha itself can show.
    rule : the fields of a `StopRule`.

    Returns
    -------
    (code, s, shift, gap, objective, changes) : DONE, or NEEDS_ROOM where `factor` must grow before going on.
    """
    qp, factor, stop = QuadraticProgram(*variables), Factor(*factors), StopRule(*rule)
    G, block, alpha, where, support = qp.G, qp.block, qp.alpha, qp.where, factor.support
    n, room, blocks = v.size, len(factor.L), len(factor.U)
    d = np.empty(room)
    cosine = np.empty(room)
    sine = np.empty(room)
    level = np.zeros(blocks)
    top = np.empty(blocks)
    q = np.empty(n)
    banned = np.zeros(n)
    for j in range(n):
        if alpha[j] > 0.0 and where[j] < 0:
            if s == room:
                return NEEDS_ROOM, s, shift, np.inf, 0.0, 0
            shift = join(qp, factor, s, shift, j)
            s += 1
    changes = 0
    idle = 0
    repeats = 0
    tight = False
    since = -1
    mark = 0.0
    while True:
        objective, inside, largest = survey(qp, support, s, c, v, level, top)
        goal = max(stop.accuracy * abs(objective), stop.noise * largest)
        given_up = changes >= stop.limit or idle > STALLED
        slope = 0.0
        if inside > (0.0 if tight else 0.5 * goal) and repeats < 3 and not given_up:
            slope = direction(qp, factor, s, v, level, d)
        if slope > 0.0:
            longest = np.inf
            leaver = -1
            for p in range(s):
                if d[p] < 0.0:
                    ratio = -alpha[support[p]] / d[p]
                    if ratio < longest:
                        longest = ratio
                        leaver = p
            q[:] = 0.0
            add_rows(G, support, d, s, q)
            curvature = 0.0
            for p in range(s):
                curvature += d[p] * q[support[p]]
            t = longest
            if curvature > 0.0 and slope < longest * curvature:
                t = slope / curvature
                leaver = -1
            for p in range(s):
                j = support[p]
                alpha[j] = max(alpha[j] + t * d[p], 0.0)
                moved[j] += t * d[p]
            for i in range(n):
                v[i] -= t * q[i]
            gain = t * (slope - 0.5 * t * curvature)
            if gain > 1e-17 * abs(objective):
                idle = 0
                tight = False
                banned[:] = 0.0
            else:
                idle += 1
            if leaver >= 0:
                j = support[leaver]
                alpha[j] = 0.0
                if t == 0.0:
                    banned[j] = 1.0
                    tight = True
                delete(where, factor, s, leaver, cosine, sine)
                s -= 1
                changes += 1
                repeats = 0
            else:
                repeats += 1
            continue
        # optimal on the support, as far as rounding lets see: the most violated plane enters
        gap = duality_gap(qp, support, s, v, top)
        if gap <= goal or given_up:
            return DONE, s, shift, gap, objective, changes
        if since < 0 or changes - since > STALLED + n:
            if since >= 0 and objective - mark <= SHARE * gap:
                return DONE, s, shift, gap, objective, changes
            since = changes
            mark = objective
        best = 0.0
        enters = -1
        for i in range(n):
            if where[i] < 0 and banned[i] == 0.0 and v[i] - level[block[i]] > best:
                best = v[i] - level[block[i]]
                enters = i
        if enters < 0 and not tight:
            tight = True
            continue
        if enters < 0:
            return DONE, s, shift, gap, objective, changes
        if s == room:
            return NEEDS_ROOM, s, shift, gap, objective, changes
        shift = join(qp, factor, s, shift, np.int64(enters))
        s += 1
        changes += 1
        idle += 1
        repeats = 0
