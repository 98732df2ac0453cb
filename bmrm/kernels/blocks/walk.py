"""One lambda of least squares with a sum over blocks: block coordinate descent until the duality gap is small enough.

A block with a norm is minimised exactly (`exact`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blocks.descent import block_minimum, gram_dot
from bmrm.kernels.blocks.exact import LAZY, group_minimum, has_minimum
from bmrm.kernels.blocks.separable import block_length, conjugate, distance_block, feasible, soft, value
from bmrm.kernels.jit import jit, specialised
from bmrm.kernels.products.columns import dense_add, dense_dot

Floats = NDArray[np.float64]

SWEEPS, ACTIVE = 5, 10
"""Sweeps over the blocks in use between two extrapolations (Bertrand & Massias 2021); and times of that between two
sweeps over all blocks."""
TINY, MARGIN = 1e-200, 1e-14
"""Least sum of squares whose root is taken as it is; and what lengths may be rounded by, relative to them."""
REGULAR = 1e-10
"""Regularisation of the system for the coefficients, relative to its trace."""


class History(NamedTuple):
    """Where sweeps over the blocks in use leave what they have reached.

    Attributes
    ----------
    points, states : (sweeps + 1, columns) and (sweeps + 1, size of r).
    shares, system : (sweeps,) and (sweeps, sweeps), for work.
    """

    points: Floats
    states: Floats
    shares: Floats
    system: Floats


class Target(NamedTuple):
    """When a point is good enough, and how near to optimal its blocks are made at first.

    Attributes
    ----------
    value, infimum : of the loss at weights of 0, and its infimum.
    relative, absolute : the gap that is allowed, of the objective.
    longest : most that slopes are scaled by.
    share, sharper : accuracy of the first descent, relative to what the gap allows; the factor of the next.
    rounds, sweeps : descents at most, and sweeps over all blocks in each.
    """

    value: float
    infimum: float
    relative: float
    absolute: float
    longest: float
    share: float
    sharper: float
    rounds: int
    sweeps: int


column_dot, column_add = dense_dot, dense_add
"""Functions that the templates below call; `specialised` replaces them."""


def block_step(columns, block, first, basis, penalty, goal, w, r, work):  # type: ignore[no-untyped-def]
    """Minimise over a block, unless it is nearly optimal; its distance from that."""
    starts, coordinates, strengths, l1, l2 = penalty[:5]
    slope, v, at, after = work[0], work[1], work[2], work[3]
    begin, end = starts[block], starts[block + 1]
    for p in range(begin, end):
        k = coordinates[p]
        slope[k] = first[k] + column_dot(columns, k, r)
        v[k] = -slope[k]
    away = distance_block(block, w, v, penalty)
    if away <= LAZY * goal:
        return away
    if end - begin == 1:
        k = coordinates[begin]
        curvature = basis.eigenvalues[begin]
        at[k] = soft(curvature * w[k] - slope[k], l1[k] + strengths[block]) / (curvature + l2[k])
    elif not has_minimum(block, basis, penalty) or group_minimum(block, w, slope, basis, penalty, v, at, after) < 0.0:
        block_minimum(block, w, basis, penalty, slope, v, at, after)
    for p in range(begin, end):
        k = coordinates[p]
        step = at[k] - w[k]
        if step != 0.0:
            w[k] = at[k]
            column_add(columns, k, step, r)
    return away


step_dense = specialised(block_step, jit, column_dot=dense_dot, column_add=dense_add)
step_gram = specialised(block_step, jit, column_dot=gram_dot, column_add=dense_add)
step_of = step_dense


@jit
def shares_of(points, count, shares, system):  # type: ignore[no-untyped-def]
    """The affine combination of the last changes of `points` with the least length, by Gauss; whether there is one."""
    trace = 0.0
    for i in range(count):
        for j in range(i + 1):
            total = 0.0
            for k in range(points.shape[1]):
                total += (points[i + 1, k] - points[i, k]) * (points[j + 1, k] - points[j, k])
            system[i, j] = total
            system[j, i] = total
        trace += system[i, i]
    if not 0.0 < trace < np.inf:
        return False
    for i in range(count):
        system[i, i] += REGULAR * trace
        shares[i] = trace
    for i in range(count):  # positive definite: no pivots
        for j in range(i + 1, count):
            factor = system[j, i] / system[i, i]
            for k in range(i, count):
                system[j, k] -= factor * system[i, k]
            shares[j] -= factor * shares[i]
    total = 0.0
    for i in range(count - 1, -1, -1):
        for k in range(i + 1, count):
            shares[i] -= system[i, k] * shares[k]
        shares[i] /= system[i, i]
        total += shares[i]
    if not (total != 0.0 and abs(total) < np.inf):
        return False
    for i in range(count):
        shares[i] /= total
    return True


def decrease(columns, first, penalty, w, r, ahead, there):  # type: ignore[no-untyped-def]
    """J(w) - J(ahead)."""
    fallen = value(w, penalty) - value(ahead, penalty)
    for k in range(w.size):
        step = ahead[k] - w[k]
        if step != 0.0:
            fallen -= step * (first[k] + 0.5 * (column_dot(columns, k, r) + column_dot(columns, k, there)))
    return fallen


decrease_dense = specialised(decrease, jit, column_dot=dense_dot)
decrease_gram = specialised(decrease, jit, column_dot=gram_dot)
decrease_of = decrease_dense


def extrapolate(columns, first, penalty, w, r, history):  # type: ignore[no-untyped-def]
    """Move w and r to the affine combination of the last sweeps with the least change, if J falls by that."""
    points, states, shares, system = history.points, history.states, history.shares, history.system
    count = shares.size
    if not shares_of(points, count, shares, system):
        return
    ahead, there = points[0], states[0]
    for k in range(w.size):
        total = 0.0
        for i in range(count):
            total += shares[i] * points[i + 1, k]
        ahead[k] = total if w[k] != 0.0 else 0.0
    for k in range(r.size):
        total = 0.0
        for i in range(count):
            total += shares[i] * states[i + 1, k]
        there[k] = total
    for k in range(w.size):  # that was 0 at the last sweep, and not before
        if w[k] == 0.0:
            total = 0.0
            for i in range(count):
                total += shares[i] * points[i + 1, k]
            if total != 0.0:
                column_add(columns, k, -total, there)
    if decrease_of(columns, first, penalty, w, r, ahead, there) > 0.0:
        w[:] = ahead
        r[:] = there


extrapolate_dense = specialised(extrapolate, jit, column_add=dense_add, decrease_of=decrease_dense)
extrapolate_gram = specialised(extrapolate, jit, column_add=dense_add, decrease_of=decrease_gram)
extrapolate_of = extrapolate_dense


def sweep_to(columns, first, basis, penalty, goal, most, w, r, work, used, history):  # type: ignore[no-untyped-def]
    """Sweep over all blocks, and over those in use, until a sweep over all finds none farther than `goal`."""
    starts, coordinates = penalty[0], penalty[1]
    count, sweeps, visits = 0, 0, 0
    while sweeps < most:
        worst, count = 0.0, 0
        sweeps += 1
        for block in range(starts.size - 1):
            worst = max(worst, step_of(columns, block, first, basis, penalty, goal, w, r, work))
            for p in range(starts[block], starts[block + 1]):
                if w[coordinates[p]] != 0.0:
                    used[count] = block
                    count += 1
                    break
        if worst <= goal:
            break
        for _ in range(ACTIVE):
            history.points[0] = w
            history.states[0] = r
            for inner in range(SWEEPS):
                worst = 0.0
                for p in range(count):
                    worst = max(worst, step_of(columns, used[p], first, basis, penalty, goal, w, r, work))
                visits += 1
                if worst <= goal:
                    break
                history.points[inner + 1] = w
                history.states[inner + 1] = r
            if worst <= goal:
                break
            extrapolate_of(columns, first, penalty, w, r, history)
    return visits + sweeps


sweep_dense = specialised(sweep_to, jit, step_of=step_dense, extrapolate_of=extrapolate_dense)
sweep_gram = specialised(sweep_to, jit, step_of=step_gram, extrapolate_of=extrapolate_gram)
sweep_of = sweep_dense


@jit
def most_feasible(v, penalty, longest):  # type: ignore[no-untyped-def]
    """A number s up to `longest` with Omega*(s v) finite, the largest up to rounding."""
    starts, coordinates, strengths, l1, l2 = penalty[:5]
    scale, sparse = longest, False
    for block in range(strengths.size):
        first, last = starts[block], starts[block + 1]
        total, kinked = 0.0, strengths[block] == 0.0
        for p in range(first, last):
            j = coordinates[p]
            kinked |= l1[j] > 0.0
            total += v[j] * v[j]
        if first == last or (l2[coordinates[first]] > 0.0 and strengths[block] > 0.0):
            continue
        if kinked or not TINY < total < np.inf:
            sparse |= total != 0.0
            continue
        most = strengths[block] * (1.0 - MARGIN)
        if total * scale * scale > most * most:
            scale = most / math.sqrt(total)
    if sparse:
        scaled = np.empty_like(v)
        for j in range(v.size):
            scaled[j] = scale * v[j]
        scale *= feasible(scaled, penalty)
    return scale


@jit
def best_bound(at, square, product, v, penalty, longest):  # type: ignore[no-untyped-def]
    """The best of the bounds by the slopes times s, for s = 1 and for the one that is best where Omega* is 0.

    phi - s <q, w> - square / 2 (s - 1)^2 - Omega*(-s q), with -q in v, and <q, w> and the value as they are given.
    """
    curved = False
    for j in range(v.size):
        curved |= penalty[4][j] > 0.0
    s, best = most_feasible(v, penalty, longest), -np.inf
    if curved:
        best = at - product - conjugate(v, penalty)
    s = min(s, 1.0 - product / square if square > 0.0 else 1.0)
    if s > 0.0:
        rest = 0.0
        if curved:
            scaled = np.empty_like(v)
            for j in range(v.size):
                scaled[j] = s * v[j]
            rest = conjugate(scaled, penalty)
        best = max(best, at - s * product - 0.5 * square * (s - 1.0) ** 2 - rest)
    return best


def walk_to(columns, first, basis, penalty, target, w, r, work, used, history):  # type: ignore[no-untyped-def]
    """Descend until the gap on these columns is small enough; the descents that it took.

    Parameters
    ----------
    columns : a Gram matrix, or the columns themselves, as rows.
    first : the slopes at weights of 0.
    basis : `BlockGrams`, all of them decomposed.
    penalty : tuple of a `BlockPenalty` of these columns.
    target : what is enough.
    w, r : the weights, and the columns times them; kept up to date.
    work : (4, columns).
    used : (blocks,), for work.
    """
    starts, share, v = penalty[0], target.share, work[1]
    for rounds in range(target.rounds):
        half, product, steepest, length = 0.0, 0.0, 0.0, 0.0
        for k in range(w.size):
            q = first[k] + column_dot(columns, k, r)
            v[k] = -q
            half += 0.5 * (first[k] + q) * w[k]
            product += q * w[k]
        for block in range(starts.size - 1):
            steepest = max(steepest, block_length(block, v, penalty))
            length += block_length(block, w, penalty)
        at = max(target.value + half, target.infimum)
        objective = at + value(w, penalty)
        allowed = max(target.relative * abs(objective), target.absolute)
        lower = best_bound(at, 2.0 * (at - target.infimum), product, v, penalty, target.longest)
        if objective - lower <= allowed or not objective < np.inf:
            return rounds
        goal = steepest * math.sqrt(target.relative)
        if length > 0.0:
            goal = min(goal, allowed / length)
        sweep_of(columns, first, basis, penalty, share * goal, target.sweeps, w, r, work, used, history)
        share *= target.sharper
    return target.rounds


walk_dense = specialised(walk_to, jit, column_dot=dense_dot, sweep_of=sweep_dense)
walk_gram = specialised(walk_to, jit, column_dot=gram_dot, sweep_of=sweep_gram)
