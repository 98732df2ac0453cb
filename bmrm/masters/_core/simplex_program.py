"""A quadratic program over a product of simplices that grows, shrinks, and stays hot between solutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bmrm.kernels.masters.simplex_qp import DONE, solve_simplex_qp
from bmrm.kernels.masters.simplex_variables import conclude, enlarge
from bmrm.problem import Vector

AGE = 2000
"""Changes of the support after which its factor is made anew."""


class SimplexProgram:
    """max over alpha of c'alpha - 1/2 alpha' G alpha, alpha >= 0 with sum 1 in every block that has a variable.

    The variables are the finite infima, whose rows in G are 0, then one per plane. Multipliers, the support and the
    Cholesky factor of its part of G are kept from one solution to the next.

    Parameters
    ----------
    infima : one per block; -inf where there is none.

    Attributes
    ----------
    first, n : number of infimum variables, and of all variables.
    G, b, block, alpha : arrays with room for more than n variables.
    """

    def __init__(self, infima: Sequence[float]) -> None:
        known = [k for k in range(len(infima)) if math.isfinite(infima[k])]
        self.blocks = len(infima)
        self.first = self.n = len(known)
        self.G = np.zeros((0, 0))
        self.b = self.alpha = self._diagonal = np.zeros(0)
        self.block = self._where = np.zeros(0, dtype=np.int64)
        self._resize(16 + 2 * self.n)
        self.G[: self.n, : self.n] = 0.0
        self._diagonal[: self.n] = 0.0
        self.b[: self.n] = [infima[k] for k in known]
        self.block[: self.n] = known
        self.alpha[: self.n] = 1.0
        self._where[: self.n] = -1
        self._size = self._age = 0
        self._shift = 1.0
        self._support = np.zeros(0, dtype=np.int64)
        self._L, self._U = np.zeros((0, 0)), np.zeros((self.blocks, 0))
        self._make_room(16)

    @property
    def planes(self) -> Vector:
        """The multipliers of the planes, in the order in which they came; a view."""
        return self.alpha[self.first : self.n]

    def add(self, row: Vector, b: float, block: int) -> None:
        """One more plane, with its products with all planes, last with itself."""
        j = self.n
        if j == len(self.b):
            self._resize(j + j // 2)
        enlarge(self.G, self._diagonal, self.b, self.block, self._where, self.alpha, j, row, b, block)
        self.n = j + 1

    def remove(self, places: Sequence[tuple[int, int]]) -> None:
        """Forget planes one after another: (its place, the place of the last plane, which then stands there).

        Their multipliers go to the rest of their block.
        """
        broken = False
        for place, end in places:
            j, last = self.first + place, self.first + end
            broken = broken or bool(self._where[j] >= 0 or self.alpha[j] > 0.0)
            if j != last:
                self.G[j, :last] = self.G[last, :last]
                self.G[:last, j] = self.G[j, :last]
                self.G[j, j] = self._diagonal[last]
                for array in (self._diagonal, self.b, self.block, self.alpha, self._where):
                    array[j] = array[last]
                if self._where[j] >= 0:
                    self._support[self._where[j]] = j
            self.n = last
        if broken:
            self.conclude()
            self.forget_factor()
        if 4 * self.n + 16 < len(self.b):
            self._resize(16 + 2 * self.n)

    def conclude(self) -> tuple[bool, float, float]:
        """Put alpha onto the simplices, to the last digit.

        Returns whether every block has a variable, b'alpha, and the largest diagonal entry of G in use.
        """
        present, linear, largest = conclude(self.alpha, self.b, self._diagonal, self.block, self.blocks, self.n)
        return present == self.blocks, linear, largest

    def run(self, c: Vector, v: Vector, given: bool, moved: Vector, accuracy: float, noise: float) -> float:
        """`kernels.simplex_qp.solve_simplex_qp`, with more room for the factor when it asks; the objective."""
        if self._age > AGE:
            self.forget_factor()
        while True:
            code, self._size, self._shift, _, objective, changes = solve_simplex_qp(
                self.G,
                self._diagonal,
                c,
                self.block,
                self.blocks,
                self.n,
                self.alpha,
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
                100 + 20 * self.n,
            )
            self._age += changes
            if code == DONE:
                return float(objective)
            given = True
            self._make_room(2 * len(self._support))

    def changed(self) -> None:
        """G has changed in place: its diagonal is read again, and the factor made anew."""
        self._diagonal[: self.n] = np.diagonal(self.G)[: self.n]
        self.forget_factor()

    def forget_factor(self) -> None:
        """Start the next solution without a factor."""
        self._where[: self.n] = -1
        self._size = self._age = 0

    def _resize(self, capacity: int) -> None:
        """Room for so many variables."""
        n = self.n if len(self.b) else 0
        G = np.empty((capacity, capacity))
        G[:n, :n] = self.G[:n, :n]
        self.G = G
        for name in ("_diagonal", "b", "alpha", "block", "_where"):
            old = getattr(self, name)
            new = np.empty(capacity, dtype=old.dtype)
            new[:n] = old[:n]
            setattr(self, name, new)

    def _make_room(self, room: int) -> None:
        """Room for so many variables in the support."""
        s = self._size
        support, L, U = np.empty(room, dtype=np.int64), np.empty((room, room)), np.empty((self.blocks, room))
        support[:s], L[:s, :s], U[:, :s] = self._support[:s], self._L[:s, :s], self._U[:, :s]
        self._support, self._L, self._U = support, L, U


def tops(v: Vector, program: SimplexProgram) -> Vector:
    """The largest of `v` (one per variable) in each block; -inf where there is none."""
    top: Vector = np.full(program.blocks, -np.inf)
    np.maximum.at(top, program.block[: program.n], v)
    return top
