"""The master of L2: a quadratic program over simplices, by an active set that stays hot.

    min over w:      lambda/2 ||w||^2 + sum_k max(floor_k, max over planes j of block k of <a_j, w> + b_j)
    max over alpha:  b'alpha - ||A alpha||^2 / (2 lambda),  alpha in a product of simplices,  w = -A alpha / lambda

(eq. 10-12 of Teo, Smola, Vishwanathan & Le, KDD 2007). The kernel sees both sides times lambda, and the planes only
through their Gram matrix, which grows by one row of products per plane; so planes may live on other ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bmrm.kernels.simplex_qp import DONE, solve_simplex_qp
from bmrm.kernels.simplex_variables import conclude, enlarge
from bmrm.kernels.vectors import dot, plain
from bmrm.masters.roster import Roster
from bmrm.problem import MasterSolution, Planes, Vector

EPS = float(np.finfo(np.float64).eps)
NOISE = 4.0 * EPS
"""Rounding of the Gram matrix, relative to its largest diagonal entry in use."""
ROUNDS = 6
"""Refinements at most, when the Gram matrix is too coarse for the accuracy asked."""
AGE = 2000
"""Changes of the support after which its factor is made anew."""


class SimplexQP:
    """min over w of lambda/2 ||w||^2 + the model of the planes (the protocol `Master`).

    A solution starts from the multipliers, the support and the factor of the last one. Where rounding of the Gram
    matrix (eps ||a||^2 / lambda) exceeds the accuracy asked, plane values are taken afresh from w and the correction
    is solved for, so that accuracy 0 means: as near as float64 allows. The lower bound is evaluated at
    w = -combine(alpha) / lambda, never from the Gram matrix, whose rounding could flatter.

    Parameters
    ----------
    planes : where the planes live; only `products`, `combine`, `plane`, `ids` and `floors` are used.
    lam : lambda > 0.
    blocks : number of terms of the model, that of `planes.floors`.
    """

    def __init__(self, planes: Planes, lam: float, blocks: int = 1) -> None:
        if blocks != len(planes.floors):
            raise ValueError(f"{blocks} blocks but {len(planes.floors)} floors")
        self._planes = planes
        self._lam = lam
        self._blocks = blocks
        self._roster = Roster(planes)
        # variables: the finite floor planes first, then the planes of the roster
        floors = [k for k in range(blocks) if math.isfinite(planes.floors[k])]
        self._first = self._n = len(floors)
        self._G = np.zeros((0, 0))
        self._diagonal = self._b = self._alpha = np.zeros(0)
        self._block = self._where = np.zeros(0, dtype=np.int64)
        self._resize(16 + 2 * self._n)
        self._G[: self._n, : self._n] = 0.0
        self._diagonal[: self._n] = 0.0
        self._b[: self._n] = [planes.floors[k] for k in floors]
        self._block[: self._n] = floors
        self._alpha[: self._n] = 1.0
        self._where[: self._n] = -1
        # the factor of the support
        self._size = self._age = 0
        self._shift = 1.0
        self._support = np.zeros(0, dtype=np.int64)
        self._L, self._U = np.zeros((0, 0)), np.zeros((blocks, 0))
        self._make_room(16)

    def add(self, plane: int) -> None:
        """Take plane `plane`: one product with all planes."""
        a, b, block = self._roster.add(plane)
        row = plain(self._roster.pick(self._planes.products(a)))
        j = self._n
        if j == len(self._b):
            self._resize(j + j // 2)
        enlarge(self._G, self._diagonal, self._b, self._block, self._where, self._alpha, j, row, b, block)
        self._n = j + 1

    def remove(self, planes: Sequence[int]) -> None:
        """Forget planes; their multipliers go to the rest of their block."""
        broken = False
        for plane in planes:
            place, end = self._roster.remove(plane)
            j, last = self._first + place, self._first + end
            broken = broken or bool(self._where[j] >= 0 or self._alpha[j] > 0.0)
            if j != last:
                self._G[j, :last] = self._G[last, :last]
                self._G[:last, j] = self._G[j, :last]
                self._G[j, j] = self._diagonal[last]
                for array in (self._diagonal, self._b, self._block, self._alpha, self._where):
                    array[j] = array[last]
                if self._where[j] >= 0:
                    self._support[self._where[j]] = j
            self._n = last
        if broken:
            conclude(self._alpha, self._b, self._diagonal, self._block, self._blocks, self._n)
            self._forget_factor()
        if 4 * self._n + 16 < len(self._b):
            self._resize(16 + 2 * self._n)

    def solve(self, accuracy: float) -> MasterSolution:
        """Minimise the model; `accuracy` is the duality gap allowed, relative to the model's objective.

        A block without floor and planes leaves the model unbounded below; then the bound is -inf and w minimises the
        rest.
        """
        n = self._n
        accuracy = max(accuracy, 4.0 * EPS)
        c = self._lam * self._b[:n]
        v = np.empty(n)
        if self._age > AGE:
            self._forget_factor()
        objective = self._run(c, v, False, np.zeros(n), accuracy, NOISE)
        solution, largest = self._evaluate()
        if NOISE * largest > accuracy * abs(objective) and math.isfinite(solution.lower_bound):
            solution = self._refine(solution, c, v, accuracy)
        return solution

    def _refine(self, best: MasterSolution, c: Vector, v: Vector, accuracy: float) -> MasterSolution:
        """Correct from plane values taken at w itself, as long as the gap halves.

        The correction is added to w too: close to the end it is below the last digit of alpha, but not of w.
        """
        w, upper, gap = best.w, math.inf, math.inf
        for _ in range(ROUNDS):
            value = self._model(w, c, v)
            if value < upper:
                upper, best = value, MasterSolution(w, best.multipliers, best.lower_bound)
            before, gap = gap, upper - best.lower_bound
            if gap <= accuracy * abs(best.lower_bound) or gap > 0.5 * before:
                break
            moved = np.zeros(self._n)
            self._run(c, v, True, moved, accuracy, 0.0)
            w = w - self._planes.combine(self._roster.spread(moved[self._first :])) / self._lam
            trial, _ = self._evaluate()
            if trial.lower_bound >= best.lower_bound:
                best = MasterSolution(best.w, trial.multipliers, trial.lower_bound)
        return best

    def _model(self, w: Vector, c: Vector, v: Vector) -> float:
        """The regularized model at w; sets v to lambda times the plane values there."""
        n, first = self._n, self._first
        v[:first] = c[:first]
        v[first:] = c[first:] + self._lam * self._roster.pick(self._planes.products(w))
        top = np.full(self._blocks, -np.inf)
        np.maximum.at(top, self._block[:n], v)
        return 0.5 * self._lam * dot(w, w) + float(top.sum()) / self._lam

    def _run(self, c: Vector, v: Vector, given: bool, moved: Vector, accuracy: float, noise: float) -> float:
        """The kernel, with more room for its factor when it asks; returns lambda times the objective."""
        while True:
            code, self._size, self._shift, _, objective, changes = solve_simplex_qp(
                self._G,
                self._diagonal,
                c,
                self._block,
                self._blocks,
                self._n,
                self._alpha,
                self._support,
                self._where,
                self._L,
                self._U,
                self._shift,
                self._size,
                v,
                given,
                moved,
                accuracy,
                noise,
                100 + 20 * self._n,
            )
            self._age += changes
            if code == DONE:
                return float(objective)
            given = True
            self._make_room(2 * len(self._support))

    def _evaluate(self) -> tuple[MasterSolution, float]:
        """w and the bound of the multipliers, after they were made feasible; and the largest ||a_j||^2 in use."""
        n = self._n
        present, linear, largest = conclude(self._alpha, self._b, self._diagonal, self._block, self._blocks, n)
        alpha = self._alpha[self._first : n]
        w = self._planes.combine(self._roster.spread(alpha))
        w /= -self._lam
        bound = linear - 0.5 * self._lam * dot(w, w) if present == self._blocks else -math.inf
        return MasterSolution(w, self._roster.multipliers(alpha), bound), largest

    def _forget_factor(self) -> None:
        self._where[: self._n] = -1
        self._size = self._age = 0

    def _resize(self, capacity: int) -> None:
        """Room for so many variables."""
        n = self._n if len(self._b) else 0
        G = np.empty((capacity, capacity))
        G[:n, :n] = self._G[:n, :n]
        self._G = G
        for name in ("_diagonal", "_b", "_alpha", "_block", "_where"):
            old = getattr(self, name)
            new = np.empty(capacity, dtype=old.dtype)
            new[:n] = old[:n]
            setattr(self, name, new)

    def _make_room(self, room: int) -> None:
        """Room for so many variables in the support."""
        s = self._size
        support, L, U = np.empty(room, dtype=np.int64), np.empty((room, room)), np.empty((self._blocks, room))
        support[:s], L[:s, :s], U[:, :s] = self._support[:s], self._L[:s, :s], self._U[:, :s]
        self._support, self._L, self._U = support, L, U
