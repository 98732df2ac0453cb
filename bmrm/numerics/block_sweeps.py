"""Sweeps of block coordinate descent over a quadratic, with Anderson extrapolation; on columns or on a Gram matrix.

Bertrand & Massias 2021, Anderson acceleration of coordinate descent; Bertrand, Klopfenstein, Bannier, Gidel & Massias
2022 (skglm).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.blocks import descent as kernels
from bmrm.kernels.blocks import separable
from bmrm.kernels.blocks.descent import BlockQuadratic, History
from bmrm.kernels.blocks.exact import BlockGrams
from bmrm.kernels.products.columns import Columns, StopRule
from bmrm.kernels.products.vectors import dot
from bmrm.problem import Check, Vector, unchecked
from bmrm.problem.regularizer import BlockPenalty

Matrix = NDArray[np.float64]
SWEEPS = 5
"""Sweeps between two extrapolations (Bertrand & Massias 2021)."""
LARGEST = 128
"""Most columns in a block whose Gram matrix is kept: it takes as many products of columns."""
REGULAR = 1e-10
"""Regularisation of the system for the coefficients, relative to its trace."""
FLAT = 1e-15
"""Least eigenvalue of a block, relative to its largest one."""


def gram_starts(penalty: BlockPenalty) -> NDArray[np.int64]:
    """Where the Gram matrices of the blocks begin, those of large blocks being left out."""
    sizes = np.diff(penalty.starts)
    return np.concatenate(([0], np.cumsum(np.where(sizes <= LARGEST, sizes * sizes, 0))))


def grams_of(penalty: BlockPenalty, starts: NDArray[np.int64], values: Vector, diagonal: Vector) -> BlockGrams:
    """With the eigenvalues; of large blocks, which are not decomposed, the trace is a bound of the largest one.

    Parameters
    ----------
    penalty : the blocks.
    starts, values : of the Gram matrices; values of blocks of one column are not looked at.
    diagonal : of all columns, > 0; it takes the place of that of the matrices.
    """
    sizes, first = np.diff(penalty.starts), penalty.starts[:-1]
    largest, vectors, eigenvalues = np.ones(sizes.size), np.zeros_like(values), np.zeros(diagonal.size)
    for size in np.unique(sizes[sizes > 0]):
        which = np.flatnonzero(sizes == size)
        members = penalty.coordinates[first[which, None] + np.arange(size)]
        if size > LARGEST:
            largest[which] = diagonal[members].sum(axis=1)
            continue
        places = starts[which, None] + np.arange(size) * (size + 1)
        values[places] = diagonal[members]
        if size == 1:
            largest[which] = diagonal[members[:, 0]]
            continue
        entries = starts[which, None] + np.arange(size * size)
        matrices = values[entries].reshape(-1, size, size)
        with np.errstate(over="ignore", invalid="ignore"):
            bounds = np.minimum(np.trace(matrices, axis1=1, axis2=2), np.abs(matrices).sum(axis=2).max(axis=1))
        sane = np.all(np.isfinite(matrices), axis=(1, 2))
        found, basis = np.linalg.eigh(matrices[sane])
        bounds[sane] = np.minimum(bounds[sane], found[:, -1] * (1.0 + 1e-10))
        bounds = largest[which] = np.maximum(bounds, diagonal[members].max(axis=1))
        vectors[entries[sane]] = basis.transpose(0, 2, 1).reshape(-1, size * size)
        eigenvalues[first[which[sane], None] + np.arange(size)] = np.maximum(found, FLAT * bounds[sane, None])
    return BlockGrams(starts, values, largest, vectors, eigenvalues)


class BlockSweeps(ABC):
    """min over x of <gradient, x - w> + quadratic(x - w) + Omega(x), block by block.

    Parameters
    ----------
    model : the quadratic, its gradient aside.
    grams : of the blocks.
    """

    def __init__(self, model: BlockQuadratic, grams: BlockGrams) -> None:
        self._model, self._grams = model, grams
        self.state = np.zeros(6)
        """As of the kernel `descend`."""
        self.r = np.empty(0)
        """Of the last x; as of `beginning`."""

    @abstractmethod
    def beginning(self, gradient: Vector) -> tuple[Vector, Vector]:
        """The gradient per column that is never changed, and r for d = 0."""

    @abstractmethod
    def descend(self, *arguments: Any) -> tuple[float, int, bool, int]:
        """The kernel `descend_blocks`, after its first argument."""

    @abstractmethod
    def smooth(self, gradient: Vector, d: Vector, r: Vector, offset: float, level: float) -> float:
        """The quadratic with its gradient at d."""

    def spent(self, visited: int) -> None:  # noqa: B027
        """Charge the visits of so many columns, where something counts them."""

    def minimise(
        self, gradient: Vector, w: Vector, penalty: BlockPenalty, goal: float, share: float, most: int
    ) -> tuple[Vector, float]:
        """The minimiser, nearly, and what is left to do; as of `BlockModel`."""
        constant, r = self.beginning(gradient)
        x: Vector = w.copy()
        self.state[:] = (0.0, 0.0, 0.0, 0.0, penalty.blocks, math.inf)
        model, order, arrays = self._model._replace(gradient=constant), np.arange(penalty.blocks), tuple(penalty)
        work = np.zeros((4, x.size))
        history = History(np.empty((SWEEPS + 1, x.size)), np.empty((SWEEPS + 1, r.size)), np.empty((SWEEPS + 1, 2)))
        worst, left = math.inf, most
        while True:
            stop = StopRule(goal, share, min(SWEEPS, left))
            worst, visited, ended, sweeps = self.descend(
                model, stop, arrays, self._grams, x, r, self.state, order, work, history
            )
            self.spent(visited)
            left -= sweeps
            if ended or left <= 0 or not np.all(np.isfinite(x)):
                break
            if sweeps == SWEEPS:
                self._extrapolate(gradient, w, x, r, arrays, history)
        if not np.all(np.isfinite(x)):
            x, worst = w.copy(), math.inf
            r, self.state[:] = self.beginning(gradient)[1], 0.0
        self.r = r
        return x, float(worst)

    def _extrapolate(
        self, gradient: Vector, w: Vector, x: Vector, r: Vector, arrays: tuple[Any, ...], history: History
    ) -> None:
        """Move x and r to the affine combination of the last sweeps with the least change, if J falls by that."""
        points = history.points
        changes = np.diff(points, axis=0)
        system = changes @ changes.T
        trace = float(np.trace(system))
        if not (0.0 < trace < math.inf):
            return
        system /= trace
        system.flat[:: SWEEPS + 1] += REGULAR
        shares = np.linalg.solve(system, np.ones(SWEEPS))
        total = float(shares.sum())
        if not (math.isfinite(total) and total != 0.0):
            return
        shares /= total
        ahead, still = shares @ points[1:], np.all(points[1:] == points[1], axis=0)
        ahead[still] = x[still]
        there = shares @ history.states[1:]
        offset, level = shares @ history.constants[1:]
        before = self.smooth(gradient, x - w, r, self.state[0], self.state[1]) + separable.value(x, arrays)
        after = self.smooth(gradient, ahead - w, there, offset, level) + separable.value(ahead, arrays)
        if after < before:
            x[:], r[:] = ahead, there
            self.state[0], self.state[1] = offset, level
            self.state[2] += before - after


class GramSweeps(BlockSweeps):
    """The same on a Gram matrix H: r is the gradient g + H d.

    Parameters
    ----------
    H : (n, n), positive semidefinite with a positive diagonal.
    penalty : the blocks.
    check : called between sweeps.
    """

    def __init__(self, H: Matrix, penalty: BlockPenalty, check: Check = unchecked) -> None:
        starts = gram_starts(penalty)
        values = np.empty(starts[-1])
        kernels.parts_of_gram(H, tuple(penalty), starts, values)
        zeros = np.zeros(H.shape[0])
        grams = grams_of(penalty, starts, values, H.diagonal())
        super().__init__(BlockQuadratic(zeros, zeros, 0.0, zeros, False), grams)
        self._columns, self._check = Columns(np.zeros(1, np.int64), np.zeros(1, np.uint32), H), check

    def beginning(self, gradient: Vector) -> tuple[Vector, Vector]:
        """As of `BlockSweeps`."""
        return np.zeros_like(gradient), gradient.copy()

    def descend(self, *arguments: Any) -> tuple[float, int, bool, int]:
        """As of `BlockSweeps`."""
        self._check()
        return kernels.descend_blocks_gram(self._columns, *arguments)  # type: ignore[no-any-return]

    def smooth(self, gradient: Vector, d: Vector, r: Vector, offset: float, level: float) -> float:
        """As of `BlockSweeps`."""
        return 0.5 * dot(d, r + gradient)
