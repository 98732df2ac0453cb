"""The simplex method for linear programs of few rows and many columns, from a basis at hand."""

from __future__ import annotations

import numpy as np

from bmrm.kernels.jit import jit

EPS = float(np.finfo(np.float64).eps)
PIVOTS, STEEP_PIVOTS = 300, 60
IDLE = 2
"""Most pivots without progress, for each row. Then rounding is the limit, and the present basis, a feasible one, is
returned."""
LEAST = 1e-12
"""Smallest entry of a direction, for columns of size 1, with which a variable may leave the basis."""
UPDATES = 20
"""Updates of the inverse before it is computed anew."""


@jit
def pivoted(table, costs, goal, basis):  # type: ignore[no-untyped-def]
    """max over shares >= 0 of <costs, shares> with shares' table = goal: changes `basis`, and returns its inverse.

    Rows of `table` are the columns of the program; `basis` are those at work, and is to be feasible. Raises
    LinAlgError where rounding has made it singular.
    """
    n = basis.size
    inverse = np.linalg.inv(table[basis])
    highest, idle, updates = -np.inf, 0, 0
    for pivot in range(PIVOTS):
        prices = np.zeros(n)
        largest = 0.0
        for k in range(n):
            cost = costs[basis[k]]
            largest = max(largest, abs(cost))
            for i in range(n):
                prices[i] += inverse[i, k] * cost
        noise = 16.0 * EPS * (largest + np.abs(prices).max())
        idle = 0 if prices[n - 1] > highest + noise else idle + 1
        highest = max(highest, prices[n - 1])
        enter, most = -1, noise
        for j in range(costs.size):
            reduced = costs[j]
            for i in range(n):
                reduced -= table[j, i] * prices[i]
            if reduced > most:
                enter, most = j, reduced
                if pivot > STEEP_PIVOTS:
                    break  # Bland's rule, the first one that helps, ends the cycles that ties can cause
        if enter < 0 or idle > IDLE * n:
            break
        direction, shares = np.zeros(n), np.zeros(n)
        for i in range(n):
            for k in range(n):
                direction[k] += table[enter, i] * inverse[i, k]
                shares[k] += goal[i] * inverse[i, k]
        leave, least = -1, np.inf
        for k in range(n):
            if direction[k] > LEAST:
                least = min(least, (max(shares[k], 0.0) + 4.0 * EPS) / direction[k])
        for k in range(n):
            if direction[k] <= LEAST or max(shares[k], 0.0) > least * direction[k]:
                continue
            # Of those that are all but equal the largest, which keeps the basis regular; late Bland's rule again.
            if leave < 0 or (basis[k] < basis[leave] if pivot > STEEP_PIVOTS else direction[k] > direction[leave]):
                leave = k
        if leave < 0:
            break
        basis[leave] = enter
        updates += 1
        if updates == UPDATES:
            inverse, updates = np.linalg.inv(table[basis]), 0
            continue
        for i in range(n):
            inverse[i, leave] /= direction[leave]
        for k in range(n):
            if k != leave:
                for i in range(n):
                    inverse[i, k] -= direction[k] * inverse[i, leave]
    return np.linalg.inv(table[basis]) if updates else inverse
