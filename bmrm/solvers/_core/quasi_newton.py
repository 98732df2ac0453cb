"""The inverse Hessian of limited-memory BFGS, by inner products of what it remembers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.quasi_newton import combined, pair_products, store_pair, two_loops
from bmrm.kernels.vectors import dot
from bmrm.problem import Vector

FLAT = 1e-10
"""A pair is forgotten at once whose curvature is less than this share of the largest that its lengths allow."""


class InverseHessian:
    """H of Nocedal 1980 (the loops of Liu & Nocedal 1989, p. 507), from at most `memory` pairs.

    The loops need inner products only, so every pair is read twice an iteration: for its products with the gradient
    and with the newest difference, and for the direction. Pairs do not change H when both are divided by one number:
    they are kept for steps of length 1, in single precision.

    Memory: 8 memory dim bytes.

    Parameters
    ----------
    dim : entries of a vector.
    memory : pairs kept.
    """

    def __init__(self, dim: int, memory: int) -> None:
        self._S: NDArray[np.float32] = np.empty((memory, dim), np.float32)
        self._Y: NDArray[np.float32] = np.empty((memory, dim), np.float32)
        self._sy, self._yy = np.zeros((memory, memory)), np.zeros((memory, memory))
        self._products = np.zeros((memory, 4))
        self._order: list[int] = []
        """Rows in use, the oldest pair first."""
        self._rows = 0
        """So many have been in use."""

    def __len__(self) -> int:
        return len(self._order)

    def forget(self) -> None:
        """Begin anew: H is a multiple of the identity."""
        self._order = []

    def learn(self, step: Vector, t: float, after: Vector, before: Vector) -> None:
        """The gradient has moved from `before` to `after` with w by `t step`."""
        length = math.sqrt(dot(step, step))
        if not t * length > 0.0:
            return
        slot = self._free()
        store_pair(self._S[slot], self._Y[slot], step, after, before, length, t)
        self._order.append(slot)
        pair_products(self._S, self._Y, self._rows, slot, after, self._products)
        self._sy[:, slot] = self._products[:, 2]
        self._yy[:, slot] = self._yy[slot] = self._products[:, 3]
        curvature, square = self._sy[slot, slot], self._yy[slot, slot]
        if not (curvature > FLAT * math.sqrt(square) and math.isfinite(square)):
            self._order.pop()

    def _free(self) -> int:
        """A row to overwrite."""
        if len(self._order) == len(self._S):
            return self._order.pop(0)
        slot = min(set(range(len(self._S))) - set(self._order))
        self._rows = max(self._rows, slot + 1)
        return slot

    def times_minus(self, g: Vector) -> tuple[Vector, float]:
        """d = -H g and <d, g>, for the gradient that was learned last; -g where nothing is known."""
        d = np.empty_like(g)
        if not self._order:
            np.negative(g, out=d)
            return d, -dot(g, g)
        along_s, along_y = np.empty(self._rows), np.empty(self._rows)
        share = two_loops(np.array(self._order), self._products, self._sy, self._yy, along_s, along_y)
        return d, combined(self._S, self._Y, along_s, along_y, -share, g, d)
