"""Maximise b'alpha over a product of simplices with |A alpha| <= 1: a primal simplex method that stays hot.

The linear program is the dual of the bundle method's master for L1, in units where lambda is 1; a new plane is a new
column, so the last basis stays feasible and the last multipliers a lower bound. Every feature is an equation
r_i = <A_i, alpha> with -1 <= r_i <= 1. The basis is a set of planes P (the multipliers that may be positive) and the
features S that stand at a bound, one plane more than features for each block; its matrix M, with a row for each plane
of P, has a column for the sum of each block and one for each feature of S. Then

    M' alpha_P = (1, sign_S),        M (-xi, w_S) = -b_P

give the multipliers and the primal point: xi the level of each block, w the weights. A plane above the level of its
block may enter, and a feature of S whose weight has the wrong sign may leave its bound; Devex weights (Harris 1973)
choose among them. M is small (the number of non-zero weights) and dense, so its inverse is kept: a step over q basic
planes, n planes and p features costs O(q^2 + q p + n q).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit
from bmrm.kernels.masters.dense_inverse import times
from bmrm.kernels.masters.lp_basis import (
    Basis,
    Exchange,
    PivotRow,
    Program,
    pivot,
    ratio_test,
    renew,
    stand,
    times_columns,
    way,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

AGE = 500
"""Steps after which the inverse is computed anew."""
WRONG = 1e-10
"""Largest distance of a feature in S from its bound; a larger one shows that the inverse has become inaccurate."""
INFEASIBLE = 1e-7
"""Largest violation of the bounds of multipliers and features before the basis is given up."""
ROUNDING = 1e-15
"""Relative gain, in terms of the largest offset, level or weight, up to which a step is rounding."""
PATIENCE = 30
"""Steps of length 0 after which variables enter in random order."""

DONE, NEEDS_ROOM, STUCK = 0, 1, 2


class Gains(NamedTuple):
    """Per plane (n,) and per feature (p,), what entering the basis would gain, and the Devex weights."""

    above: Floats
    weight: Floats
    wrong: Floats
    weightf: Floats


class Direction(NamedTuple):
    """Where a step leads: alpha_P - theta fall (room,), and r + theta drift (p,)."""

    fall: Floats
    r: Floats
    drift: Floats


@fast_jit
def price(program: Program, basis: Basis, s: int, w: Floats, gains: Gains) -> tuple[float, float]:
    """All gains, and w, from X: how far planes are above the level of their block, how wrong the weights' signs are.

    Returns the objective, and the gain below which there is only rounding.
    """
    K, n = program.K, program.n
    q = K + s
    right, point = np.empty(q), np.empty(q)
    for t in range(q):
        right[t] = program.b[basis.P[t]]
    times(basis.X, q, right, point)
    size = max(np.abs(right).max(), np.abs(point).max())
    objective = 0.0
    for k in range(K):
        objective += point[k]
    w[:] = 0.0
    for i in range(s):
        weight = -point[K + i]
        wrong = weight * basis.sign[i]
        w[basis.S[i]] = weight
        gains.wrong[basis.S[i]] = wrong
        objective -= wrong
    times_columns(basis.columns, n, s, point[K:], gains.above)
    for j in range(n):
        above = program.b[j] - gains.above[j] - point[program.block[j]]
        gains.above[j] = above if basis.wherep[j] < 0 else 0.0
    return objective, ROUNDING * size


@fast_jit
def choose(program: Program, basis: Basis, s: int, gains: Gains, least: float, seed: int) -> tuple[float, int, int]:
    """The duality gap, and who enters: a plane, or the place of a feature in S that leaves its bound; -1 for neither.

    The largest gain against its reference weight (Devex), with a `seed` times a random number; no gain up to `least`.
    """
    top = np.zeros(program.K)
    gap = 0.0
    most = 0.0
    enters = -1
    leaves = -1
    for j in range(program.n):
        gain = gains.above[j]
        if gain > least:
            k = program.block[j]
            top[k] = max(top[k], gain)
            merit = gain * gain / gains.weight[j]
            if seed:
                seed = (seed * 1103515245 + 12345) % 2147483648
                merit *= (seed + 1.0) / 2147483648.0
            if merit > most:
                most = merit
                enters = j
    for k in range(program.K):
        gap += top[k]
    for i in range(s):
        gain = gains.wrong[basis.S[i]]
        if gain > least:
            gap += 2.0 * gain
            merit = gain * gain / gains.weightf[basis.S[i]]
            if seed:
                seed = (seed * 1103515245 + 12345) % 2147483648
                merit *= (seed + 1.0) / 2147483648.0
            if merit > most:
                most = merit
                leaves = i
    return gap, (-1 if leaves >= 0 else enters), leaves


@fast_jit
def reprice(program: Program, basis: Basis, s: int, row: PivotRow, price: float, scale: float, gains: Gains) -> None:
    """Gains and Devex weights after a step of which the variable that left the basis is known by its row.

    It changes at the rate column[j] - <(1 at its block, row j in S), u> per unit of plane j and -sign u per unit of a
    feature of S; `slope` is that rate for the variable that enters, `price` its gain by `slope`, `scale` its weight.
    """
    K = program.K
    u, column, slope = row
    rate = np.empty(program.n)
    times_columns(basis.columns, program.n, s, u[K:], rate)
    for j in range(program.n):
        if basis.wherep[j] < 0:
            change = column[j] - rate[j] - u[program.block[j]]
            gains.above[j] -= price * change
            change /= slope
            gains.weight[j] = max(gains.weight[j], change * change * scale)
    for i in range(s):
        change = -basis.sign[i] * u[K + i]
        feature = basis.S[i]
        gains.wrong[feature] -= price * change
        change /= slope
        gains.weightf[feature] = max(gains.weightf[feature], change * change * scale)


@fast_jit
def advance(
    program: Program, basis: Basis, s: int, enters: int, leaves: int, direction: Direction, gains: Gains
) -> tuple[int, float, int]:
    """One step: the way, how far, prices and the basis after it.

    Returns (DONE, NEEDS_ROOM or STUCK where there is no end to the way; what the objective has gained; the new s).
    """
    K, n = program.K, program.n
    fall, r, drift = direction
    q = K + s
    way(program, basis, s, enters, leaves, fall, drift)
    theta, out, hit = ratio_test(
        basis.alpha, fall, q, r, drift, program.size, basis.wheres, 2.0 if leaves >= 0 else np.inf
    )
    if theta == np.inf:
        return STUCK, 0.0, s
    if hit >= 0 and leaves < 0 and q == basis.P.size:
        return NEEDS_ROOM, 0.0, s
    first = basis.S[leaves] if leaves >= 0 else 0
    gain = gains.wrong[first] if leaves >= 0 else gains.above[enters]
    scale = gains.weightf[first] if leaves >= 0 else gains.weight[enters]
    for t in range(q):
        basis.alpha[t] -= theta * fall[t]
    for i in range(r.size):
        r[i] += theta * drift[i]
    if out < 0 and hit < 0:
        # from one bound to the other
        basis.sign[leaves] = -basis.sign[leaves]
        r[first] = basis.sign[leaves]
        gains.wrong[first] = -gain
        return DONE, theta * gain, s
    u, column = np.empty(q), np.zeros(n)
    slope = 0.0
    if hit >= 0:
        slope = drift[hit]
        r[hit] = 1.0 if slope > 0.0 else -1.0
        entries = np.empty(q)
        for j in range(n):
            column[j] = program.rows[j, hit]
        for t in range(q):
            entries[t] = column[basis.P[t]]
        times(basis.X, q, entries, u)
    else:
        slope = -fall[out]
        for k in range(q):
            u[k] = basis.X[k, out]
    row, cost = PivotRow(u, column, slope), gain / slope
    reprice(program, basis, s, row, cost, scale, gains)
    rest = max(scale / (slope * slope), 1.0)
    if hit >= 0:
        gains.wrong[hit] = -abs(cost)
        gains.weightf[hit] = rest
    else:
        gains.above[basis.P[out]] = cost
        gains.weight[basis.P[out]] = rest
    if leaves < 0:
        gains.above[enters] = 0.0
    s = pivot(program, basis, s, Exchange(enters, leaves, out, hit), fall, row, theta)
    return DONE, theta * gain, s


@fast_jit
def solve_simplex_lp(
    program: Program, basis: Basis, s: int, age: int, w: Floats, accuracy: float, limit: int
) -> tuple[int, int, int, float, int]:
    """Improve a feasible basis until the duality gap is within `accuracy` of the objective, or rounding rules.

    Parameters
    ----------
    basis : changed; `wherep`, `wheres` and `X` must be right on entry.
    s : number of features in the basis.
    age : steps since X was made anew.
    w : (p,), set to the weights.
    limit : steps at most.

    Returns
    -------
    (code, s, age, gap, steps) : DONE, NEEDS_ROOM where the arrays of `basis` must grow, or STUCK where the basis is
        singular or infeasible, or the limit is reached.
    """
    n, p, room = program.n, w.size, basis.P.size
    direction = Direction(np.empty(room), np.empty(p), np.empty(p))
    gains = Gains(np.empty(n), np.ones(n), np.zeros(p), np.ones(p))
    for j in range(n):
        for i in range(s):
            basis.columns[j, i] = program.rows[j, basis.S[i]]
    steps = 0
    idle = 0
    objective, least = 0.0, 0.0
    # 0: gains follow from the last step; 1: they are exact; 2: alpha and r are to be made anew, too
    state = 2
    while True:
        if age >= AGE:
            if not renew(program, basis, s):
                return STUCK, s, AGE, np.inf, steps
            age = 0
            state = 2
        if state == 2:
            error, outside = stand(program, basis, s, direction.r)
            if age > 0 and max(error, outside) > WRONG:
                age = AGE
                continue
            if outside > INFEASIBLE:
                return STUCK, s, AGE, np.inf, steps
            objective, least = price(program, basis, s, w, gains)
            state = 1
        gap, enters, leaves = choose(program, basis, s, gains, least, steps + 1 if idle > PATIENCE else 0)
        if gap <= accuracy * abs(objective) or (enters < 0 and leaves < 0) or steps >= limit:
            if state == 1:
                return (STUCK if steps >= limit else DONE), s, age, gap, steps
            objective, least = price(program, basis, s, w, gains)
            state = 1
            continue
        code, gain, s = advance(program, basis, s, enters, leaves, direction, gains)
        if code == NEEDS_ROOM:
            return NEEDS_ROOM, s, age, gap, steps
        if code == STUCK:
            if age == 0:
                return STUCK, s, AGE, gap, steps
            age = AGE
            continue
        idle = 0 if gain > ROUNDING * abs(objective) else idle + 1
        objective += gain
        steps += 1
        age += 1
        state = 0
