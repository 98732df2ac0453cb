"""A quadratic program over a product of simplices that grows, shrinks, and stays hot between solutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.masters.simplex_qp import DONE, StopRule, solve_simplex_qp, values_of_planes
from bmrm.kernels.masters.simplex_variables import QuadraticProgram, conclude, enlarge
from bmrm.kernels.masters.support_factor import Factor
from bmrm.problem import Vector

AGE = 2000
"""Changes of the support after which its factor is computed anew."""


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
    qp : the arrays, with room for more than n variables.
    """

    def __init__(self, infima: Sequence[float]) -> None:
        known = [k for k in range(len(infima)) if math.isfinite(infima[k])]
        self.blocks = len(infima)
        self.first = self.n = len(known)
        n, offsets, blocks = self.n, np.array([infima[k] for k in known]), np.array(known, dtype=np.int64)
        self.qp = QuadraticProgram(np.zeros((n, n)), np.zeros(n), offsets, blocks, np.ones(n), np.full(n, -1))
        self._resize(16 + 2 * n)
        self._size = self._age = 0
        self._shift = 1.0
        self._factor = Factor(np.zeros(0, dtype=np.int64), np.zeros((0, 0)), np.zeros((self.blocks, 0)))
        self._make_room(16)

    @property
    def planes(self) -> Vector:
        """The multipliers of the planes, in the order in which they came; a view."""
        return self.qp.alpha[self.first : self.n]

    def add(self, row: Vector, b: float, block: int) -> None:
        """One more plane, with its products with all planes, last with itself."""
        j = self.n
        if j == len(self.qp.b):
            self._resize(j + j // 2)
        enlarge(tuple(self.qp), j, row, b, block)
        self.n = j + 1

    def remove(self, order: NDArray[np.int64]) -> None:
        """Forget planes, and give their multipliers to the rest of their block; `order` as of `PlaneStore.drop`."""
        G, *others = self.qp
        alpha, where, old = self.qp.alpha, self.qp.where, self.n
        kept = np.concatenate([np.arange(self.first), self.first + order])
        gone = np.ones(old, bool)
        gone[kept] = False
        broken = bool(np.any((where[:old][gone] >= 0) | (alpha[:old][gone] > 0.0)))
        self.n = kept.size
        places = np.flatnonzero(kept != np.arange(self.n))
        came = kept[places]
        G[places, :old] = G[came, :old]
        G[: self.n, places] = G[: self.n, came]
        for array in others:
            array[places] = array[came]
        supported = places[where[places] >= 0]
        self._factor.support[where[supported]] = supported
        if broken:
            self.conclude()
            self.forget_factor()
        if 4 * self.n + 16 < len(self.qp.b):
            self._resize(16 + 2 * self.n)

    def conclude(self) -> tuple[bool, float, float]:
        """Put alpha onto the simplices, to the last digit.

        Returns whether every block has a variable, b'alpha, and the largest diagonal entry of G in use.
        """
        present, linear, largest = conclude(tuple(self.qp), self.blocks, self.n)
        return present == self.blocks, linear, largest

    def run(self, c: Vector, v: Vector, given: bool, moved: Vector, accuracy: float, noise: float) -> float:
        """`solve_simplex_qp`, with more room for the factor when it asks; the objective.

        `given` where v is c - G alpha on entry.
        """
        if self._age > AGE:
            self.forget_factor()
        if not given:
            values_of_planes(self.qp.G, c, self.n, self.qp.alpha, v)
        variables, rule = tuple(self.qp), tuple(StopRule(accuracy, noise, 100 + 20 * self.n))
        while True:
            code, self._size, self._shift, _, objective, changes = solve_simplex_qp(
                variables, tuple(self._factor), self._size, self._shift, c, v, moved, rule
            )
            self._age += changes
            if code == DONE:
                return float(objective)
            self._make_room(2 * len(self._factor.support))

    def changed(self) -> None:
        """G has changed in place: its diagonal is read again, and the factor made anew."""
        self.qp.diagonal[: self.n] = np.diagonal(self.qp.G)[: self.n]
        self.forget_factor()

    def forget_factor(self) -> None:
        """Start the next solution without a factor."""
        self.qp.where[: self.n] = -1
        self._size = self._age = 0

    def _resize(self, capacity: int) -> None:
        """Room for so many variables."""
        n = self.n
        G, *others = self.qp
        self.qp = QuadraticProgram(
            enlarged(G[:n, :n], capacity, capacity), *(enlarged(x[:n], capacity) for x in others)
        )

    def _make_room(self, room: int) -> None:
        """Room for so many variables in the support."""
        s, (support, L, U) = self._size, self._factor
        U = enlarged(U[:, :s], self.blocks, room)
        self._factor = Factor(enlarged(support[:s], room), enlarged(L[:s, :s], room, room), U)


def enlarged(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """`array` in the leading part of a larger one."""
    new = np.zeros(shape, dtype=array.dtype)
    new[tuple(map(slice, array.shape))] = array
    return new


def tops(v: Vector, program: SimplexProgram) -> Vector:
    """The largest of `v` (one per variable) in each block; -inf where there is none."""
    top: Vector = np.full(program.blocks, -np.inf)
    np.maximum.at(top, program.qp.block[: program.n], v)
    return top
