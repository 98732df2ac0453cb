"""The laws of a regularizer's master problem, against Kelley's method on Omega itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.checks.functions import Array
from bmrm.checks.report import Violation
from bmrm.kernels.products.vectors import norm
from bmrm.problem import Master

Infima = tuple[float, ...]
BOX = 1e3
"""Entries of w are no larger while Omega is not yet known well."""
ROUNDS = 200


def closes(regularizer: Any, dim: int, infima: Infima) -> Iterator[Violation]:
    """The bound is below the minimum and, unless the solution says otherwise, as near to J(w) as was asked for."""
    rng = np.random.default_rng(6)
    n, K = 12, len(infima)
    A = _around(rng, n, dim) * (1.0 + _slope_near_zero(regularizer, dim))
    b, block = rng.normal(size=n), np.arange(n) % K
    best = minimum(regularizer, A, b, block, infima)
    if best is None:
        return
    master = _filled(regularizer, A, b, block, infima)
    size = max(abs(best), 0.1)
    for accuracy in (1e-2, 1e-9):
        solution = master.solve(accuracy)
        w = np.asarray(solution.w)
        value = regularizer.value(w) + _model(A, b, block, infima, w)
        where, bound = f"{n} planes, infima {infima}, accuracy {accuracy:g}", solution.lower_bound
        if bound > best + 1e-7 * size:
            text = f"lower_bound {bound:.10g} is above the minimum, {best:.10g}"
            yield Violation("master", where, bound - best, text, (A, b))
        if solution.exact and value - bound > max(1.01 * accuracy, 1e-6) * size:
            text = f"J(w) = {value:.10g} and lower_bound {bound:.10g} are further apart than the accuracy"
            yield Violation("master", where, value - bound, text, (A, b))


def same_when_hot(regularizer: Any, dim: int) -> Iterator[Violation]:
    """Planes removed and added one by one lead to what the planes that are left do; and more planes, a higher bound."""
    rng = np.random.default_rng(8)
    A, b, block, infima = rng.normal(size=(30, dim)), rng.normal(size=30), np.arange(30) % 2, (0.0, -2.0)
    hot = _filled(regularizer, A[:20], b[:20], block[:20], infima)
    hot.solve(1e-9)
    hot.remove(hot.planes.ids[3:9].tolist())
    bounds = []
    for row, offset, k in zip(A[20:], b[20:], block[20:]):
        hot.add(row, float(offset), int(k))
        bounds.append(hot.solve(1e-9).lower_bound)
    kept = np.r_[0:3, 9:30]
    solution = _filled(regularizer, A[kept], b[kept], block[kept], infima).solve(1e-9)
    cold = solution.lower_bound
    if solution.exact and abs(bounds[-1] - cold) > 1e-7 * max(abs(cold), 1e-2):
        text = f"after planes went and came the bound is {bounds[-1]:.10g}, from the same planes at once {cold:.10g}"
        yield Violation("master", "", abs(bounds[-1] - cold), text, (A, b))
    falls = -float(np.min(np.diff(bounds)))
    if falls > 1e-6:
        yield Violation("master", "", falls, f"with one more plane the bound fell by {falls:.3g}", (A, b))


def minimum(
    regularizer: Any, A: Array, b: Array, block: NDArray[np.int64], infima: Infima, goal: float = 1e-7
) -> float | None:
    """min over w of Omega(w) + sum over blocks of max_j (<a_j, w> + b_j), by cvxopt; None where that takes too long.

    Omega is replaced by its tangent planes (Kelley 1960), so that nothing but value and subgradient are needed.
    """
    from cvxopt import matrix, solvers

    (n, d), K = A.shape, len(infima)
    known = np.flatnonzero(np.isfinite(infima))
    # variables w, omega, xi; a box holds the first iterations
    rows = [np.hstack([A, np.zeros((n, 1)), -np.equal.outer(block, np.arange(K)).astype(float)])]
    rows.append(np.hstack([np.zeros((len(known), d + 1)), -np.eye(K)[known]]))
    rows.append(np.hstack([np.eye(d), np.zeros((d, 1 + K))]))
    rows.append(-rows[-1])
    right = [-b, -np.array(infima)[known], np.full(2 * d, BOX)]
    cost = np.r_[np.zeros(d), np.ones(1 + K)]
    options = {"show_progress": False, "abstol": 0.01 * goal, "reltol": 0.01 * goal, "feastol": 0.01 * goal}
    w, best = np.zeros(d), np.inf
    for _ in range(ROUNDS):
        value, g = regularizer.value(w), regularizer.subgradient(w)
        best = min(best, value + _model(A, b, block, infima, w))
        rows.append(np.r_[g, -1.0, np.zeros(K)][None])
        right.append(np.array([g @ w - value]))
        found = solvers.lp(*map(matrix, (cost, np.vstack(rows), np.concatenate(right))), options=options)
        if found["status"] != "optimal":
            return None
        if best - found["primal objective"] <= goal:
            return float(best)
        w = np.array(found["x"]).ravel()[:d]
    return None


def _around(rng: np.random.Generator, n: int, dim: int) -> Array:
    """Slopes on all sides of the origin, so that the model is bounded without an infimum."""
    if dim == 2:
        angle = 2.0 * np.pi * np.arange(n) / n
        return np.stack([np.cos(angle), np.sin(angle)], axis=1) * rng.uniform(2.0, 3.0, size=(n, 1))
    some = rng.normal(size=(n // 2, dim))
    return np.concatenate([some, -some])


def _slope_near_zero(regularizer: Any, dim: int) -> float:
    """How steep planes must be to matter: as steep as Omega one step from 0."""
    return norm(regularizer.subgradient(np.eye(1, dim)[0]))


def _model(A: Array, b: Array, block: NDArray[np.int64], infima: Infima, w: Array) -> float:
    return float(sum(max([infimum, *(A @ w + b)[block == k]]) for k, infimum in enumerate(infima)))


def _filled(regularizer: Any, A: Array, b: Array, block: NDArray[np.int64], infima: Infima) -> Master:
    master: Master = regularizer.master(A.shape[1], infima)
    for row, offset, k in zip(A, b, block):
        master.add(row, float(offset), int(k))
    return master
