"""Second-order models on few columns by their Gram matrix, minimised with l1 and l2: covariance updates.

Friedman, Hastie & Tibshirani 2010 (glmnet); Lee, Battle, Raina & Ng 2007 (feature-sign search).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blas_threads import lapack_threads
from bmrm.kernels.masters.soft_descent import gram_sweeps, violations
from bmrm.problem import Check, Scores, Vector, unchecked
from bmrm.solvers._core.newton.system import solve_positive
from bmrm.solvers._core.rowwise import RowwiseRisk

Matrix = NDArray[np.float64]
Columns = NDArray[np.int64]

SWEEPS = 60
"""Sweeps of coordinate descent between two linear systems for the coordinates in use."""
PRODUCTS = 1e8
"""Entries of the matrix that are visited between two checks of the clock."""
FORMED = 8.0
"""Products that take as long as an entry of a new matrix, whose memory is touched for the first time: some 20 ns."""
ROUNDS = 200
TINY = 1e-14
"""Damping of the diagonal of linear systems, relative to its largest entry."""
SOLUTIONS = 30
"""Most consecutive systems, each with one coordinate less, before coordinate descent visits all coordinates again; then
twice as many, since it may bring back more coordinates than these take out. Never more than there are in use, and one:
rounding may leave a system that takes none out."""
WORK = 1e10
"""Operations in linear systems after which the model is not solved further, since any step that decreases it is
valid."""
RIDGE = 1e-12
"""Damping of the diagonal, relative to its mean: columns may be empty, or have no curvature."""


class GramModel:
    """The second-order model of the loss at some scores, on few columns.

    Parameters
    ----------
    rows : the data and the loss.
    curvature : of every row, there.
    columns : increasing.
    """

    def __init__(self, rows: RowwiseRisk, curvature: Scores, columns: Columns) -> None:
        self.columns = columns
        self._total = 0.0
        total = float(rows.phi.total(curvature)[0])
        self.H = rows.map.gram(curvature, None if columns.size == rows.dim else columns)
        if rows.free and total > 0.0:
            self._total = total
            self._border = rows.map.rmatvec(curvature)[columns]
            self.H -= np.outer(self._border, self._border / total)
        diagonal = self.H.diagonal()
        ridge = RIDGE * float(diagonal.mean()) if diagonal.size else 0.0
        self.ridge = ridge if ridge > 0.0 else 1.0
        """What the diagonal is more than that of the model."""
        self.H.flat[:: columns.size + 1] += self.ridge

    @property
    def border(self) -> Vector:
        """The columns times the curvatures, with a free intercept."""
        return self._border

    def minimum(
        self, gradient: Vector, w: Vector, l1: float, l2: float, goal: float, check: Check
    ) -> tuple[Vector, float, float]:
        """The new weights of the columns, the step of the free intercept with them, and what is left to do."""
        check(FORMED * self.H.size)
        old = w[self.columns]
        new, left = minimum(self.H, gradient[self.columns], old, l1, l2, goal, check)
        return new, self._constant(new - old), left

    def constant(self, step: Vector) -> float:
        """The step of the free intercept with one of all weights, which is 0 outside the columns."""
        return self._constant(step[self.columns])

    def _constant(self, step: Vector) -> float:
        return -float(self._border @ step) / self._total if self._total else 0.0


def minimum(
    H: Matrix, q: Vector, w: Vector, l1: float, l2: float, goal: float, check: Check = unchecked
) -> tuple[Vector, float]:
    """argmin over x of <q, x - w> + 1/2 <x - w, H (x - w)> + l1 ||x||_1 + l2/2 ||x||^2, and what is left to do.

    Coordinate descent finds which coordinates are non-zero, and their signs; where it is slow, a linear system is
    solved for these. Both decrease the objective.

    Parameters
    ----------
    H : (n, n), positive semidefinite with a positive diagonal.
    goal : accepted violation of optimality in each coordinate.
    check : called between sweeps and linear systems, about ten times a second.
    """
    x: Vector = w.copy()
    q = q.copy()
    left, work, systems = math.inf, 0.0, SOLUTIONS
    for _ in range(ROUNDS):
        left = _swept(H, q, x, l1, l2, goal, check)
        if left <= goal or work > WORK:
            break
        for _ in range(min(systems, np.count_nonzero(x) + 1)):
            check()
            work += float(np.count_nonzero(x)) ** 3 / 3.0
            with np.errstate(over="ignore", invalid="ignore"):  # a curvature may be all but 0
                reached = _solved(H, q, x, l1, l2, check)
            if reached or work > WORK:
                break
        systems *= 2
        left = violations(q, x, l1, l2, np.empty_like(x))
        if left <= goal:
            break
    return x, left


def _swept(H: Matrix, q: Vector, x: Vector, l1: float, l2: float, goal: float, check: Check) -> float:
    """Coordinate descent, in batches of sweeps that take some tenths of a second."""
    step, left, most = max(1, int(PRODUCTS / H.size)) if H.size else SWEEPS, math.inf, SWEEPS
    while most > 0 and left > goal:
        check(float(H.size))
        left = gram_sweeps(H, q, x, l1, l2, goal, min(step, most))
        most -= step
    return left


def _solved(H: Matrix, q: Vector, x: Vector, l1: float, l2: float, check: Check) -> bool:
    """Move towards the minimum over the coordinates in use, with fixed signs; returns whether it was reached.

    Where coordinates would change their signs (feature-sign search, Lee et al. 2007), they stay at 0 and the others
    continue in the same direction as long as the objective falls: up to the first, the 2nd, 4th, ... sign change.
    """
    used = np.flatnonzero(x)
    if not used.size:
        return True
    old, signs, system = x[used], np.sign(x[used]), H[np.ix_(used, used)]
    system.flat[:: used.size + 1] += l2 + TINY * float(system.diagonal().max())
    slope = q[used] + l2 * old + l1 * signs
    diagonal = system.diagonal().copy()
    step = -solve_positive(system, slope, check)
    system.flat[:: used.size + 1] = diagonal
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(step * signs < 0.0, -old / step, np.inf)
    crossings = np.sort(reach[reach <= 1.0])
    if crossings.size:
        with lapack_threads(used.size):
            step = _bent(system, slope, old, step, reach, crossings)
    whole = np.zeros_like(x)
    whole[used] = step
    change = whole @ H
    if not np.all(np.isfinite(change)):  # so flat that the step is of no use
        return True
    x += whole
    q += change
    return not crossings.size


def _bent(system: Matrix, slope: Vector, x: Vector, step: Vector, reach: Vector, crossings: Vector) -> Vector:
    """The best of some steps along `step`, during which coordinates stop at 0; of `system` the upper triangle is used.

    The first is taken in any case: its decrease may be below rounding, but it removes a coordinate.
    """
    from scipy.linalg.blas import dsymv

    best, least, k = np.zeros_like(x), math.inf, 1
    while True:
        t = crossings[k - 1] if k <= crossings.size else 1.0
        moved = np.where(reach <= t, -x, t * step)
        value = float(moved @ (slope + dsymv(0.5, system.T, moved, lower=1)))
        if value >= least:
            return best
        best, least = moved, value
        if k > crossings.size:
            return best
        k *= 2
